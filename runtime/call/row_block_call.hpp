// SPDX-License-Identifier: Apache-2.0
// Calls block of rows by block of rows.
#pragma once

#include <functional>

#include "runtime/bind/row_block_step.hpp"
#include "runtime/call/nest_call.hpp"

namespace castor::detail {

/// Runs the steps of a block with the memory of that block.
using RunBlock = std::function<void(const BoundState& block, const CallMemory& memory)>;

/// Does all blocks, by several tasks where these are worth it.
void run_row_blocks(const RowBlockStep& step, const CallMemory& memory, const RunBlock& run);

}  // namespace castor::detail
