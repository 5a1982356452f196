// SPDX-License-Identifier: Apache-2.0
#include "runtime/mli/check.hpp"

#include <algorithm>

#include "runtime/mli/tensor.hpp"

namespace castor::mli {

namespace {

constexpr uint32_t most = INT32_MAX;  ///< of capacities in bytes and of dimensions

// One tensor

bool has_valid_extents(const mli_tensor& tensor) {
  for (uint32_t axis = 0; axis < tensor.rank; ++axis) {
    if (tensor.mem_stride[axis] <= 0) return false;
    if (tensor.shape[axis] == 0 || tensor.shape[axis] > most) return false;
  }
  return true;
}

/// Whether every index of an axis steps over all that the next inner axis spans.
bool has_nested_strides(const mli_tensor& tensor) {
  for (uint32_t axis = 0; axis + 1 < tensor.rank; ++axis) {
    const uint64_t span =
        uint64_t{tensor.shape[axis + 1]} * static_cast<uint64_t>(tensor.mem_stride[axis + 1]);
    if (static_cast<uint64_t>(tensor.mem_stride[axis]) < span) return false;
  }
  return true;
}

bool has_room(const mli_tensor& tensor, const FormatInfo& format) {
  return last_element(tensor) < tensor.data.capacity / format.bytes;
}

/// Whether a container holds one inline value, or an array of so many entries.
bool holds(const mli_data_container& container, const void* array, bool per_axis, uint64_t bytes) {
  if (!per_axis) return container.capacity == 0;
  return array != nullptr && container.capacity >= bytes;
}

bool has_valid_parameters(const mli_tensor& tensor, const FormatInfo& format) {
  if (!format.is_asymmetric) return true;
  const auto& sa = tensor.el_params.sa;
  const bool per_axis = is_per_axis(tensor);
  if (per_axis && static_cast<uint32_t>(sa.dim) >= tensor.rank) return false;
  const uint32_t slices = per_axis ? tensor.shape[sa.dim] : 1;
  if (!holds(sa.scale, sa.scale.mem.pi16, per_axis, uint64_t{slices} * sizeof(int16_t)) ||
      !holds(sa.zero_point, sa.zero_point.mem.pi16, per_axis, uint64_t{slices} * sizeof(int16_t)) ||
      !holds(sa.scale_frac_bits, sa.scale_frac_bits.mem.pi8, per_axis, slices)) {
    return false;
  }
  for (uint32_t slice = 0; slice < slices; ++slice) {
    if (scale_of(tensor, format, slice) <= 0) return false;
  }
  return true;
}

// Two tensors that are valid by themselves

bool have_one_shape(const mli_tensor& a, const mli_tensor& b) {
  return a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

bool has_innermost_stride_1(const mli_tensor& tensor) {
  return tensor.rank == 0 || tensor.mem_stride[tensor.rank - 1] == 1;
}

bool have_one_walk(const mli_tensor& a, const mli_tensor& b) {
  return format_of(a)->bytes == format_of(b)->bytes &&
         std::equal(a.mem_stride, a.mem_stride + a.rank, b.mem_stride);
}

struct Range {
  uintptr_t begin;
  uintptr_t end;
};

/// The bytes from the first element to the last.
Range range_of(const mli_tensor& tensor) {
  const auto begin = reinterpret_cast<uintptr_t>(data_of(tensor));
  return {begin, begin + (last_element(tensor) + 1) * format_of(tensor)->bytes};
}

/// Whether memory is shared in no other way than element by element, in place.
bool share_nothing_or_all(const mli_tensor& a, const mli_tensor& b) {
  if (a.rank == 0) return true;
  if (data_of(a) == data_of(b)) return have_one_walk(a, b);
  const Range first = range_of(a);
  const Range second = range_of(b);
  return first.end <= second.begin || second.end <= first.begin;
}

bool have_different_axes(const mli_tensor& a, const mli_tensor& b) {
  if (!format_of(a)->is_asymmetric || !format_of(b)->is_asymmetric) return false;
  return is_per_axis(a) && is_per_axis(b) && a.el_params.sa.dim != b.el_params.sa.dim;
}

bool is_float(const mli_tensor& tensor) { return format_of(tensor)->type == MLI_EL_FP_32; }

mli_status check_pair(const mli_tensor& a, const mli_tensor& b, Accepted accepted) {
  if (!have_one_shape(a, b)) return MLI_STATUS_SHAPE_MISMATCH;
  if (!has_innermost_stride_1(a) || !has_innermost_stride_1(b)) {
    return MLI_STATUS_INCOMPATEBLE_TENSORS;
  }
  if (!share_nothing_or_all(a, b)) return MLI_STATUS_INCOMPATEBLE_TENSORS;
  if (have_different_axes(a, b)) return MLI_STATUS_SIZE_MISMATCH;
  if (accepted == Accepted::integers && (is_float(a) || is_float(b))) {
    return MLI_STATUS_TYPE_MISMATCH;
  }
  return MLI_STATUS_OK;
}

}  // namespace

mli_status check_tensor(const mli_tensor* tensor) {
  if (tensor == nullptr) return MLI_STATUS_BAD_TENSOR;
  if (tensor->rank > 0 && data_of(*tensor) == nullptr) return MLI_STATUS_BAD_TENSOR;
  const FormatInfo* format = format_of(*tensor);
  if (format == nullptr) return MLI_STATUS_TYPE_MISMATCH;
  if (tensor->rank > MLI_MAX_RANK || tensor->data.capacity > most) return MLI_STATUS_BAD_TENSOR;
  if (!has_valid_extents(*tensor)) return MLI_STATUS_BAD_TENSOR;
  if (!has_nested_strides(*tensor)) return MLI_STATUS_BAD_TENSOR;
  if (!has_room(*tensor, *format)) return MLI_STATUS_NOT_ENGH_MEM;
  if (!has_valid_parameters(*tensor, *format)) return MLI_STATUS_BAD_TENSOR;
  return MLI_STATUS_OK;
}

mli_status check_conversion(const mli_tensor* source, const mli_tensor* destination,
                            Accepted accepted) {
  const mli_status of_source = check_tensor(source);
  if (of_source != MLI_STATUS_OK) return of_source;
  const mli_status of_destination = check_tensor(destination);
  if (of_destination != MLI_STATUS_OK) return of_destination;
  return check_pair(*source, *destination, accepted);
}

}  // namespace castor::mli
