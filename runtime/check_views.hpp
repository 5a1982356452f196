// SPDX-License-Identifier: Apache-2.0
// Checks of the views that a call hands in, against what a kernel was bound to.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/function.hpp"
#include "ir/view.hpp"

namespace castor {

/// What the view of one input or output must be.
struct BoundTensor {
  std::string what;  ///< "input %x" or "output 1", for messages
  ElementType element = ElementType::f32;
  Dims shape;
  Dims strides;
  int64_t count = 0;       ///< elements
  int64_t last_index = 0;  ///< element index of the last element, from the first
};

/// Checks shape and strides of a tensor and completes it: ranks agree, strides are positive where
/// the extent exceeds 1, nothing overflows, and, of an output, no element is written twice. Empty
/// strides of a tensor with dimensions mean dense.
Result<BoundTensor> bind_tensor(std::string what, ElementType element, const Dims& shape,
                                const Dims& strides, bool is_output);

/// Checks one view: element type, shape, strides, offset and bytes available.
template <class Pointer>
Status check_view(const BoundTensor& tensor, const BasicView<Pointer>& view);

/// The bytes that a tensor occupies.
struct Footprint {
  uintptr_t begin = 0;
  uintptr_t end = 0;  ///< one past the last byte; equal to begin when there are no elements
};
template <class Pointer>
Footprint footprint(const BoundTensor& tensor, const BasicView<Pointer>& view);

/// Whether two tensors that lie there may share a byte. Exact for intervals that do not meet and
/// for tensors interleaved with a common period; otherwise intervals that meet count as shared.
bool may_overlap(const BoundTensor& a, Footprint at_a, const BoundTensor& b, Footprint at_b);

/// Whether an output may lie exactly where an input does: element for element the same bytes.
bool same_walk(const BoundTensor& a, const BoundTensor& b);

}  // namespace castor
