// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind/transpose_bytes.hpp"

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <utility>

namespace castor::detail {

namespace {

constexpr int64_t side = 16;         ///< squares that registers transpose
constexpr int64_t block = 4 * side;  ///< squares whose cache lines are used as a whole

struct Vector {
  __m128i bytes;
};

/// Each round puts the halves of the index's bits in another order; after four, row and column
/// are exchanged.
void transpose_square(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step) {
  std::array<Vector, side> rows;
  std::array<Vector, side> others;
  for (size_t i = 0; i < side; ++i) {
    const std::byte* row = from + static_cast<int64_t>(i) * from_step;
    rows[i].bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row));
  }
  for (int round = 0; round < 4; ++round) {
    for (size_t i = 0; i < side / 2; ++i) {
      others[2 * i].bytes = _mm_unpacklo_epi8(rows[i].bytes, rows[i + side / 2].bytes);
      others[2 * i + 1].bytes = _mm_unpackhi_epi8(rows[i].bytes, rows[i + side / 2].bytes);
    }
    std::swap(rows, others);
  }
  for (size_t i = 0; i < side; ++i) {
    std::byte* row = to + static_cast<int64_t>(i) * to_step;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(row), rows[i].bytes);
  }
}

}  // namespace

void transpose_bytes(const std::byte* from, int64_t rows, int64_t columns, std::byte* to) {
  const auto transpose_part = [&](int64_t row, int64_t column, int64_t height, int64_t width) {
    const std::byte* first = from + row * columns + column;
    std::byte* result = to + column * rows + row;
    if (height == side && width == side) return transpose_square(first, columns, result, rows);
    for (int64_t i = 0; i < height; ++i) {
      for (int64_t j = 0; j < width; ++j) result[j * rows + i] = first[i * columns + j];
    }
  };
  for (int64_t row_block = 0; row_block < rows; row_block += block) {
    const int64_t row_end = std::min(row_block + block, rows);
    for (int64_t column_block = 0; column_block < columns; column_block += block) {
      const int64_t column_end = std::min(column_block + block, columns);
      for (int64_t column = column_block; column < column_end; column += side) {
        for (int64_t row = row_block; row < row_end; row += side) {
          transpose_part(row, column, std::min(side, row_end - row),
                         std::min(side, column_end - column));
        }
      }
    }
  }
}

}  // namespace castor::detail
