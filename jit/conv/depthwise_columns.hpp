// SPDX-License-Identifier: Apache-2.0
// The column positions of depthwise convolutions.
#pragma once

#include <vector>

#include "jit/conv/depthwise_plan.hpp"

namespace castor::jit {

/// Appends the column positions of vectors of so many output rows, from left to right; false where
/// a shuffle cannot make one of them. `form` says how sources lie.
bool add_columns(const DepthwisePlan& plan, const DepthwiseForm& form, int64_t rows,
                 const Target& target, std::vector<DepthwiseColumns>& to);

}  // namespace castor::jit
