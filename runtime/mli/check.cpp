// SPDX-License-Identifier: Apache-2.0
#include "runtime/mli/check.hpp"

#include <algorithm>

#include "runtime/check/strided_overlap.hpp"
#include "runtime/mli/tensor.hpp"

namespace castor::mli {

namespace {

constexpr uint32_t max = INT32_MAX;  ///< largest capacity in bytes, and largest dimension

// One tensor

bool has_valid_extents(const mli_tensor& tensor) {
  for (uint32_t axis = 0; axis < tensor.rank; ++axis) {
    if (tensor.mem_stride[axis] <= 0) return false;
    if (tensor.shape[axis] == 0 || tensor.shape[axis] > max) return false;
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
  if (holds_its_element(tensor)) return true;
  return last_element(tensor) < tensor.data.capacity / format.bytes;
}

bool has_valid_parameters(const mli_tensor& tensor, const FormatInfo& format) {
  if (!format.is_asymmetric) return true;
  if (!has_valid_containers(tensor)) return false;
  for (uint32_t slice = 0; slice < slices_of(tensor); ++slice) {
    if (scale_of(tensor, format, slice) <= 0) return false;
  }
  return true;
}

/// `format`: of a tensor that is not null.
mli_status check_layout(const mli_tensor* tensor, const FormatInfo*& format) {
  if (tensor == nullptr || data_of(*tensor) == nullptr) return MLI_STATUS_BAD_TENSOR;
  format = format_of(*tensor);
  if (format == nullptr) return MLI_STATUS_TYPE_MISMATCH;
  if (tensor->rank > MLI_MAX_RANK || tensor->data.capacity > max) return MLI_STATUS_BAD_TENSOR;
  if (!has_valid_extents(*tensor)) return MLI_STATUS_BAD_TENSOR;
  if (!has_nested_strides(*tensor)) return MLI_STATUS_BAD_TENSOR;
  return has_room(*tensor, *format) ? MLI_STATUS_OK : MLI_STATUS_NOT_ENGH_MEM;
}

// Two tensors that are valid by themselves

bool have_one_shape(const mli_tensor& a, const mli_tensor& b) {
  return a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

bool has_innermost_stride_1(const mli_tensor& tensor) {
  return tensor.rank == 0 || tensor.mem_stride[tensor.rank - 1] == 1;
}

bool have_equal_strides(const mli_tensor& a, const mli_tensor& b) {
  return format_of(a)->bytes == format_of(b)->bytes &&
         std::equal(a.mem_stride, a.mem_stride + a.rank, b.mem_stride);
}

/// One past the last byte of the elements.
uintptr_t end_of(const mli_tensor& tensor) {
  const auto begin = reinterpret_cast<uintptr_t>(data_of(tensor));
  return begin + (last_element(tensor) + 1) * format_of(tensor)->bytes;
}

ElementOffsets offsets_of(const mli_tensor& tensor) {
  ElementOffsets places;
  places.begin = reinterpret_cast<uintptr_t>(data_of(tensor));
  places.unit_bytes = format_of(tensor)->bytes;
  for (uint32_t axis = 0; axis < tensor.rank; ++axis) {
    places.extents.push_back(tensor.shape[axis]);
    places.strides.push_back(tensor.mem_stride[axis]);
  }
  return places;
}

/// Whether memory is shared in no other way than element by element, in place.
bool share_nothing_or_all(const mli_tensor& a, const mli_tensor& b) {
  if (data_of(a) == data_of(b)) return have_equal_strides(a, b);
  if (end_of(a) <= reinterpret_cast<uintptr_t>(data_of(b)) ||
      end_of(b) <= reinterpret_cast<uintptr_t>(data_of(a))) {
    return true;
  }
  int64_t steps = max_overlap_steps;
  return find_overlap(offsets_of(a), offsets_of(b), steps) == Overlap::apart;
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

mli_status check_layout(const mli_tensor* tensor) {
  const FormatInfo* format = nullptr;
  return check_layout(tensor, format);
}

mli_status check_tensor(const mli_tensor* tensor) {
  const FormatInfo* format = nullptr;
  const mli_status status = check_layout(tensor, format);
  if (status != MLI_STATUS_OK) return status;
  return has_valid_parameters(*tensor, *format) ? MLI_STATUS_OK : MLI_STATUS_BAD_TENSOR;
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
