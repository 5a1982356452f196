// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files. Source: NumPy Enhancement Proposal 1 and numpy.lib.format, versions 1.0,
// 2.0 and 3.0.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/result.hpp"
#include "ir/types/view.hpp"

namespace castor::tools {

/// The header of a file. Admitted are the little-endian types ?, u1 to u8, i1 to i8, f2 to f8.
struct NpyHeader {
  ElementType element = ElementType::f32;
  bool fortran_order = false;  ///< the first axis varies fastest
  Dims shape;
  size_t bytes = 0;  ///< bytes of the header, where the data begin
};

/// An array in memory.
struct Array {
  ElementType element = ElementType::f32;
  bool fortran_order = false;
  Dims shape;
  std::vector<std::byte> bytes;  ///< exactly as many as the elements take

  /// The array as a tensor: in C order dense, in Fortran order strided.
  ConstView view() const;
};

/// The type string of an element type as .npy files name it, such as "<f4", or nothing where
/// NumPy lacks the type.
std::optional<std::string_view> npy_descr(ElementType type);

/// Reads the header at the beginning of a file. Any input is safe: what is malformed, big endian,
/// structured, negative, or too big is refused with invalid_argument.
Result<NpyHeader> parse_npy_header(std::span<const std::byte> file);

/// Reads a whole file; the data must have exactly the size that the header implies.
Result<Array> parse_npy(std::vector<std::byte> file);

/// A version 1.0 header, padded to a multiple of 64 bytes, for a dense array in C order. `type`
/// must have an npy_descr.
std::string make_npy_header(ElementType type, const Dims& shape);

/// parse_npy of a file; errors name it.
Result<Array> read_npy(const std::string& path);

/// Writes a dense array in C order as version 1.0.
Status write_npy(const std::string& path, ElementType type, const Dims& shape,
                 std::span<const std::byte> bytes);

}  // namespace castor::tools
