// SPDX-License-Identifier: Apache-2.0
#include "ir/shape/shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/types/storage.hpp"

namespace castor {

std::string to_string(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (const Dim& dim : shape) {
    if (text.size() > 1) text += ", ";
    text += dim.is_fixed() ? std::to_string(dim.extent) : "?" + dim.name;
  }
  return text + "]";
}

bool same_quantization(const QuantizationPtr& a, const QuantizationPtr& b) {
  return a == b || (a && b && *a == *b);
}

TensorType quantized_type(Quantization quantization, Shape shape) {
  const bool is_known = is_quantized_format(quantization.format);  // else verify_type refuses it
  const ElementType container = is_known ? info(quantization.format).container : ElementType::i8;
  return {container, std::move(shape),
          std::make_shared<const Quantization>(std::move(quantization))};
}

std::string element_text(const TensorType& type) {
  return type.quantization ? to_string(*type.quantization) : std::string(name_of(type.element));
}

std::string to_string(const TensorType& type) { return element_text(type) + to_string(type.shape); }

Shape to_shape(const Dims& extents) { return {extents.begin(), extents.end()}; }

bool is_fixed(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is_fixed(); });
}

std::optional<int64_t> element_count(const Dims& extents) {
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return 0;
  int64_t count = 1;
  for (int64_t extent : extents) {
    if (__builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  }
  return count;
}

std::optional<int64_t> byte_size(ElementType type, int64_t count) {
  const int64_t bits = bits_of(type);
  if (info(type).order == StorageOrder::split) {  // whole groups of three bytes
    const int64_t group = aligned_elements(type);
    return (count / group + (count % group != 0)) * storage_byte(type, group);
  }
  // Eight elements take as many bytes as one has bits: the product in bits might overflow.
  int64_t bytes = 0;
  if (__builtin_mul_overflow(count / 8, bits, &bytes) ||
      __builtin_add_overflow(bytes, (count % 8 * bits + 7) / 8, &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

Dims dense_strides(const Dims& extents) {
  Dims strides = Dims::filled(extents.rank(), 1);
  for (int axis = extents.rank() - 2; axis >= 0; --axis) {
    if (__builtin_mul_overflow(strides[axis + 1], std::max<int64_t>(extents[axis + 1], 1),
                               &strides[axis])) {
      strides[axis] = INT64_MAX;  // only beside a zero extent: no element is ever addressed
    }
  }
  return strides;
}

}  // namespace castor
