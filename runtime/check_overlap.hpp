// SPDX-License-Identifier: Apache-2.0
// Refusing calls whose outputs share memory.
#pragma once

#include <span>

#include "runtime/check_views.hpp"

namespace castor {

/// What a call is checked against.
struct OverlapRules {
  std::span<const BoundTensor> inputs;
  std::span<const BoundTensor> outputs;
  /// [input * outputs.size() + output]: the output may lie exactly where the input does.
  const std::vector<bool>& in_place_allowed;
};

/// Refuses outputs that share a byte with an input or with another output, unless one lies exactly
/// where an input does and may; `in_place` becomes true where one does. The views are checked
/// (check_view). Allocates nothing for up to 16 tensors; sorts the footprints of more (and may then
/// throw std::bad_alloc), so that only tensors whose intervals meet are compared.
Status check_overlap(const OverlapRules& rules, std::span<const ConstView> inputs,
                     std::span<const View> outputs, bool& in_place);

}  // namespace castor
