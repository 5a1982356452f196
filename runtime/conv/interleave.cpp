// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/interleave.hpp"

#include <emmintrin.h>

#include <algorithm>
#include <cstring>

namespace castor::detail {

namespace {

/// Rows of four channels that all are there.
struct FourRows {
  const uint8_t* rows[4];
  __m128i flip;
};

__m128i load_16(const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
__m128i load_8(const uint8_t* from) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
}
__m128i load_4(const uint8_t* from) {
  int32_t bytes;
  std::memcpy(&bytes, from, sizeof(bytes));
  return _mm_cvtsi32_si128(bytes);
}
/// Every second of 31 bytes.
__m128i load_16_of_31(const uint8_t* from) {
  const __m128i even = _mm_set1_epi16(0x00ff);
  const __m128i low = _mm_and_si128(load_16(from), even);
  const __m128i high = _mm_srli_epi16(load_16(from + 15), 8);  // ends with the last byte needed
  return _mm_packus_epi16(low, high);
}

void store_4(uint32_t* to, __m128i dwords) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), dwords);
}

/// Pixels from `i` on, as many as `load` gives: 4, 8 or 16.
template <int count, class Load>
void interleave_pixels(const FourRows& from, int64_t i, int64_t step, Load load, uint32_t* to) {
  __m128i bytes[4];
  for (int channel = 0; channel < 4; ++channel) {
    bytes[channel] = _mm_xor_si128(load(from.rows[channel] + i * step), from.flip);
  }
  const __m128i low_ab = _mm_unpacklo_epi8(bytes[0], bytes[1]);
  const __m128i low_cd = _mm_unpacklo_epi8(bytes[2], bytes[3]);
  store_4(to + i, _mm_unpacklo_epi16(low_ab, low_cd));
  if constexpr (count > 4) store_4(to + i + 4, _mm_unpackhi_epi16(low_ab, low_cd));
  if constexpr (count > 8) {
    const __m128i high_ab = _mm_unpackhi_epi8(bytes[0], bytes[1]);
    const __m128i high_cd = _mm_unpackhi_epi8(bytes[2], bytes[3]);
    store_4(to + i + 8, _mm_unpacklo_epi16(high_ab, high_cd));
    store_4(to + i + 12, _mm_unpackhi_epi16(high_ab, high_cd));
  }
}

/// Calls bytes16(i) for pieces of `count` pixels; the last one ends with the row, and may do some
/// pixels once more. There are at least `count` pixels. What `bytes16` captures by value, stores do
/// not change.
template <int count, class Piece>
void for_each_piece(int64_t pixels, Piece bytes16) {
  for (int64_t i = 0; i + count <= pixels; i += count) bytes16(i);
  if (pixels % count != 0) bytes16(pixels - count);
}

template <int count, class Load>
void interleave_row(const FourRows& from, int64_t pixels, int64_t step, Load load, uint32_t* to) {
  for (int64_t i = 0; i + count <= pixels; i += count) {
    interleave_pixels<count>(from, i, step, load, to);
  }
  if (pixels % count != 0) interleave_pixels<count>(from, pixels - count, step, load, to);
}

/// The same byte by byte, for rows of any step.
void interleave_any(const uint8_t* const* rows, int64_t step, uint8_t flip, int64_t count,
                    uint32_t* to) {
  const uint8_t* a = rows[0];
  const uint8_t* b = rows[1];
  const uint8_t* c = rows[2];
  const uint8_t* d = rows[3];
  const uint32_t flips = flip * 0x01010101u;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = i * step;
    to[i] = (a[at] | uint32_t{b[at]} << 8 | uint32_t{c[at]} << 16 | uint32_t{d[at]} << 24) ^ flips;
  }
}

/// Pixels whose four channels are adjacent.
void copy_dwords(const uint8_t* from, int64_t step, uint8_t flip, int64_t count, uint32_t* to) {
  const uint32_t flips = flip * 0x01010101u;
  if (step == 4 && count >= 4) {
    return for_each_piece<4>(count, [=](int64_t i) {
      store_4(to + i,
              _mm_xor_si128(load_16(from + 4 * i), _mm_set1_epi32(static_cast<int>(flips))));
    });
  }
  for (int64_t i = 0; i < count; ++i) {
    uint32_t dword;
    std::memcpy(&dword, from + i * step, sizeof(dword));
    to[i] = dword ^ flips;
  }
}

/// Pixels two bytes apart whose four channels are adjacent; at least eight.
void copy_dwords_by_words(const uint8_t* from, uint8_t flip, int64_t count, uint32_t* to) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
  for_each_piece<8>(count, [=](int64_t i) {
    const __m128i even = _mm_xor_si128(load_16(from + 2 * i), flips);
    const __m128i odd = _mm_xor_si128(load_16(from + 2 * i + 2), flips);
    store_4(to + i, _mm_unpacklo_epi16(even, odd));
    store_4(to + i + 4, _mm_unpackhi_epi16(even, odd));
  });
}

