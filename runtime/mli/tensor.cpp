// SPDX-License-Identifier: Apache-2.0
#include "runtime/mli/tensor.hpp"

#include <array>

namespace castor::mli {

namespace {

constexpr std::array<FormatInfo, 5> formats = {{
    {MLI_EL_FX_8, 1, false},
    {MLI_EL_FX_16, 2, false},
    {MLI_EL_SA_8, 1, true},
    {MLI_EL_SA_32, 4, true},
    {MLI_EL_FP_32, 4, false},
}};

/// Whether a container holds one inline value, or an array of n entries.
bool holds(const mli_data_container& container, const void* array, bool per_axis, uint64_t bytes) {
  if (!per_axis) return container.capacity == 0;
  return array != nullptr && container.capacity >= bytes;
}

}  // namespace

const FormatInfo* format_of(const mli_tensor& tensor) {
  uint32_t type = 0;  // may be no value of the enumeration
  static_assert(sizeof(type) == sizeof(tensor.el_type));
  std::memcpy(&type, &tensor.el_type, sizeof(type));
  for (const FormatInfo& row : formats) {
    if (type == static_cast<uint32_t>(row.type)) return &row;
  }
  return nullptr;
}

uint64_t last_element(const mli_tensor& tensor) {
  uint64_t last = 0;
  for (uint32_t axis = 0; axis < tensor.rank; ++axis) {
    last += uint64_t{tensor.shape[axis] - 1} * static_cast<uint64_t>(tensor.mem_stride[axis]);
  }
  return last;
}

bool has_valid_containers(const mli_tensor& tensor) {
  const auto& sa = tensor.el_params.sa;
  const bool per_axis = is_per_axis(tensor);
  if (per_axis && static_cast<uint32_t>(sa.dim) >= tensor.rank) return false;
  const uint64_t slices = slices_of(tensor);
  return holds(sa.scale, sa.scale.mem.pi16, per_axis, slices * sizeof(int16_t)) &&
         holds(sa.zero_point, sa.zero_point.mem.pi16, per_axis, slices * sizeof(int16_t)) &&
         holds(sa.scale_frac_bits, sa.scale_frac_bits.mem.pi8, per_axis, slices);
}

int32_t scale_of(const mli_tensor& tensor, const FormatInfo& format, uint32_t slice) {
  if (!format.is_asymmetric) return 1;
  const mli_data_container& scale = tensor.el_params.sa.scale;
  return is_per_axis(tensor) ? entry(scale.mem.pi16, slice) : scale.mem.i16;
}

int32_t frac_bits_of(const mli_tensor& tensor, const FormatInfo& format, uint32_t slice) {
  if (format.type == MLI_EL_FP_32) return 0;
  if (!format.is_asymmetric) return tensor.el_params.fx.frac_bits;
  const mli_data_container& bits = tensor.el_params.sa.scale_frac_bits;
  return is_per_axis(tensor) ? entry(bits.mem.pi8, slice) : bits.mem.i8;
}

int16_t zero_point_of(const mli_tensor& tensor, const FormatInfo& format, uint32_t slice) {
  if (!format.is_asymmetric) return 0;
  const mli_data_container& zero_point = tensor.el_params.sa.zero_point;
  return is_per_axis(tensor) ? entry(zero_point.mem.pi16, slice) : zero_point.mem.i16;
}

}  // namespace castor::mli
