// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/interleave.hpp"

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace castor::detail {

namespace {

struct EightKGroups {
  __m128i low;
  __m128i high;
};

__m128i load_16(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
/// Eight bytes, each of them or every second one.
template <int step>
__m128i load_8(const std::byte* from) {
  if constexpr (step == 1) return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return _mm_packus_epi16(_mm_and_si128(load_16(from), _mm_set1_epi16(0xff)), _mm_setzero_si128());
}

/// The bytes of a k group's four places.
std::array<const std::byte*, 4> places_of(const KGroupSource& from, const KGroupForm& form) {
  std::array<const std::byte*, 4> places;
  const int shift = form.engine == jit::ProductEngine::i16_pairs ? 1 : 0;
  for (int i = 0; i < 4; ++i) {
    const int element = std::min(i >> shift, form.elements - 1);  // what is not there is not read
    places[static_cast<size_t>(i)] = from.first + element * from.element_step;
  }
  return places;
}

/// Packs at least eight k groups, as many at a time. `load(i)` gives their bytes from the i-th one
/// on.
template <class Load>
void for_each_eight(const KGroupForm& form, int64_t count, Load load, uint32_t* to) {
  const __m128i present = _mm_set1_epi32(static_cast<int>(form.present));
  const __m128i flips = _mm_set1_epi32(static_cast<int>(form.flips));
  const __m128i zeros = _mm_set1_epi32(static_cast<int>(form.zeros));
  const auto store = [=](__m128i bytes, uint32_t* at) {
    const __m128i flipped = _mm_xor_si128(_mm_and_si128(bytes, present), flips);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at), _mm_sub_epi16(flipped, zeros));
  };
  const auto pack = [=](int64_t i, uint32_t* at) {
    const EightKGroups bytes = load(i);
    store(bytes.low, at);
    store(bytes.high, at + 4);
  };
  for (int64_t i = 0; i + 8 <= count; i += 8) pack(i, to + i);
  if (count % 8 != 0) pack(count - 8, to + count - 8);  // some are packed once more
}

/// I16 pairs have each byte in two places.
template <int step, bool is_pairs>
void interleave_places(const std::array<const std::byte*, 4>& places, const KGroupForm& form,
                       int64_t count, uint32_t* to) {
  const auto load = [places](int64_t i) -> EightKGroups {
    const auto place = [&](size_t number) { return load_8<step>(places[number] + i * step); };
    const __m128i first = place(0);
    const __m128i third = place(2);
    const __m128i low = _mm_unpacklo_epi8(first, is_pairs ? first : place(1));
    const __m128i high = _mm_unpacklo_epi8(third, is_pairs ? third : place(3));
    return {_mm_unpacklo_epi16(low, high), _mm_unpackhi_epi16(low, high)};
  };
  for_each_eight(form, count, load, to);
}

/// K groups whose elements are adjacent, as the k groups are.
void interleave_adjacent(const std::byte* from, const KGroupForm& form, int64_t count,
                         uint32_t* to) {
  if (form.engine == jit::ProductEngine::i16_pairs) {
    return for_each_eight(
        form, count,
        [from](int64_t i) -> EightKGroups {
          const __m128i bytes = load_16(from + 2 * i);
          return {_mm_unpacklo_epi8(bytes, bytes), _mm_unpackhi_epi8(bytes, bytes)};
        },
        to);
  }
  for_each_eight(
      form, count,
      [from](int64_t i) -> EightKGroups {
        return {load_16(from + 4 * i), load_16(from + 4 * i + 16)};
      },
      to);
}

}  // namespace

KGroupForm k_group_form(jit::ProductEngine engine, int64_t elements, uint8_t flip,
                        int32_t zero_point) {
  const bool is_pairs = engine == jit::ProductEngine::i16_pairs;
  const auto there = static_cast<int>(std::min<int64_t>(elements, is_pairs ? 2 : 4));
  const uint32_t all = ~0u >> (32 - there * (is_pairs ? 16 : 8));
  const uint32_t zero = is_pairs ? static_cast<uint32_t>(zero_point + flip) & 0xffff : 0;
  const uint32_t present = is_pairs ? all & 0x00ff00ff : all;
  return {.engine = engine,
          .elements = there,
          .present = present,
          .flips = flip * 0x01010101u & present,
          .zeros = (zero | zero << 16) & all};
}

void gather_k_groups(const KGroupSource& from, const KGroupForm& form, int64_t count,
                     uint32_t* to) {
  const auto [a, b, c, d] = places_of(from, form);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = i * from.step;
    const auto low = std::to_integer<uint32_t>(a[at]);
    const auto high = std::to_integer<uint32_t>(c[at]) << 16;
    if (form.engine == jit::ProductEngine::i16_pairs) {
      const uint32_t pair = ((low | high) & form.present) ^ form.flips;
      to[i] = ((pair - form.zeros) & 0xffff) | ((pair & 0xffff0000) - (form.zeros & 0xffff0000));
    } else {
      const auto second = std::to_integer<uint32_t>(b[at]) << 8;
      const auto fourth = std::to_integer<uint32_t>(d[at]) << 24;
      to[i] = ((low | second | high | fourth) & form.present) ^ form.flips;
    }
  }
}

void interleave(const KGroupSource& from, const KGroupForm& form, int64_t count, uint32_t* to) {
  if (count < 8) return gather_k_groups(from, form, count, to);
  const auto places = places_of(from, form);
  const bool is_adjacent =
      from.element_step == 1 && from.step == jit::channels_of_k_group(form.engine);
  if (is_adjacent) return interleave_adjacent(from.first, form, count, to);
  if (from.step > 2) return gather_k_groups(from, form, count, to);
  const bool is_pairs = form.engine == jit::ProductEngine::i16_pairs;
  const auto interleave_all =
      from.step == 1 ? (is_pairs ? interleave_places<1, true> : interleave_places<1, false>)
                     : (is_pairs ? interleave_places<2, true> : interleave_places<2, false>);
  interleave_all(places, form, count, to);
}

uint32_t sum_of_bytes(const std::byte* bytes, int64_t count, uint8_t flip) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
  __m128i sums = _mm_setzero_si128();
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m128i bytes16 = load_16(bytes + i);
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

void transpose_i32(const int32_t* from, int64_t from_step, int64_t rows, int64_t columns,
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
