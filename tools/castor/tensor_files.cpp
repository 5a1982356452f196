// SPDX-License-Identifier: Apache-2.0
#include "tools/castor/tensor_files.hpp"

#include <fmt/format.h>

#include <cstring>

#include "ir/types/storage.hpp"

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

/// Elements that fit into `bytes`; of the split layouts, into whole groups.
int64_t elements_in(ElementType type, size_t bytes) {
  const auto count = static_cast<int64_t>(bytes);
  if (info(type).order == StorageOrder::split) return count / 3 * aligned_elements(type);
  return count * 8 / bits_of(type);
}

std::string travelling_as(ElementType type) {
  const ElementType carrier = carrier_of(type);
  if (carrier == type) return "";
  return fmt::format(" (as {} in {})", is_sub_byte(type) ? "packed bytes" : "raw bits",
                     name_of(carrier));
}

/// The shape of a constant's type, which has no unknowns.
Dims fixed_extents(const Shape& shape) {
  Dims extents;
  for (const Dim& dim : shape) extents.push_back(dim.extent);
  return extents;
}

}  // namespace

ElementType carrier_of(ElementType type) {
  if (npy_descr(type)) return type;
  return bits_of(type) == 16 ? ElementType::u16 : ElementType::u8;
}

Result<Array> read_tensor(const std::string& path, ElementType type, std::string_view what) {
  const ElementType carrier = carrier_of(type);
  Result<Array> array = read_npy(path);
  if (!array) return array;
  if (array->element != carrier) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: '{}' holds {}, expected {}{}", what, path,
                             name_of(array->element), name_of(type), travelling_as(type))};
  }
  if (is_sub_byte(type) && array->shape.rank() != 1) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: '{}' has shape {}, expected one dimension: {} travels as packed "
                             "bytes",
                             what, path, to_string(array->shape), name_of(type))};
  }
  array->element = type;
  if (!is_sub_byte(type)) return array;
  array->fortran_order = false;
  if (Status status = give_shape(*array, {elements_in(type, array->bytes.size())}, what); !status) {
    return status.error();
  }
  return array;
}

Status give_shape(Array& array, const Dims& shape, std::string_view what) {
  const std::optional<int64_t> count = element_count(shape);
  const std::optional<int64_t> bytes = count ? byte_size(array.element, *count) : std::nullopt;
  if (!bytes || static_cast<size_t>(*bytes) != array.bytes.size()) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("{}: {}{} takes {} packed bytes, found {}", what, name_of(array.element),
                    to_string(shape), bytes ? std::to_string(*bytes) : "more than 2^63",
                    array.bytes.size())};
  }
  array.shape = shape;
  return {};
}

Result<std::vector<std::byte>> read_dense(const std::string& path, const TensorType& type) {
  Result<Array> array = read_tensor(path, type.element, "constant");
  if (!array) return array.error();
  if (is_sub_byte(type.element)) {
    Status status = give_shape(*array, fixed_extents(type.shape), "constant");
    if (!status) return status.error();
    return std::move(array->bytes);
  }
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
  const ElementType carrier = carrier_of(tensor.element);
  if (!is_sub_byte(tensor.element)) return write_npy(path, carrier, tensor.shape, tensor.bytes);
  return write_npy(path, carrier, {static_cast<int64_t>(tensor.bytes.size())}, tensor.bytes);
}

}  // namespace castor::tools
