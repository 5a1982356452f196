// SPDX-License-Identifier: Apache-2.0
// Calls of nests with sub-byte operands, which may begin and end inside a byte.
#pragma once

#include "runtime/call/nest_call.hpp"

namespace castor::detail {

/// Runs a nest with sub-byte operands. `streaming`: with streaming stores, where no operand begins
/// inside a byte.
void run_sub_byte_nest(const BoundState& bound, const BoundNest& nest, bool streaming,
                       const CallMemory& memory);

}  // namespace castor::detail
