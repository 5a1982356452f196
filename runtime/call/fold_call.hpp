// SPDX-License-Identifier: Apache-2.0
// Calls of code that folds into accumulators.
#pragma once

#include "runtime/bind/fold_step.hpp"
#include "runtime/call/nest_call.hpp"

namespace castor::detail {

/// Does one pass: starts its accumulators, and folds into them.
void run_fold(const FoldStep& step, const CallMemory& memory);

}  // namespace castor::detail
