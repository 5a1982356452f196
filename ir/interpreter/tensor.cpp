// SPDX-License-Identifier: Apache-2.0
// Reading and writing tensors through views with strides and offsets.
#include "ir/interpreter/tensor.hpp"

#include <bit>
#include <cassert>
#include <cstring>

namespace castor {

namespace {

static_assert(std::endian::native == std::endian::little, "whole bytes are stored little endian");

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

/// Bytes of one element; every element type that the verifier admits takes whole bytes.
size_t element_bytes(ElementType type) {
  assert(info(type).order == StorageOrder::whole_bytes);
  return static_cast<size_t>(bits_of(type)) / 8;
}

}  // namespace

Tensor read_tensor(const ConstView& view) {
  const size_t size = element_bytes(view.element);
  const auto* data = static_cast<const std::byte*>(view.data);
  Tensor tensor{view.element, view.shape, {}};
  tensor.elements.reserve(static_cast<size_t>(element_count(view.shape).value()));
  for_each_element(view, [&](int64_t index) {
    uint64_t bits = 0;
    std::memcpy(&bits, data + index * static_cast<int64_t>(size), size);
    tensor.elements.push_back(bits);
  });
  return tensor;
}

void write_tensor(const Tensor& tensor, const View& view) {
  assert(tensor.element == view.element && tensor.shape == view.shape);
  const size_t size = element_bytes(view.element);
  auto* data = static_cast<std::byte*>(view.data);
  const uint64_t* next = tensor.elements.data();
  for_each_element(view, [&](int64_t index) {
    std::memcpy(data + index * static_cast<int64_t>(size), next++, size);
  });
}

}  // namespace castor
