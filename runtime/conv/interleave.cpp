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
void interleave_piece(const FourRows& from, int64_t i, int64_t step, Load load, uint32_t* to) {
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

/// Pieces of `count` pixels; the last one ends with the row, and may do some pixels once more.
template <int count, class Load>
void interleave_row(const FourRows& from, int64_t pixels, int64_t step, Load load, uint32_t* to) {
  for (int64_t i = 0; i + count <= pixels; i += count) {
    interleave_piece<count>(from, i, step, load, to);
  }
  if (pixels % count != 0) interleave_piece<count>(from, pixels - count, step, load, to);
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

/// Pixels whose four channels lie side by side.
void copy_dwords(const uint8_t* from, int64_t step, uint8_t flip, int64_t count, uint32_t* to) {
  const uint32_t flips = flip * 0x01010101u;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t dword;
    std::memcpy(&dword, from + i * step, sizeof(dword));
    to[i] = dword ^ flips;
  }
}

/// The same of pixels two bytes apart, eight at a time, more than eight in all; the last ones may
/// be done once more.
void copy_dwords_by_words(const uint8_t* from, uint8_t flip, int64_t count, uint32_t* to) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
  for (int64_t done = 0; done < count; done += 8) {
    const int64_t i = std::min(done, count - 8);
    const __m128i even = _mm_xor_si128(load_16(from + 2 * i), flips);
    const __m128i odd = _mm_xor_si128(load_16(from + 2 * i + 2), flips);
    store_4(to + i, _mm_unpacklo_epi16(even, odd));
    store_4(to + i + 4, _mm_unpackhi_epi16(even, odd));
  }
}

int32_t number_of(std::byte byte, bool is_signed) {
  return is_signed ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
}

/// Words of two channels; without the second its words are 0.
struct TwoRows {
  const uint8_t* a;
  const uint8_t* b;
  bool is_signed;
  __m128i zero_point;  ///< in every word
};

/// The low bytes of words, or the high ones, less the zero point.
__m128i low_numbers(const TwoRows& from, __m128i words) {
  const __m128i high = _mm_slli_epi16(words, 8);
  const __m128i low = from.is_signed ? _mm_srai_epi16(high, 8) : _mm_srli_epi16(high, 8);
  return _mm_sub_epi16(low, from.zero_point);
}
__m128i high_numbers(const TwoRows& from, __m128i words) {
  const __m128i high = from.is_signed ? _mm_srai_epi16(words, 8) : _mm_srli_epi16(words, 8);
  return _mm_sub_epi16(high, from.zero_point);
}

/// Eight words of a channel at neighbouring pixels.
struct EveryPixel {
  static __m128i load(const TwoRows& from, const uint8_t* row, int64_t i, bool) {
    return low_numbers(from, _mm_unpacklo_epi8(load_8(row + i), _mm_setzero_si128()));
  }
};
/// At every second pixel. The byte behind the last pixel is not read, nor the one in front of the
/// first.
struct EverySecondPixel {
  static __m128i load(const TwoRows& from, const uint8_t* row, int64_t i, bool is_last) {
    return is_last ? high_numbers(from, load_16(row + 2 * i - 1))
                   : low_numbers(from, load_16(row + 2 * i));
  }
};

template <class Pixels>
void interleave_words_at(const TwoRows& from, int64_t i, bool is_last, uint32_t* to) {
  const __m128i a = Pixels::load(from, from.a, i, is_last);
  const __m128i b =
      from.b == nullptr ? _mm_setzero_si128() : Pixels::load(from, from.b, i, is_last);
  store_4(to + i, _mm_unpacklo_epi16(a, b));
  store_4(to + i + 4, _mm_unpackhi_epi16(a, b));
}

/// Eight pixels at a time, more than eight in all; the last ones may be done once more.
template <class Pixels>
void interleave_word_row(const TwoRows& from, int64_t pixels, uint32_t* to) {
  for (int64_t i = 0; i + 8 < pixels; i += 8) interleave_words_at<Pixels>(from, i, false, to);
  interleave_words_at<Pixels>(from, pixels - 8, true, to);
}

}  // namespace

void interleave_bytes(const DwordSource& from, uint8_t flip, int64_t count, uint32_t* to) {
  FourRows four = {{}, _mm_set1_epi8(static_cast<char>(flip))};
  for (int i = 0; i < 4; ++i) {
    const std::byte* row = from.channels[i] != nullptr ? from.channels[i] : from.channels[0];
    four.rows[i] = reinterpret_cast<const uint8_t*>(row);
  }
  const int64_t step = from.step;
  const bool side_by_side = four.rows[1] == four.rows[0] + 1 && four.rows[2] == four.rows[0] + 2 &&
                            four.rows[3] == four.rows[0] + 3;
  if (side_by_side && step == 2 && count >= 8) {
    return copy_dwords_by_words(four.rows[0], flip, count, to);
  }
  if (side_by_side && step != 1) return copy_dwords(four.rows[0], step, flip, count, to);
  if (step == 1 && count >= 16) return interleave_row<16>(four, count, 1, load_16, to);
  if (step == 1 && count >= 8) return interleave_row<8>(four, count, 1, load_8, to);
  if (step == 1 && count >= 4) return interleave_row<4>(four, count, 1, load_4, to);
  if (step == 2 && count >= 16) return interleave_row<16>(four, count, 2, load_16_of_31, to);
  interleave_any(four.rows, step, flip, count, to);
}