/// Eight bytes as words.
__m128i load_words(const uint8_t* from) {
  return _mm_unpacklo_epi8(load_8(from), _mm_setzero_si128());
}
/// Every second of 15 bytes as words.
__m128i load_words_of_15(const uint8_t* from) {
  const __m128i low = _mm_and_si128(load_8(from), _mm_set1_epi16(0x00ff));
  return _mm_unpacklo_epi64(low, _mm_srli_epi16(load_8(from + 7), 8));
}

}  // namespace

void interleave_bytes(const DwordSource& from, uint8_t flip, int64_t count, uint32_t* to) {
  FourRows four = {{}, _mm_set1_epi8(static_cast<char>(flip))};
  for (int i = 0; i < 4; ++i) {
    const std::byte* row = from.channels[i] != nullptr ? from.channels[i] : from.channels[0];
    four.rows[i] = reinterpret_cast<const uint8_t*>(row);
  }
  const int64_t step = from.step;
  if (step == 1 && count >= 16) return interleave_row<16>(four, count, 1, load_16, to);
  if (step == 1 && count >= 8) return interleave_row<8>(four, count, 1, load_8, to);
  if (step == 1 && count >= 4) return interleave_row<4>(four, count, 1, load_4, to);
  const bool are_adjacent = four.rows[1] == four.rows[0] + 1 && four.rows[2] == four.rows[0] + 2 &&
                            four.rows[3] == four.rows[0] + 3;
  if (are_adjacent && step == 2 && count >= 8) {
    return copy_dwords_by_words(four.rows[0], flip, count, to);
  }
  if (are_adjacent) return copy_dwords(four.rows[0], step, flip, count, to);
  if (step == 2 && count >= 16) return interleave_row<16>(four, count, 2, load_16_of_31, to);
  interleave_any(four.rows, step, flip, count, to);
}

void interleave_words(const DwordSource& from, bool is_signed, int32_t zero_point, int64_t count,
                      uint32_t* to) {
  const auto* a = reinterpret_cast<const uint8_t*>(from.channels[0]);
  const auto* b = reinterpret_cast<const uint8_t*>(from.channels[1]);
  if (b == nullptr) b = a;
  const int32_t flip = is_signed ? 0x80 : 0;  // (x ^ 0x80) - 0x80 extends the sign
  const int32_t zero = zero_point + flip;
  const auto interleave = [=, step = from.step](int64_t i, auto load) {
    const __m128i flips = _mm_set1_epi16(static_cast<int16_t>(flip));
    const __m128i zeros = _mm_set1_epi16(static_cast<int16_t>(zero));
    const int64_t at = i * step;
    const __m128i low = _mm_sub_epi16(_mm_xor_si128(load(a + at), flips), zeros);
    const __m128i high = _mm_sub_epi16(_mm_xor_si128(load(b + at), flips), zeros);
    store_4(to + i, _mm_unpacklo_epi16(low, high));
    store_4(to + i + 4, _mm_unpackhi_epi16(low, high));
  };
  if (from.step == 1 && count >= 8) {
    return for_each_piece<8>(count, [=](int64_t i) { interleave(i, load_words); });
  }
  if (from.step == 2 && count >= 8) {
    return for_each_piece<8>(count, [=](int64_t i) { interleave(i, load_words_of_15); });
  }
  for (int64_t i = 0; i < count; ++i) {
    const int32_t low = (a[i * from.step] ^ flip) - zero;
    const int32_t high = (b[i * from.step] ^ flip) - zero;
    to[i] = (static_cast<uint32_t>(low) & 0xffff) | static_cast<uint32_t>(high) << 16;
  }
}

void interleave_filters(const std::byte* first, int64_t positions, uint8_t flip, int64_t k_groups,
                        uint32_t* to) {
  const auto* next = reinterpret_cast<const uint8_t*>(first);
  FourRows four = {{}, _mm_set1_epi8(static_cast<char>(flip))};
  for (int64_t k_group = 0; k_group < k_groups; ++k_group, to += positions) {
    for (const uint8_t*& row : four.rows) {
      row = next;
      next += positions;
    }
    int64_t i = 0;
    for (; i + 8 <= positions; i += 8) interleave_pixels<8>(four, i, 1, load_8, to);
    for (; i + 4 <= positions; i += 4) interleave_pixels<4>(four, i, 1, load_4, to);
    const uint8_t* rest[4];
    for (int k = 0; k < 4; ++k) rest[k] = four.rows[k] + i;
    interleave_any(rest, 1, flip, positions - i, to + i);
  }
}

uint32_t sum_of_bytes(const std::byte* bytes, int64_t count, uint8_t flip) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
  __m128i sums = _mm_setzero_si128();
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m128i bytes16 = load_16(reinterpret_cast<const uint8_t*>(bytes + i));
    sums = _mm_add_epi64(sums, _mm_sad_epu8(_mm_xor_si128(bytes16, flips), _mm_setzero_si128()));
  }
  auto total = static_cast<uint32_t>(_mm_cvtsi128_si32(sums)) +
               static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_srli_si128(sums, 8)));
  for (; i < count; ++i) total += static_cast<uint8_t>(bytes[i]) ^ flip;
  return total;
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

}  // namespace

void transpose_dwords(const int32_t* from, int64_t from_step, int64_t rows, int64_t columns,
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

}  // namespace castor::detail
