// SPDX-License-Identifier: Apache-2.0
// Reading and writing tensors through views with strides and offsets.
#include "ir/interpreter/tensor.hpp"

#include <cassert>

#include "ir/types/elements.hpp"

namespace castor {

namespace {

/// Calls visit(index) with the element index of every element of a view, in row-major order.
template <class Pointer, class Visit>
void for_each_element(const BasicView<Pointer>& view, Visit visit) {
  const int rank = view.shape.rank();
  for (int64_t extent : view.shape) {
    if (extent == 0) return;
  }
  Dims at = Dims::filled(rank, 0);
  int64_t index = view.offset;
  while (true) {
    visit(index);
    int axis = rank - 1;
    for (; axis >= 0 && at[axis] == view.shape[axis] - 1; --axis) {  // carry into the axis before
      index -= at[axis] * view.strides[axis];
      at[axis] = 0;
    }
    if (axis < 0) return;
    ++at[axis];
    index += view.strides[axis];
  }
}

/// Whether the view's elements are contiguous, row-major, from the first bit on. The stride
/// of an axis of extent 1 is never taken.
bool is_dense(const View& view) {
  const Dims dense = dense_strides(view.shape);
  for (int axis = 0; axis < view.shape.rank(); ++axis) {
    if (view.shape[axis] != 1 && view.strides[axis] != dense[axis]) return false;
  }
  return view.offset == 0;
}

}  // namespace

Tensor read_tensor(const ConstView& view) {
  const auto* data = static_cast<const std::byte*>(view.data);
  Tensor tensor{view.element, view.shape, {}};
  tensor.elements.reserve(static_cast<size_t>(element_count(view.shape).value()));
  for_each_element(view, [&](int64_t index) {
    tensor.elements.push_back(read_element(data, view.element, index));
  });
  return tensor;
}

void write_tensor(const Tensor& tensor, const View& view) {
  assert(tensor.element == view.element && tensor.shape == view.shape);
  auto* data = static_cast<std::byte*>(view.data);
  const uint64_t* next = tensor.elements.data();
  for_each_element(view, [&](int64_t index) { write_element(data, view.element, index, *next++); });
  if (!is_sub_byte(view.element) || !is_dense(view)) return;
  clear_unused_bits(data, view.element, static_cast<int64_t>(tensor.elements.size()));
}

}  // namespace castor
