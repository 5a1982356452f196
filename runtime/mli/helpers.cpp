// SPDX-License-Identifier: Apache-2.0
// The helper functions of castor/mli.h.
#include "castor/mli.h"
#include "runtime/mli/tensor.hpp"

namespace castor::mli {

namespace {

using Asymmetric = decltype(mli_element_params::sa);
using Container = mli_data_container Asymmetric::*;

/// Whether the array in a container has an entry for this slice of the tensor. Trusts nothing.
bool has_entry(const mli_tensor& tensor, Container parameter, uint32_t bytes, uint32_t slice) {
  const auto axis = static_cast<uint32_t>(tensor.el_params.sa.dim);
  if (tensor.rank > MLI_MAX_RANK || axis >= tensor.rank) return false;
  const mli_data_container& array = tensor.el_params.sa.*parameter;
  return slice < tensor.shape[axis] && array.mem.pi8 != nullptr && slice < array.capacity / bytes;
}

/// The format of a tensor whose parameter can be read for this slice, or null. Of a tensor without
/// slices, any index is good.
const FormatInfo* format_with(const mli_tensor* tensor, Container parameter, uint32_t bytes,
                              uint32_t slice) {
  const FormatInfo* format = tensor == nullptr ? nullptr : format_of(*tensor);
  if (format == nullptr || !format->is_asymmetric || !is_per_axis(*tensor)) return format;
  return has_entry(*tensor, parameter, bytes, slice) ? format : nullptr;
}

}  // namespace

}  // namespace castor::mli

namespace mli = castor::mli;

extern "C" {

uint32_t mli_hlp_count_elem_num(const mli_tensor* in, uint32_t start_dim) {
  if (in == nullptr || in->rank > MLI_MAX_RANK) return 0;
  if (in->rank > 0 && start_dim >= in->rank) return 0;
  uint32_t count = 1;
  for (uint32_t axis = start_dim; axis < in->rank; ++axis) count *= in->shape[axis];
  return count;
}

uint32_t mli_hlp_tensor_element_size(const mli_tensor* in) {
  const mli::FormatInfo* format = in == nullptr ? nullptr : mli::format_of(*in);
  return format == nullptr ? 0 : format->bytes;
}

int32_t mli_hlp_tensor_scale_shift(const mli_tensor* in, uint32_t scale_idx) {
  const auto* format =
      mli::format_with(in, &mli::Asymmetric::scale_frac_bits, sizeof(int8_t), scale_idx);
  return format == nullptr ? 0 : mli::frac_bits_of(*in, *format, scale_idx);
}

int32_t mli_hlp_tensor_scale(const mli_tensor* in, uint32_t scale_idx) {
  const auto* format = mli::format_with(in, &mli::Asymmetric::scale, sizeof(int16_t), scale_idx);
  return format == nullptr ? 0 : mli::scale_of(*in, *format, scale_idx);
}

int16_t mli_hlp_tensor_zero_offset(const mli_tensor* in, uint32_t zero_idx) {
  const auto* format =
      mli::format_with(in, &mli::Asymmetric::zero_point, sizeof(int16_t), zero_idx);
  return format == nullptr ? int16_t{0} : mli::zero_point_of(*in, *format, zero_idx);
}

}  // extern "C"
