// SPDX-License-Identifier: Apache-2.0
// Refusing calls whose outputs share memory.
#pragma once

#include <span>

#include "runtime/bind/in_place.hpp"
#include "runtime/check/check_views.hpp"

namespace castor {

/// What a call is checked against.
struct OverlapRules {
  std::span<const BoundTensor> inputs;
  std::span<const BoundTensor> outputs;
  const InPlaceOrder& order;

  /// Whether the output may be stored exactly where the input is.
  bool allows_in_place(size_t input, size_t output) const {
    return same_access(inputs[input], outputs[output]) && order.allows(input, output);
  }
};

/// Refuses outputs that share a byte with an input or with another output, unless one has exactly
/// an input's memory and may; `in_place` becomes true where one does. Strided tensors that
/// interleave without sharing a byte are apart: ranges of addresses are compared first, and only
/// where they meet, find_overlap decides. All pairs of a call together take at most
/// max_overlap_steps for that, besides 128 for each of the first 65,536; a pair that would take
/// more is refused.
///
/// The views are checked (check_view). Up to 16 tensors are compared each with each; the footprints
/// of more are sorted in `work`, of overlap_work_bytes or none at all: then memory is allocated for
/// it, which may throw std::bad_alloc.
Status check_overlap(const OverlapRules& rules, std::span<const ConstView> inputs,
                     std::span<const View> outputs, std::span<std::byte> work, bool& in_place);

/// Bytes that checking n tensors takes; 0 for few.
size_t overlap_work_bytes(size_t tensors);

}  // namespace castor
