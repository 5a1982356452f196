// SPDX-License-Identifier: Apache-2.0
// What the fields of an mli_tensor say, read so that no contents can do harm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "castor/mli.h"

namespace castor::mli {

/// One row of the table of supported element types.
struct FormatInfo {
  mli_element_type type;
  uint32_t bytes;      ///< bytes of an element
  bool is_asymmetric;  ///< has scale and zero point, and may be quantized along an axis
};

/// The format of a tensor; null for all other element types, whatever number stands there.
const FormatInfo* format_of(const mli_tensor& tensor);

/// Whether a tensor's one element is in its structure.
inline bool holds_its_element(const mli_tensor& tensor) {
  return tensor.rank == 0 && tensor.data.capacity == 0;
}

/// The address of the first element.
inline const std::byte* data_of(const mli_tensor& tensor) {
  if (holds_its_element(tensor)) return reinterpret_cast<const std::byte*>(&tensor.data.mem);
  return reinterpret_cast<const std::byte*>(tensor.data.mem.pi8);
}
inline std::byte* data_of(mli_tensor& tensor) {
  return const_cast<std::byte*>(data_of(std::as_const(tensor)));
}

/// Whether an asymmetric tensor has parameters for each slice along an axis.
inline bool is_per_axis(const mli_tensor& tensor) { return tensor.el_params.sa.dim >= 0; }

/// Slices of an asymmetric tensor whose axis, if it has one, is below its rank.
inline uint32_t slices_of(const mli_tensor& tensor) {
  return is_per_axis(tensor) ? tensor.shape[tensor.el_params.sa.dim] : 1;
}

/// Whether the axis of an asymmetric tensor is valid and its parameters are stored as that demands:
/// arrays of enough capacity per axis, values of capacity 0 per tensor. Of a tensor of valid shape.
bool has_valid_containers(const mli_tensor& tensor);

/// The distance from the first element to the last, in elements. Of a tensor that passed its
/// checks.
uint64_t last_element(const mli_tensor& tensor);

/// An entry of an array of parameters, which need not be aligned.
template <class Parameter>
Parameter entry(const Parameter* array, uint32_t index) {
  Parameter value;
  std::memcpy(&value, reinterpret_cast<const std::byte*>(array) + index * sizeof(Parameter),
              sizeof(Parameter));
  return value;
}

// Parameters of a slice. Of an asymmetric tensor per axis, the index is within its arrays.
int32_t scale_of(const mli_tensor& tensor, const FormatInfo& format, uint32_t slice);
int32_t frac_bits_of(const mli_tensor& tensor, const FormatInfo& format, uint32_t slice);
int16_t zero_point_of(const mli_tensor& tensor, const FormatInfo& format, uint32_t slice);

}  // namespace castor::mli
