// SPDX-License-Identifier: Apache-2.0
// Calls of steps with sub-byte operands, which may begin and end inside a byte.
#pragma once

#include "runtime/call/nest_call.hpp"
#include "runtime/check/check_views.hpp"

namespace castor::detail {

/// Runs a step with sub-byte operands. `outputs` are those of the call, as they were bound;
/// `streaming`: with streaming stores, where no operand begins inside a byte.
void run_sub_byte_step(std::span<const BoundTensor> outputs, const ElementwiseStep& step,
                       bool streaming, const CallMemory& memory);

}  // namespace castor::detail
