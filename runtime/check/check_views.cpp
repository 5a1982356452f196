// SPDX-License-Identifier: Apache-2.0
#include "runtime/check/check_views.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/types/storage.hpp"

namespace castor {

namespace {

Error invalid(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

/// Axes of more than one element, by ascending stride.
std::vector<int> stepped_axes(const BoundTensor& tensor) {
  std::vector<int> axes;
  for (int axis = 0; axis < tensor.shape.rank(); ++axis) {
    if (tensor.shape[axis] > 1) axes.push_back(axis);
  }
  std::sort(axes.begin(), axes.end(),
            [&](int a, int b) { return tensor.strides[a] < tensor.strides[b]; });
  return axes;
}

/// Sufficient and, for strides as tensors have them, necessary: each axis steps over everything
/// that the axes with smaller strides reach.
bool writes_each_element_once(const BoundTensor& tensor) {
  int64_t reach = 0;
  for (int axis : stepped_axes(tensor)) {
    if (tensor.strides[axis] <= reach) return false;
    reach += (tensor.shape[axis] - 1) * tensor.strides[axis];
  }
  return true;
}

bool same_strides(const Dims& shape, const Dims& a, const Dims& b) {
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] > 1 && a[axis] != b[axis]) return false;
  }
  return true;
}

/// Bytes that `count` elements take from the beginning of an array, if they can be counted.
std::optional<uint64_t> bytes_for(ElementType element, uint64_t count) {
  if (count > uint64_t{INT64_MAX}) return std::nullopt;
  return byte_size(element, static_cast<int64_t>(count));
}

/// Where the elements of a tensor with that footprint are.
ElementOffsets offsets_of(const BoundTensor& tensor, const Footprint& at) {
  const ElementInfo& row = info(tensor.element);
  ElementOffsets places;
  places.begin = at.begin;
  places.first_part = at.phase;
  places.extents = tensor.shape;
  places.strides = tensor.strides;
  if (row.order == StorageOrder::whole_bytes) {
    places.unit_bytes = row.bits / 8;
    return places;
  }
  if (row.order == StorageOrder::split) {
    places.unit_bytes = 3;
    places.unit_parts = aligned_elements(tensor.element);
    return places;
  }
  places.unit_parts = 8;
  places.element_parts = row.bits;
  for (int axis = 0; axis < tensor.shape.rank(); ++axis) {
    places.strides[axis] = tensor.shape[axis] > 1 ? tensor.strides[axis] * row.bits : 0;
  }
  return places;
}

/// Whether distances within the tensor can be counted in bits.
bool is_countable(const BoundTensor& tensor) { return tensor.last_index <= INT64_MAX / 64; }

std::string reach_in_words(ElementType element, uint64_t last) {
  if (is_sub_byte(element)) {
    return fmt::format("element {} of {} bit{} each", last, bits_of(element),
                       bits_of(element) == 1 ? "" : "s");
  }
  return fmt::format("element {} of {} bytes each", last, bits_of(element) / 8);
}

}  // namespace

bool is_dense(const BoundTensor& tensor) {
  if (tensor.count == 0) return true;
  int64_t tight = 1;
  for (int axis = tensor.shape.rank() - 1; axis >= 0; --axis) {
    if (tensor.shape[axis] == 1) continue;
    if (tensor.strides[axis] != tight) return false;
    tight *= tensor.shape[axis];
  }
  return true;
}

Result<BoundTensor> bind_tensor(std::string what, ElementType element, const Dims& shape,
                                const Dims& strides, bool is_output) {
  BoundTensor tensor;
  tensor.what = std::move(what);
  tensor.element = element;
  tensor.shape = shape;
  tensor.strides = strides.empty() ? dense_strides(shape) : strides;
  if (tensor.strides.rank() != shape.rank()) {
    return invalid(
        fmt::format("{}: {} strides for shape {}; expected one for each of its {} "
                    "dimensions",
                    tensor.what, strides.rank(), to_string(shape), shape.rank()));
  }
  tensor.count = element_count(shape).value_or(0);
  if (tensor.count == 0) return tensor;
  int64_t last = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    const int64_t stride = tensor.strides[axis];
    if (stride <= 0) {
      return invalid(fmt::format("{}: stride {} on axis {} of shape {}; expected a positive stride",
                                 tensor.what, stride, axis, to_string(shape)));
    }
    int64_t reach = 0;
    if (__builtin_mul_overflow(stride, shape[axis] - 1, &reach) ||
        __builtin_add_overflow(last, reach, &last) || !byte_size(element, last) ||
        last == INT64_MAX) {
      return invalid(fmt::format("{}: strides {} over shape {} reach beyond 2^63 bytes",
                                 tensor.what, to_string(tensor.strides), to_string(shape)));
    }
  }
  tensor.last_index = last;
  if (is_output && !writes_each_element_once(tensor)) {
    return invalid(fmt::format("{}: strides {} over shape {} make elements overlap", tensor.what,
                               to_string(tensor.strides), to_string(shape)));
  }
  return tensor;
}

