// SPDX-License-Identifier: Apache-2.0
// Loops that transpose blocks of eight by eight: k groups of NHWC pixels, and i32.
#include <algorithm>
#include <cstring>

#include "runtime/conv/vectors.hpp"

namespace castor::detail {

namespace {

/// Pixels and k groups of a block: its rows are vectors of 32-bit lanes.
constexpr int block_size = 8;
using Block = __m256i[block_size];

/// Eight k groups of each pixel, of bytes or widened to i16.
template <bool is_pairs>
CASTOR_AVX2 inline void load_k_groups(const std::byte* from, int64_t step, Block& block) {
  for (__m256i& k_groups : block) {
    k_groups = is_pairs ? _mm256_cvtepu8_epi16(load_16(from))
                        : _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    from += step;
  }
}

/// Row i becomes column i: pairs of lanes, then of pairs of lanes, then of halves of vectors.
CASTOR_AVX2 inline void transpose_lanes(Block& block) {
  Block pairs;
  for (int i = 0; i < block_size; i += 2) {
    pairs[i] = _mm256_unpacklo_epi32(block[i], block[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_epi32(block[i], block[i + 1]);
  }
  Block fours;
  for (int i = 0; i < block_size; i += 4) {
    for (int j = 0; j < 2; ++j) {
      fours[i + 2 * j] = _mm256_unpacklo_epi64(pairs[i + j], pairs[i + j + 2]);
      fours[i + 2 * j + 1] = _mm256_unpackhi_epi64(pairs[i + j], pairs[i + j + 2]);
    }
  }
  for (int i = 0; i < 4; ++i) {
    block[i] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x20);
    block[i + 4] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x31);
  }
}

template <bool is_pairs>
CASTOR_AVX2 void transpose_blocks(const ChannelSource& from, const KGroupSpec& spec,
                                  const PackedRows& to) {
  constexpr int64_t held = is_pairs ? 2 : 4;  // channels of a k group
  // Pixels that are gone through for eight k groups and then for the next ones, while the cache
  // lines of their channels stay in L1.
  constexpr int64_t pixels_at_once = 64;
  const __m256i sign_flips = _mm256_set1_epi32(static_cast<int>(spec.sign_flips));
  const __m256i zeros = _mm256_set1_epi32(static_cast<int>(spec.zeros));
  const int64_t k_groups = ceil_div(from.channels, held);
  const int64_t missing = k_groups * held - from.channels;  // channels of the last k group
  const __m256i last_ones = _mm256_set1_epi32(static_cast<int>(~0u >> (32 / held * missing)));
  const int count = static_cast<int>(std::min<int64_t>(k_groups, block_size));
  for (int64_t first = 0; first < from.pixels; first += pixels_at_once) {
    const int64_t end = std::min(first + pixels_at_once, from.pixels);
    for (int64_t next = 0; next < k_groups; next += block_size) {
      const int64_t k_group = std::min(next, k_groups - count);
      for (int64_t i = first; i < end; i += block_size) {
        const int64_t pixel = std::min(i, from.pixels - block_size);
        Block block;
        load_k_groups<is_pairs>(from.first + pixel * from.step + k_group * held, from.step, block);
        for (__m256i& numbers : block) {
          numbers = _mm256_sub_epi16(_mm256_xor_si256(numbers, sign_flips), zeros);
        }
        transpose_lanes(block);
        uint32_t* row = to.first + k_group * to.step + pixel;
        for (int k = 0; k < count; ++k, row += to.step) {
          const bool is_last = k_group + k == k_groups - 1;
          const __m256i numbers = is_last ? _mm256_and_si256(block[k], last_ones) : block[k];
          _mm256_storeu_si256(reinterpret_cast<__m256i*>(row), numbers);
        }
      }
    }
  }
}

}  // namespace

void transpose_k_groups(const ChannelSource& from, const KGroupSpec& spec, const PackedRows& to) {
  spec.engine == jit::ProductEngine::i16_pairs ? transpose_blocks<true>(from, spec, to)
                                               : transpose_blocks<false>(from, spec, to);
}

namespace {

/// Four rows of four.
void transpose_block(const int32_t* from, int64_t from_step, int32_t* to, int64_t to_step) {
  __m128i rows[4];
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * from_step));
  }
  const __m128i low_ab = _mm_unpacklo_epi32(rows[0], rows[1]);
  const __m128i high_ab = _mm_unpackhi_epi32(rows[0], rows[1]);
  const __m128i low_cd = _mm_unpacklo_epi32(rows[2], rows[3]);
  const __m128i high_cd = _mm_unpackhi_epi32(rows[2], rows[3]);
  const __m128i columns[4] = {
      _mm_unpacklo_epi64(low_ab, low_cd), _mm_unpackhi_epi64(low_ab, low_cd),
      _mm_unpacklo_epi64(high_ab, high_cd), _mm_unpackhi_epi64(high_ab, high_cd)};
  for (int i = 0; i < 4; ++i) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * to_step), columns[i]);
  }
}

/// Eight rows of eight.
CASTOR_AVX2 void transpose_wide_block(const int32_t* from, int64_t from_step, int32_t* to,
                                      int64_t to_step) {
  Block block;
  for (int i = 0; i < block_size; ++i) {
    block[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i * from_step));
  }
  transpose_lanes(block);
  for (int i = 0; i < block_size; ++i) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i * to_step), block[i]);
  }
}

/// What is no block of eight.
void transpose_remainder(const int32_t* from, int64_t from_step, int64_t rows, int64_t columns,
                         int32_t* to, int64_t to_step) {
  for (int64_t column = 0; column < columns; column += 4) {
    for (int64_t row = 0; row < rows; row += 4) {
      if (column + 4 <= columns && row + 4 <= rows) {
        transpose_block(from + row * from_step + column, from_step, to + column * to_step + row,
                        to_step);
        continue;
      }
      for (int64_t c = column; c < std::min(column + 4, columns); ++c) {
        for (int64_t r = row; r < std::min(row + 4, rows); ++r) {
          // Outputs of the caller may begin at any byte.
          std::memcpy(to + c * to_step + r, from + r * from_step + c, sizeof(int32_t));
        }
      }
    }
  }
}

}  // namespace

void transpose_i32(const int32_t* from, int64_t from_step, int64_t rows, int64_t columns,
                   int32_t* to, int64_t to_step) {
  for (int64_t column = 0; column < columns; column += block_size) {
    for (int64_t row = 0; row < rows; row += block_size) {
      const int64_t row_count = std::min<int64_t>(rows - row, block_size);
      const int64_t column_count = std::min<int64_t>(columns - column, block_size);
      const int32_t* const first = from + row * from_step + column;
      int32_t* const first_to = to + column * to_step + row;
      const bool is_whole = std::min(row_count, column_count) == block_size;
      is_whole ? transpose_wide_block(first, from_step, first_to, to_step)
               : transpose_remainder(first, from_step, row_count, column_count, first_to, to_step);
    }
  }
}

}  // namespace castor::detail