void interleave_words(const DwordSource& from, bool is_signed, int32_t zero_point, int64_t count,
                      uint32_t* to) {
  const std::byte* a = from.channels[0];
  const std::byte* b = from.channels[1];
  const TwoRows rows = {reinterpret_cast<const uint8_t*>(a), reinterpret_cast<const uint8_t*>(b),
                        is_signed, _mm_set1_epi16(static_cast<int16_t>(zero_point))};
  if (from.step == 1 && count > 8) return interleave_word_row<EveryPixel>(rows, count, to);
  if (from.step == 2 && count > 8) return interleave_word_row<EverySecondPixel>(rows, count, to);
  for (int64_t i = 0; i < count; ++i) {
    const int32_t low = number_of(a[i * from.step], is_signed) - zero_point;
    const int32_t high = b == nullptr ? 0 : number_of(b[i * from.step], is_signed) - zero_point;
    to[i] = (static_cast<uint32_t>(low) & 0xffff) | static_cast<uint32_t>(high) << 16;
  }
}

void interleave_filters(const DwordFilters& from, uint8_t flip, int64_t dwords, uint32_t* to) {
  const int64_t positions = from.positions;
  const auto* first = reinterpret_cast<const uint8_t*>(from.first);
  FourRows four = {{}, _mm_set1_epi8(static_cast<char>(flip))};
  for (int64_t dword = 0; dword < dwords; ++dword, to += positions) {
    for (const uint8_t*& row : four.rows) {
      row = first;
      first += from.step;
    }
    int64_t i = 0;
    for (; i + 8 <= positions; i += 8) interleave_piece<8>(four, i, 1, load_8, to);
    for (; i + 4 <= positions; i += 4) interleave_piece<4>(four, i, 1, load_4, to);
    const uint8_t* rest[4];
    for (int k = 0; k < 4; ++k) rest[k] = four.rows[k] + i;
    interleave_any(rest, 1, flip, positions - i, to + i);
  }
}

void interleave_word_filters(const DwordFilters& from, bool is_signed, int32_t zero_point,
                             int64_t dwords, uint32_t* to) {
  const int64_t positions = from.positions;
  const std::byte* first = from.first;
  TwoRows rows = {nullptr, nullptr, is_signed, _mm_set1_epi16(static_cast<int16_t>(zero_point))};
  for (int64_t dword = 0; dword < dwords; ++dword, to += positions) {
    rows.a = reinterpret_cast<const uint8_t*>(first);
    rows.b = reinterpret_cast<const uint8_t*>(first + from.step);
    int64_t i = 0;
    for (; i + 8 <= positions; i += 8) interleave_words_at<EveryPixel>(rows, i, false, to);
    for (; i < positions; ++i) {
      const int32_t low = number_of(first[i], is_signed) - zero_point;
      const int32_t high = number_of(first[i + from.step], is_signed) - zero_point;
      to[i] = (static_cast<uint32_t>(low) & 0xffff) | static_cast<uint32_t>(high) << 16;
    }
    first += 2 * from.step;
  }
}

uint32_t sum_of_bytes(const std::byte* bytes, int64_t count, uint8_t flip) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
  __m128i sums = _mm_setzero_si128();
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m128i piece = load_16(reinterpret_cast<const uint8_t*>(bytes + i));
    sums = _mm_add_epi64(sums, _mm_sad_epu8(_mm_xor_si128(piece, flips), _mm_setzero_si128()));
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
  const int64_t whole_rows = rows / 4 * 4;
  for (int64_t column = 0; column < columns; ++column) {
    int64_t first = 0;  // of the rows that are left
    if (column % 4 == 0 && column + 4 <= columns) {
      for (int64_t row = 0; row < whole_rows; row += 4) {
        transpose_block(from + row * from_step + column, from_step, to + column * to_step + row,
                        to_step);
      }
    }
    if (column < columns / 4 * 4) first = whole_rows;
    for (int64_t row = first; row < rows; ++row) {
      // Outputs of the caller may lie at any byte.
      std::memcpy(to + column * to_step + row, from + row * from_step + column, sizeof(int32_t));
    }
  }
}

}  // namespace castor::detail
