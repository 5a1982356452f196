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
  uint32_t flips;
};

// Objects, not functions, so that loops with them are compiled as one.
constexpr auto load_16 = [](const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
};
constexpr auto load_8 = [](const uint8_t* from) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
};
constexpr auto load_4 = [](const uint8_t* from) {
  int32_t bytes;
  std::memcpy(&bytes, from, sizeof(bytes));
  return _mm_cvtsi32_si128(bytes);
};
/// Every second of 31 bytes.
constexpr auto load_16_of_31 = [](const uint8_t* from) {
  const __m128i even = _mm_set1_epi16(0x00ff);
  const __m128i low = _mm_and_si128(load_16(from), even);
  const __m128i high = _mm_srli_epi16(load_16(from + 15), 8);  // ends with the last byte needed
  return _mm_packus_epi16(low, high);
};
/// Eight bytes as i16.
constexpr auto load_8_widened = [](const uint8_t* from) {
  return _mm_unpacklo_epi8(load_8(from), _mm_setzero_si128());
};
/// Every second of 15 bytes as i16.
constexpr auto load_8_of_15_widened = [](const uint8_t* from) {
  const __m128i low = _mm_and_si128(load_8(from), _mm_set1_epi16(0x00ff));
  return _mm_unpacklo_epi64(low, _mm_srli_epi16(load_8(from + 7), 8));
};

void store_4(uint32_t* to, __m128i k_groups) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), k_groups);
}

/// Calls pack(i) for the pixels from `i` on, `count` at a time; the last ones end with the row, and
/// some may be packed once more. There are at least `count` pixels. What `pack` captures by value,
/// stores do not change.
template <int count, class Pack>
void for_each_run(int64_t pixels, Pack pack) {
  for (int64_t i = 0; i + count <= pixels; i += count) pack(i);
  if (pixels % count != 0) pack(pixels - count);
}

/// 4, 8 or 16 pixels at a time, as many as `load` gives.
template <int count, class Load>
void interleave_rows(const FourRows& from, int64_t pixels, int64_t step, Load load, uint32_t* to) {
  for_each_run<count>(pixels, [=](int64_t i) {
    __m128i bytes[4];
    for (int channel = 0; channel < 4; ++channel) {
      bytes[channel] = _mm_xor_si128(load(from.rows[channel] + i * step),
                                     _mm_set1_epi32(static_cast<int>(from.flips)));
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
  });
}

/// Pixels whose four channels are adjacent.
void copy_k_groups(const uint8_t* from, int64_t step, uint32_t flips, int64_t count, uint32_t* to) {
  if (step == 4 && count >= 4) {
    return for_each_run<4>(count, [=](int64_t i) {
      const __m128i flip_all = _mm_set1_epi32(static_cast<int>(flips));
      store_4(to + i, _mm_xor_si128(load_16(from + 4 * i), flip_all));
    });
  }
  if (step == 2 && count >= 8) {
    return for_each_run<8>(count, [=](int64_t i) {
      const __m128i flip_all = _mm_set1_epi32(static_cast<int>(flips));
      const __m128i even = _mm_xor_si128(load_16(from + 2 * i), flip_all);
      const __m128i odd = _mm_xor_si128(load_16(from + 2 * i + 2), flip_all);
      store_4(to + i, _mm_unpacklo_epi16(even, odd));
      store_4(to + i + 4, _mm_unpackhi_epi16(even, odd));
    });
  }
  for (int64_t i = 0; i < count; ++i) {
    uint32_t k_group;
    std::memcpy(&k_group, from + i * step, sizeof(k_group));
    to[i] = k_group ^ flips;
  }
}

}  // namespace

void interleave_bytes(const KGroupSource& from, uint8_t flip, int64_t count, uint32_t* to) {
  FourRows four = {{}, flip * 0x01010101u};
  const auto& [a, b, c, d] = four.rows;
  for (int i = 0; i < 4; ++i) {
    const std::byte* row = from.channels[i] != nullptr ? from.channels[i] : from.channels[0];
    four.rows[i] = reinterpret_cast<const uint8_t*>(row);
  }
  const int64_t step = from.step;
  if (step == 1 && count >= 16) return interleave_rows<16>(four, count, 1, load_16, to);
  if (step == 1 && count >= 8) return interleave_rows<8>(four, count, 1, load_8, to);
  if (step == 1 && count >= 4) return interleave_rows<4>(four, count, 1, load_4, to);
  if (b == a + 1 && c == a + 2 && d == a + 3) return copy_k_groups(a, step, four.flips, count, to);
  if (step == 2 && count >= 16) return interleave_rows<16>(four, count, 2, load_16_of_31, to);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = i * step;
    const uint32_t k_group =
        a[at] | uint32_t{b[at]} << 8 | uint32_t{c[at]} << 16 | uint32_t{d[at]} << 24;
    to[i] = k_group ^ four.flips;
  }
}

void interleave_pairs(const KGroupSource& from, bool is_signed, int32_t zero_point, int64_t count,
                      uint32_t* to) {
  const auto* a = reinterpret_cast<const uint8_t*>(from.channels[0]);
  const auto* b = reinterpret_cast<const uint8_t*>(from.channels[1]);
  if (b == nullptr) b = a;
  const int32_t flip = is_signed ? 0x80 : 0;  // (x ^ 0x80) - 0x80 extends the sign
  const int32_t zero = zero_point + flip;
  const auto less_zero = [=](__m128i widened) {
    const __m128i flips = _mm_set1_epi16(static_cast<int16_t>(flip));
    const __m128i zeros = _mm_set1_epi16(static_cast<int16_t>(zero));
    return _mm_sub_epi16(_mm_xor_si128(widened, flips), zeros);
  };
  const auto interleave = [=, step = from.step](int64_t i, auto load) {
    const __m128i low = less_zero(load(a + i * step));
    const __m128i high = less_zero(load(b + i * step));
    store_4(to + i, _mm_unpacklo_epi16(low, high));
    store_4(to + i + 4, _mm_unpackhi_epi16(low, high));
  };
  if (from.step == 2 && b == a + 1 && count >= 8) {  // both channels of a pixel are adjacent
    return for_each_run<8>(count, [=](int64_t i) {
      const __m128i bytes = load_16(a + 2 * i);
      store_4(to + i, less_zero(_mm_unpacklo_epi8(bytes, _mm_setzero_si128())));
      store_4(to + i + 4, less_zero(_mm_unpackhi_epi8(bytes, _mm_setzero_si128())));
    });
  }
  if (from.step == 1 && count >= 8) {
    return for_each_run<8>(count, [=](int64_t i) { interleave(i, load_8_widened); });
  }
  if (from.step == 2 && count >= 8) {
    return for_each_run<8>(count, [=](int64_t i) { interleave(i, load_8_of_15_widened); });
  }
  for (int64_t i = 0; i < count; ++i) {
    const int32_t low = (a[i * from.step] ^ flip) - zero;
    const int32_t high = (b[i * from.step] ^ flip) - zero;
    to[i] = (static_cast<uint32_t>(low) & 0xffff) | static_cast<uint32_t>(high) << 16;
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