Status check_element(std::string_view what, ElementType element) {
  if (is_element_type(element)) return {};
  return invalid(fmt::format("{}: element type number {}; expected 0 to {}", what,
                             static_cast<int>(element), element_type_count - 1));
}

template <class Pointer>
Status check_view(const BoundTensor& tensor, const BasicView<Pointer>& view) {
  if (view.element != tensor.element) {
    if (Status status = check_element(tensor.what, view.element); !status) return status;
    return invalid(fmt::format("{}: element type {}; expected {}", tensor.what,
                               name_of(view.element), name_of(tensor.element)));
  }
  if (!(view.shape == tensor.shape)) {
    return invalid(fmt::format("{}: shape {}; expected {}, as bound", tensor.what,
                               to_string(view.shape), to_string(tensor.shape)));
  }
  if (tensor.count == 0) return {};
  if (view.strides.rank() != view.shape.rank() ||
      !same_strides(tensor.shape, view.strides, tensor.strides)) {
    return invalid(fmt::format("{}: strides {}; expected {}, as bound", tensor.what,
                               to_string(view.strides), to_string(tensor.strides)));
  }
  if (view.data == nullptr) {
    return invalid(fmt::format("{}: no data (null) for {} elements", tensor.what, tensor.count));
  }
  if (view.offset < 0) {
    return invalid(fmt::format("{}: offset {}; expected 0 or more", tensor.what, view.offset));
  }
  const uint64_t needed =
      static_cast<uint64_t>(view.offset) + static_cast<uint64_t>(tensor.last_index) + 1;
  const std::optional<uint64_t> bytes = bytes_for(tensor.element, needed);
  if (!bytes || *bytes > view.bytes) {
    return invalid(
        fmt::format("{}: {} bytes available; shape {} with strides {} at offset {} "
                    "reaches {}",
                    tensor.what, view.bytes, to_string(tensor.shape), to_string(tensor.strides),
                    view.offset, reach_in_words(tensor.element, needed - 1)));
  }
  return {};
}

template <class Pointer>
Footprint footprint(const BoundTensor& tensor, const BasicView<Pointer>& view) {
  const auto data = reinterpret_cast<uintptr_t>(view.data);
  const auto first = static_cast<uintptr_t>(view.offset);
  if (tensor.count == 0) return {data, data};
  const uintptr_t past_last = first + static_cast<uintptr_t>(tensor.last_index) + 1;
  const ElementInfo& row = info(tensor.element);
  const auto bits = static_cast<uintptr_t>(row.bits);
  if (row.order == StorageOrder::whole_bytes) {
    const uintptr_t size = bits / 8;
    return {data + first * size, data + past_last * size, 0};
  }
  const uintptr_t end = data + *bytes_for(tensor.element, past_last);
  if (row.order == StorageOrder::split) {
    const auto group = static_cast<uintptr_t>(aligned_elements(tensor.element));
    return {data + first / group * 3, end, static_cast<uint8_t>(first % group)};
  }
  return {data + first * bits / 8, end, static_cast<uint8_t>(first * bits % 8)};
}

Overlap find_overlap(const BoundTensor& a, const Footprint& at_a, const BoundTensor& b,
                     const Footprint& at_b, int64_t& steps) {
  if (!at_a.meets(at_b) || at_a.empty() || at_b.empty()) return Overlap::apart;
  if (!is_countable(a) || !is_countable(b)) return Overlap::undecided;
  return find_overlap(offsets_of(a, at_a), offsets_of(b, at_b), steps);
}

Overlap find_overlap(const BoundTensor& tensor, const Footprint& at, uintptr_t begin, size_t size,
                     int64_t& steps) {
  if (!at.meets({begin, begin + size, 0}) || at.empty() || size == 0) return Overlap::apart;
  if (!is_countable(tensor) || size > INT64_MAX) return Overlap::undecided;
  ElementOffsets bytes;
  bytes.begin = begin;
  bytes.element_parts = static_cast<int64_t>(size);
  return find_overlap(offsets_of(tensor, at), bytes, steps);
}

bool same_access(const BoundTensor& a, const BoundTensor& b) {
  return bits_of(a.element) == bits_of(b.element) &&
         info(a.element).order == info(b.element).order && a.shape == b.shape &&
         same_strides(a.shape, a.strides, b.strides);
}

template Status check_view(const BoundTensor&, const ConstView&);
template Status check_view(const BoundTensor&, const View&);
template Footprint footprint(const BoundTensor&, const ConstView&);
template Footprint footprint(const BoundTensor&, const View&);

}  // namespace castor
