// SPDX-License-Identifier: Apache-2.0
// Elements of a window where a copy to memory wants their bits.
#pragma once

#include "jit/emit/bitwise_copy.hpp"

namespace castor::jit {

/// Stores copying::count words of 16 bits after the window: its elements at the bits at which they
/// begin in their byte of memory, from copying::element on; all other bits are 0. Not for the split
/// layouts. Overwrites copying::value and copying::offset.
void emit_shift_window(LaneEmitter& emitter, const Frame& frame, const WindowOperand& at);

}  // namespace castor::jit
