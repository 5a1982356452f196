// SPDX-License-Identifier: Apache-2.0
// Copies of sub-byte elements any distance apart, or of split layouts.
#pragma once

#include "jit/emit/bitwise_copy.hpp"

namespace castor::jit {

/// Copies copying::count elements, at least one, from copying::element on to the window, or (`in`
/// is false) from there.
void emit_copy_elements(LaneEmitter& emitter, const Frame& frame, const WindowOperand& at, bool in);

}  // namespace castor::jit
