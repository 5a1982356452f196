// SPDX-License-Identifier: Apache-2.0
// Copies of rows of consecutive sub-byte elements, which may begin and end inside bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/types/element_type.hpp"

namespace castor::detail {

/// The rows of a tile, in a tensor of such elements (see is_bit_string).
struct BitRows {
  ElementType element = ElementType::u4;
  std::byte* data = nullptr;  ///< where element 0 is
  int64_t first = 0;          ///< number of the tile's first element
  int64_t row_step = 0;       ///< elements from a row's first to the next row's
  int64_t columns = 0;        ///< elements of a row
  int64_t rows = 0;
};

/// Bytes that copies need after their last element.
inline constexpr size_t bit_rows_slack = 8;

/// Makes `to`, which begins with a byte, of all rows without gaps. Reads no byte before the first
/// row or after the last, and between rows no page that has nothing of them.
void gather_bit_rows(const BitRows& from, std::byte* to);

/// Makes the rows of such a copy. Reads as much; other bits stay as they are, and no byte is
/// written that has none of the rows.
void scatter_bit_rows(const std::byte* from, const BitRows& to);

}  // namespace castor::detail
