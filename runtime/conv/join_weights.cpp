// SPDX-License-Identifier: Apache-2.0
// Loops that pack weights: bytes of sixteen output channels are transposed, then joined to k
// groups.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "runtime/conv/vectors.hpp"

namespace castor::detail {

namespace {

constexpr int bytes_at_once = joined_channels;

/// Four rounds that bring together what rows i and i + 8 have: then row i has column i.
CASTOR_AVX2 inline void transpose_16(__m128i (&rows)[bytes_at_once]) {
  for (int round = 0; round < 4; ++round) {
    __m128i halves[bytes_at_once];
    for (int i = 0; i < bytes_at_once / 2; ++i) {
      halves[2 * i] = _mm_unpacklo_epi8(rows[i], rows[i + 8]);
      halves[2 * i + 1] = _mm_unpackhi_epi8(rows[i], rows[i + 8]);
    }
    std::copy(std::begin(halves), std::end(halves), rows);
  }
}

}  // namespace

CASTOR_AVX2 void transpose_bytes(const std::byte* from, int64_t row_step, int64_t row_count,
                                 int64_t count, std::byte* to) {
  for (int64_t done = 0; done < count; done += bytes_at_once, from += bytes_at_once) {
    __m128i rows[bytes_at_once];
    for (int64_t row = 0; row < bytes_at_once; ++row) {
      rows[row] = load_16(from + std::min(row, row_count - 1) * row_step);
    }
    transpose_16(rows);
    for (const __m128i& column : rows) {
      store_16(column, to);
      to += bytes_at_once;
    }
  }
}

namespace {

/// I16 pairs of eight channels.
CASTOR_AVX2 inline __m256i pairs_of(__m128i bytes, __m256i sign_flips, const int16_t* zeros) {
  const __m256i zero = _mm256_cvtepu16_epi32(load_16(reinterpret_cast<const std::byte*>(zeros)));
  return _mm256_sub_epi16(_mm256_xor_si256(_mm256_cvtepu8_epi16(bytes), sign_flips),
                          _mm256_or_si256(zero, _mm256_slli_epi32(zero, 16)));
}

/// Sixteen k groups of one slot, whose elements are columns `step` bytes apart.
struct KGroupsOfSlot {
  __m256i low;
  __m256i high;
};
CASTOR_AVX2 inline KGroupsOfSlot join_pairs(const std::byte* first, int64_t step,
                                            __m256i sign_flips, const int16_t* zeros) {
  const __m128i even = load_16(first);
  const __m128i odd = load_16(first + step);
  return {pairs_of(_mm_unpacklo_epi8(even, odd), sign_flips, zeros),
          pairs_of(_mm_unpackhi_epi8(even, odd), sign_flips, zeros + 8)};
}
CASTOR_AVX2 inline KGroupsOfSlot join_bytes(const std::byte* first, int64_t step,
                                            __m256i sign_flips) {
  const __m128i a = load_16(first);
  const __m128i b = load_16(first + step);
  const __m128i c = load_16(first + 2 * step);
  const __m128i d = load_16(first + 3 * step);
  const auto joined = [](__m128i ab, __m128i cd) {
    return std::pair(_mm_unpacklo_epi16(ab, cd), _mm_unpackhi_epi16(ab, cd));
  };
  const auto [first_four, second] = joined(_mm_unpacklo_epi8(a, b), _mm_unpacklo_epi8(c, d));
  const auto [third, last_four] = joined(_mm_unpackhi_epi8(a, b), _mm_unpackhi_epi8(c, d));
  return {_mm256_xor_si256(_mm256_set_m128i(second, first_four), sign_flips),
          _mm256_xor_si256(_mm256_set_m128i(last_four, third), sign_flips)};
}

/// Stores the first k groups of sixteen: a vector, and the last ones, which may overlap it.
class StoredKGroups {
 public:
  CASTOR_AVX2 explicit StoredKGroups(int64_t count) : count_(count) {
    const int64_t first = count - (count < lanes ? half : lanes);
    const __m256i numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    order_ = _mm256_add_epi32(numbers, _mm256_set1_epi32(static_cast<int>(first)));
    is_high_ = _mm256_cmpgt_epi32(order_, _mm256_set1_epi32(lanes - 1));
  }

  CASTOR_AVX2 void store(const KGroupsOfSlot& of, std::byte* to) const {
    const __m256i low = _mm256_permutevar8x32_epi32(of.low, order_);
    std::byte* const last = to + sizeof(int32_t) * static_cast<size_t>(count_);
    if (count_ >= lanes) {
      const __m256i high = _mm256_permutevar8x32_epi32(of.high, order_);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), of.low);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(last) - 1,
                          _mm256_blendv_epi8(low, high, is_high_));
    } else if (count_ >= half) {
      store_16(_mm256_castsi256_si128(of.low), to);
      store_16(_mm256_castsi256_si128(low), last - bytes_at_once);
    } else {
      std::memcpy(to, &of.low, static_cast<size_t>(last - to));
    }
  }

 private:
  static constexpr int lanes = 8;
  static constexpr int half = 4;
  int64_t count_;
  __m256i order_;    ///< brings the last k groups to the first lanes
  __m256i is_high_;  ///< which of these are in the second vector
};

template <bool is_pairs>
CASTOR_AVX2 void join_slots(const WeightColumns& from, const KGroupSpec& spec, const int16_t* zeros,
                            const WeightSlots& to) {
  constexpr int64_t held = is_pairs ? 2 : 4;
  const __m256i sign_flips = _mm256_set1_epi32(static_cast<int>(spec.sign_flips));
  const int64_t step = from.positions * bytes_at_once;
  const StoredKGroups stored(to.channels);
  std::byte* slot = to.first;
  for (int64_t done = 0; done < from.slots; done += from.positions) {
    const std::byte* first = from.first + done * held * bytes_at_once;
    for (int64_t i = 0; i < from.positions; ++i, first += bytes_at_once, slot += to.step) {
      KGroupsOfSlot k_groups;
      if constexpr (is_pairs) {
        k_groups = join_pairs(first, step, sign_flips, zeros);
      } else {
        k_groups = join_bytes(first, step, sign_flips);
      }
      stored.store(k_groups, slot);
    }
  }
}

}  // namespace

void join_elements(const WeightColumns& from, const KGroupSpec& spec,
                   const std::array<int16_t, joined_channels>& zeros, const WeightSlots& to) {
  spec.engine == jit::ProductEngine::i16_pairs ? join_slots<true>(from, spec, zeros.data(), to)
                                               : join_slots<false>(from, spec, zeros.data(), to);
}

}  // namespace castor::detail
