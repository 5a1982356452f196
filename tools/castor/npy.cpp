// SPDX-License-Identifier: Apache-2.0
#include "tools/castor/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "tools/castor/files.hpp"

namespace castor::tools {

namespace {

/// Strides of a dense tensor whose first axis varies fastest.
Dims fortran_strides(const Dims& shape) {
  Dims reversed;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) reversed.push_back(shape[axis]);
  const Dims strides = dense_strides(reversed);
  Dims result;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) result.push_back(strides[axis]);
  return result;
}

}  // namespace

ConstView Array::view() const {
  const Dims strides = fortran_order ? fortran_strides(shape) : dense_strides(shape);
  return {bytes.data(), element, shape, strides, 0, bytes.size()};
}

Result<Array> parse_npy(std::vector<std::byte> file) {
  const Result<NpyHeader> header = parse_npy_header(file);
  if (!header) return header.error();
  const std::optional<int64_t> count = element_count(header->shape);
  const std::optional<int64_t> bytes = count ? byte_size(header->element, *count) : std::nullopt;
  if (!bytes) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("shape {} has more elements than memory can hold", to_string(header->shape))};
  }
  const size_t available = file.size() - header->bytes;
  if (available != static_cast<size_t>(*bytes)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("expected {} bytes of data for {}{}, found {}", *bytes,
                             name_of(header->element), to_string(header->shape), available)};
  }
  file.erase(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(header->bytes));
  return Array{header->element, header->fortran_order, header->shape, std::move(file)};
}

std::string make_npy_header(ElementType type, const Dims& shape) {
  constexpr size_t alignment = 64;
  constexpr std::string_view magic("\x93NUMPY\x01\x00", 8);
  const std::string trailing_comma = shape.rank() == 1 ? "," : "";
  std::string dictionary =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                  npy_descr(type).value(), fmt::join(shape, ", "), trailing_comma);
  const size_t unpadded = magic.size() + 2 + dictionary.size() + 1;
  dictionary.append((alignment - unpadded % alignment) % alignment, ' ');
  dictionary += '\n';
  const size_t length = dictionary.size();
  std::string header(magic);
  header += static_cast<char>(length & 0xFF);
  header += static_cast<char>(length >> 8);
  return header + dictionary;
}

Result<Array> read_npy(const std::string& path) {
  Result<std::vector<std::byte>> file = read_file(path);
  if (!file) return file.error();
  Result<Array> array = parse_npy(std::move(file).value());
  if (array) return array;
  return Error{array.error().code, fmt::format("'{}': {}", path, array.error().message)};
}

Status write_npy(const std::string& path, ElementType type, const Dims& shape,
                 std::span<const std::byte> bytes) {
  const std::string header = make_npy_header(type, shape);
  const std::array parts = {std::as_bytes(std::span(header)), bytes};
  return write_file(path, parts);
}

}  // namespace castor::tools
