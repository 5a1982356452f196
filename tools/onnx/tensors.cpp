// SPDX-License-Identifier: Apache-2.0
#include "tools/onnx/tensors.hpp"

#include <fmt/format.h>
#include <onnx.pb.h>

#include <charconv>
#include <cstring>
#include <fstream>

namespace castor::onnx_file {

namespace {

namespace fs = std::filesystem;

Error broken(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

/// TensorProto.DataLocation
constexpr int32_t external = 1;

/// The values of a typed field, each in sizeof(Unit) bytes.
template <class Unit, class Field>
std::vector<std::byte> units(const Field& field) {
  std::vector<std::byte> bytes(static_cast<size_t>(field.size()) * sizeof(Unit));
  for (int i = 0; i < field.size(); ++i) {
    const Unit unit = static_cast<Unit>(field[i]);
    std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof unit, &unit, sizeof unit);
  }
  return bytes;
}

/// A value of int32_data is one element's bits; for types narrower than a byte, one packed byte.
std::vector<std::byte> typed_data(const TensorProto& tensor, ElementType type) {
  switch (type) {
    case ElementType::f32: return units<float>(tensor.float_data());
    case ElementType::f64: return units<double>(tensor.double_data());
    case ElementType::i64: return units<int64_t>(tensor.int64_data());
    case ElementType::u64: return units<uint64_t>(tensor.uint64_data());
    case ElementType::u32: return units<uint32_t>(tensor.uint64_data());
    case ElementType::i32: return units<int32_t>(tensor.int32_data());
    default: break;
  }
  return bits_of(type) == 16 ? units<uint16_t>(tensor.int32_data())
                             : units<uint8_t>(tensor.int32_data());
}

/// raw_data is castor's storage: little endian, sub-byte elements from the low bits on.
std::vector<std::byte> data_in_message(const TensorProto& tensor, ElementType type) {
  if (tensor.raw_data().empty()) return typed_data(tensor, type);
  const auto raw = std::as_bytes(std::span(tensor.raw_data()));
  return {raw.begin(), raw.end()};
}

/// Where the elements of a tensor are in a file.
struct FileRange {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;  ///< nothing: to the end of the file
};

Result<uint64_t> number_in(const std::string& text, std::string_view key) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return broken(fmt::format("external data has the {} '{}', expected a number", key, text));
}

Result<FileRange> file_range_of(const TensorProto& tensor) {
  FileRange range;
  for (const StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") range.location = entry.value();
    if (entry.key() != "offset" && entry.key() != "length") continue;
    const auto number = number_in(entry.value(), entry.key());
    if (!number) return number.error();
    if (entry.key() == "offset") range.offset = *number;
    if (entry.key() == "length") range.length = *number;
  }
  if (range.location.empty()) return broken("external data without a location");
  return range;
}

/// The file, if it is inside the folder, also where links lead elsewhere.
Result<fs::path> file_inside(const fs::path& folder, const std::string& location) {
  const fs::path relative(location);
  std::error_code error;
  const fs::path base = fs::canonical(folder.empty() ? fs::path(".") : folder, error);
  if (error) return Error{ErrorCode::io, fmt::format("cannot read the folder {}", folder.string())};
  const fs::path file = fs::weakly_canonical(base / relative, error);
  const fs::path inside = file.lexically_relative(base);
  const bool leaves = error || relative.is_absolute() || inside.empty() || *inside.begin() == "..";
  if (leaves)
    return broken(fmt::format("external data '{}' is outside the model's folder", location));
  if (!fs::is_regular_file(file, error)) {
    return Error{ErrorCode::io, fmt::format("external data '{}' is no file", location)};
  }
  return file;
}

Result<std::vector<std::byte>> data_in_file(const TensorProto& tensor, const fs::path& folder,
                                            uint64_t expected) {
  const auto range = file_range_of(tensor);
  if (!range) return range.error();
  if (range->length && *range->length != expected) {
    return broken(fmt::format("external data of {} bytes, expected {}", *range->length, expected));
  }
  const auto file = file_inside(folder, range->location);
  if (!file) return file.error();
  std::error_code error;
  const uint64_t size = fs::file_size(*file, error);
  if (error || range->offset > size || size - range->offset < expected) {
    return broken(fmt::format("external data '{}' has {} bytes, expected {} from offset {} on",
                              range->location, size, expected, range->offset));
  }
  std::vector<std::byte> bytes(expected);
  std::ifstream stream(*file, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(range->offset));
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(expected));
  if (!stream) return Error{ErrorCode::io, fmt::format("cannot read '{}'", range->location)};
  return bytes;
}

Result<Dims> shape_of(const TensorProto& tensor) {
  if (tensor.dims_size() > max_rank) {
    return broken(fmt::format("a tensor of {} dimensions, expected at most {}", tensor.dims_size(),
                              max_rank));
  }
  Dims shape;
  for (const int64_t extent : tensor.dims()) {
    if (extent < 0) return broken(fmt::format("an extent of {}", extent));
    shape.push_back(extent);
  }
  return shape;
}

}  // namespace

Result<onnx::Tensor> read_tensor(const TensorProto& tensor, const fs::path* folder,
                                 std::string binding) {
  const auto element = onnx::element_type_of(tensor.data_type());
  if (!element) {
    return Error{ErrorCode::unsupported, fmt::format("castor has no tensors of {}",
                                                     onnx::data_type_name(tensor.data_type()))};
  }
  const auto shape = shape_of(tensor);
  if (!shape) return shape.error();
  const auto count = element_count(*shape);
  const auto expected = count ? byte_size(*element, *count) : std::nullopt;
  if (!expected) return broken(fmt::format("the extents {} overflow", to_string(*shape)));
  ConstantData data{.binding = std::move(binding), .bytes = {}};
  if (tensor.data_location() == external) {
    if (folder == nullptr) return broken("external data where none is expected");
    auto bytes = data_in_file(tensor, *folder, static_cast<uint64_t>(*expected));
    if (!bytes) return bytes.error();
    data.bytes = std::move(*bytes);
  } else {
    data.bytes = data_in_message(tensor, *element);
  }
  if (data.bytes.size() != static_cast<uint64_t>(*expected)) {
    return broken(fmt::format("{} bytes for {}{}, expected {}", data.bytes.size(),
                              name_of(*element), to_string(*shape), *expected));
  }
  return onnx::Tensor{*element, *shape, std::make_shared<const ConstantData>(std::move(data))};
}

}  // namespace castor::onnx_file
