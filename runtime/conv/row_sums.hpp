// SPDX-License-Identifier: Apache-2.0
// Window sums of blocks whose source is copied rows or the input itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jit/conv/dense_plan.hpp"

namespace castor::detail {

/// I32 that `set_row_window_sums` works with, for the plan's largest block.
int64_t row_window_sum_work(const jit::DensePlan& plan);

/// Stores the window sum of each of the block's pixels, row by row. `source` is where the first
/// pixel's window begins.
void set_row_window_sums(const jit::DensePlan& plan, const jit::CacheBlock& block,
                         const jit::DenseTuning& tuning, const std::byte* source, int32_t* work,
                         int32_t* to);

}  // namespace castor::detail
