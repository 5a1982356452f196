// SPDX-License-Identifier: Apache-2.0
// Scales that a function's requantizations are given at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ir/function.hpp"
#include "runtime/check/check_views.hpp"

namespace castor::detail {

/// One operand that holds scales: a parameter of the function, or a constant.
struct ScaleCheck {
  std::string_view side;                ///< "source" or "destination"
  size_t input = 0;                     ///< among the function's parameters
  const std::byte* constant = nullptr;  ///< dense data, else null
  int64_t count = 1;
  int64_t stride = 1;  ///< in elements
};

/// Every scale of the function, in the order in which the interpreter meets them: whether anybody
/// reads the result, and whether it has elements, does not matter. `inputs` are bound.
std::vector<ScaleCheck> scale_checks(const Function& function, std::span<const BoundTensor> inputs);

/// Refuses scales that are not 1 to 32767. Of views, `data` and `offset` are looked at.
Status check_scales(std::span<const ScaleCheck> checks, std::span<const ConstView> inputs);

}  // namespace castor::detail
