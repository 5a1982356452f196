// SPDX-License-Identifier: Apache-2.0
#include "tools/castor/tensor_files.hpp"

#include <fmt/format.h>

#include <cstring>

namespace castor::tools {

namespace {

/// Copies a view with any strides, of elements of whole bytes, to dense bytes in C order.
std::vector<std::byte> to_dense(const ConstView& view, size_t count) {
  const size_t size = static_cast<size_t>(bits_of(view.element) / 8);
  std::vector<std::byte> dense(count * size);
  Dims at = Dims::filled(view.shape.rank(), 0);
  for (size_t i = 0; i < count; ++i) {
    int64_t index = view.offset;
    for (int axis = 0; axis < at.rank(); ++axis) index += at[axis] * view.strides[axis];
    std::memcpy(dense.data() + i * size,
                static_cast<const std::byte*>(view.data) + static_cast<size_t>(index) * size, size);
    for (int axis = at.rank() - 1; axis >= 0 && ++at[axis] == view.shape[axis]; --axis) {
      at[axis] = 0;
    }
  }
  return dense;
}

}  // namespace

Result<ElementType> carrier_of(ElementType type) {
  if (npy_descr(type)) return type;
  switch (bits_of(type)) {
    case 8: return ElementType::u8;
    case 16: return ElementType::u16;
    default:
      return Error{
          ErrorCode::unsupported,
          fmt::format(".npy files cannot hold {}, which is narrower than a byte", name_of(type))};
  }
}

Result<Array> read_tensor(const std::string& path, ElementType type, std::string_view what) {
  const Result<ElementType> carrier = carrier_of(type);
  if (!carrier) return carrier.error();
  Result<Array> array = read_npy(path);
  if (!array) return array;
  if (array->element != *carrier) {
    const std::string raw =
        *carrier == type ? "" : fmt::format(" (as raw bits in {})", name_of(*carrier));
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: '{}' holds {}, expected {}{}", what, path,
                             name_of(array->element), name_of(type), raw)};
  }
  array->element = type;
  return array;
}

Result<std::vector<std::byte>> read_dense(const std::string& path, const TensorType& type) {
  Result<Array> array = read_tensor(path, type.element, "constant");
  if (!array) return array.error();
  if (to_shape(array->shape) != type.shape) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("constant: '{}' has shape {}, expected {}", path,
                             to_string(array->shape), to_string(type.shape))};
  }
  if (!array->fortran_order) return std::move(array->bytes);
  return to_dense(array->view(), static_cast<size_t>(*element_count(array->shape)));
}

Result<OutputTensor> make_output(ElementType type, const Dims& shape) {
  const std::optional<int64_t> count = element_count(shape);
  const std::optional<int64_t> bytes = count ? byte_size(type, *count) : std::nullopt;
  if (!bytes) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}{} has more elements than memory can hold", name_of(type),
                             to_string(shape))};
  }
  return OutputTensor{type, shape, std::vector<std::byte>(static_cast<size_t>(*bytes))};
}

Status write_tensor(const std::string& path, const OutputTensor& tensor) {
  const Result<ElementType> carrier = carrier_of(tensor.element);
  if (!carrier) return carrier.error();
  return write_npy(path, *carrier, tensor.shape, tensor.bytes);
}

}  // namespace castor::tools
