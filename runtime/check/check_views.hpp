// SPDX-License-Identifier: Apache-2.0
// Checks of the views that a call hands in, against what a kernel was bound to.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/function.hpp"
#include "ir/types/view.hpp"
#include "runtime/check/strided_overlap.hpp"

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

/// Whether the elements are contiguous in row-major order: tight strides over all axes of more
/// than one element. (With a view's offset of 0, the view is dense.)
bool is_dense(const BoundTensor& tensor);

/// Checks shape and strides of a tensor and completes it: ranks agree, strides are positive where
/// the extent exceeds 1, nothing overflows, and, of an output, no element is written twice. Empty
/// strides of a tensor with dimensions mean dense.
Result<BoundTensor> bind_tensor(std::string what, ElementType element, const Dims& shape,
                                const Dims& strides, bool is_output);

/// Refuses a number that is none of the element types; `what` names its owner in the message.
Status check_element(std::string_view what, ElementType element);

/// Checks one view: element type, shape, strides, offset and bytes available. Strides and offsets
/// count elements; every byte that holds a bit of an element must be available, of the split
/// layouts the whole groups of three bytes.
template <class Pointer>
Status check_view(const BoundTensor& tensor, const BasicView<Pointer>& view);

/// The bytes that a tensor occupies: those that hold a bit of an element, padding in the last byte
/// included, and of the split layouts whole groups of three bytes.
struct Footprint {
  uintptr_t begin = 0;
  uintptr_t end = 0;  ///< one past the last byte; equal to begin when there are no elements
  uint8_t phase = 0;  ///< where the first element begins in its bytes: a bit (split: an element)

  bool empty() const { return begin == end; }
  /// Whether the intervals do; tensors that alternate may share nothing all the same.
  bool meets(const Footprint& other) const { return begin < other.end && other.begin < end; }
  /// Whether the first elements of two tensors of equally wide elements have one address.
  bool begins_with(const Footprint& other) const {
    return begin == other.begin && phase == other.phase;
  }
};
template <class Pointer>
Footprint footprint(const BoundTensor& tensor, const BasicView<Pointer>& view);

/// Whether two tensors at these addresses share a byte. Decided by bytes, because kernels read and
/// write whole ones: the even and the odd nibbles of one buffer share bytes. Intervals that do not
/// meet are the fast answer; else find_overlap decides, at the expense of `steps`.
Overlap find_overlap(const BoundTensor& a, const Footprint& at_a, const BoundTensor& b,
                     const Footprint& at_b, int64_t& steps);

/// Whether a tensor and `size` bytes from `begin` on share a byte, decided in the same way.
Overlap find_overlap(const BoundTensor& tensor, const Footprint& at, uintptr_t begin, size_t size,
                     int64_t& steps);

/// Whether an output may have exactly an input's memory: element for element the same bits, in the
/// same storage order.
bool same_access(const BoundTensor& a, const BoundTensor& b);

}  // namespace castor
