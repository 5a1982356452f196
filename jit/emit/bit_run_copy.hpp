// SPDX-License-Identifier: Apache-2.0
// Copies of consecutive sub-byte elements that begin at any bit, eight at a time.
#pragma once

#include "jit/emit/bitwise_copy.hpp"

namespace castor::jit {

/// Copies copying::count elements, at least one, from copying::element on to the window, or
/// (`in` is false) from there. Not for the split layouts.
void emit_copy_run(Assembler& code, const Frame& frame, const WindowOperand& at, bool in);

}  // namespace castor::jit
