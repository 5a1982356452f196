// SPDX-License-Identifier: Apache-2.0
// embARC MLI tensors that pass all checks, to be changed by tests.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "castor/mli.h"

namespace castor::test::mli {

inline constexpr int32_t largest = INT32_MAX;
alignas(8) inline std::array<int8_t, 1024> memory;
inline std::array<int16_t, 8> scales;
inline std::array<int16_t, 8> zero_points;
inline std::array<int8_t, 8> frac_bits;

/// A dense tensor of sa8, [2, 3, 4], quantized along axis 1, in 24 bytes from `offset` on.
inline mli_tensor per_axis_tensor(size_t offset) {
  scales.fill(1);
  mli_tensor tensor = {};
  tensor.data.capacity = 24;
  tensor.data.mem.pi8 = memory.data() + offset;
  tensor.rank = 3;
  constexpr std::array<uint32_t, 4> shape = {2, 3, 4, 0};
  constexpr std::array<int32_t, 4> strides = {12, 4, 1, 0};
  std::copy(shape.begin(), shape.end(), tensor.shape);
  std::copy(strides.begin(), strides.end(), tensor.mem_stride);
  tensor.el_type = MLI_EL_SA_8;
  auto& sa = tensor.el_params.sa;
  sa.dim = 1;
  sa.scale.capacity = sa.zero_point.capacity = 6;
  sa.scale.mem.pi16 = scales.data();
  sa.zero_point.mem.pi16 = zero_points.data();
  sa.scale_frac_bits.capacity = 3;
  sa.scale_frac_bits.mem.pi8 = frac_bits.data();
  return tensor;
}

inline void quantize_per_tensor(mli_tensor& tensor) {
  auto& sa = tensor.el_params.sa;
  sa = {};
  sa.dim = -1;
  sa.scale.mem.i16 = 1;
}

/// Gives a tensor another type, with parameters per tensor, and the capacity that it needs.
inline void retype(mli_tensor& tensor, mli_element_type type, uint32_t bytes) {
  tensor.el_type = type;
  tensor.el_params = {};
  if (type == MLI_EL_SA_8 || type == MLI_EL_SA_32) quantize_per_tensor(tensor);
  tensor.data.capacity = 24 * bytes;
}

/// A number that need not be one of the enumeration.
inline void set_type(mli_tensor& tensor, uint32_t type) {
  std::memcpy(&tensor.el_type, &type, sizeof(type));
}

inline void widen_innermost_stride(mli_tensor& tensor) {
  tensor.mem_stride[0] = 24;
  tensor.mem_stride[1] = 8;
  tensor.mem_stride[2] = 2;
  tensor.data.capacity = 256;
}

/// Lets the data begin `offset` bytes after another tensor's.
inline void place(mli_tensor& tensor, const mli_tensor& other, ptrdiff_t offset) {
  tensor.data.mem.pi8 = other.data.mem.pi8 + offset;
}

/// A supported element type and its width.
struct Type {
  mli_element_type type;
  uint32_t bytes;
};
inline constexpr Type types[] = {
    {MLI_EL_FX_8, 1}, {MLI_EL_FX_16, 2}, {MLI_EL_SA_8, 1}, {MLI_EL_SA_32, 4}, {MLI_EL_FP_32, 4}};

}  // namespace castor::test::mli
