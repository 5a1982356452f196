// SPDX-License-Identifier: Apache-2.0
// The helper functions of castor/mli_helpers.h that read a tensor, fill in strides, or tell about
// the library.
#include "castor/mli_helpers.h"

#include "runtime/mli/mode.hpp"
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

bool mli_hlp_tensor_data_ptr_cmp(const mli_tensor* in1, const mli_tensor* in2) {
  if (in1 == nullptr || in2 == nullptr || in1->rank == 0 || in2->rank == 0) return false;
  const mli::FormatInfo* format = mli::format_of(*in1);
  return format != nullptr && format == mli::format_of(*in2) &&
         in1->data.mem.pi8 == in2->data.mem.pi8;
}

void mli_hlp_set_tensor_mem_strides(mli_tensor* in) {
  if (in == nullptr || in->rank > MLI_MAX_RANK) return;
  uint32_t stride = 1;
  for (uint32_t axis = in->rank; axis-- > 0;) {
    in->mem_stride[axis] = static_cast<int32_t>(stride);
    stride *= in->shape[axis];
  }
}

uint8_t mli_hlp_accu_guard_bits_sa8_sa8(void) { return 32 - 2 * 8; }
uint8_t mli_hlp_accu_guard_bits_fx16_fx16(void) { return 64 - 2 * 16; }
uint8_t mli_hlp_accu_guard_bits_fx16_fx8(void) { return 32 - (16 + 8); }

const char* mli_hlp_compile_options_string(void) {
  const mli::Mode mode = mli::current_mode();
  const bool is_up = mode.rounding == CASTOR_MLI_UP;
  if (mode.arithmetic == CASTOR_MLI_EXACT) {
    return is_up ? " MLI_BUILD_REFERENCE=OFF ROUND_MODE=UP MLI_DEBUG_MODE=DBG_MODE_RET_CODES"
                 : " MLI_BUILD_REFERENCE=OFF ROUND_MODE=CONVERGENT "
                   "MLI_DEBUG_MODE=DBG_MODE_RET_CODES";
  }
  return is_up ? " MLI_BUILD_REFERENCE=ON ROUND_MODE=UP MLI_DEBUG_MODE=DBG_MODE_RET_CODES"
               : " MLI_BUILD_REFERENCE=ON ROUND_MODE=CONVERGENT MLI_DEBUG_MODE=DBG_MODE_RET_CODES";
}

}  // extern "C"
