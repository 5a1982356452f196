// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/interleave.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "runtime/conv/vectors.hpp"

namespace castor::detail {

namespace {

/// Vectors of k groups.
using Four = uint32_t __attribute__((vector_size(16)));
using Eight = uint32_t __attribute__((vector_size(32)));

uint32_t load_4(const std::byte* from) {
  uint32_t bytes;
  std::memcpy(&bytes, from, sizeof(bytes));
  return bytes;
}

/// Bytes of elements of four k groups, adjacent ones or four of each, or the same 16 for each four
/// of eight k groups.
template <class Vector>
CASTOR_AVX2 inline Vector load(const std::byte* from, int64_t step) {
  if constexpr (sizeof(Vector) == sizeof(Eight)) {
    return (Vector)_mm256_broadcastsi128_si256(load_16(from));
  } else {
    if (step <= 4) return (Vector)load_16(from);
    return Vector{load_4(from), load_4(from + step), load_4(from + 2 * step),
                  load_4(from + 3 * step)};
  }
}
/// The bytes at these indices; from 0x80 on: 0.
CASTOR_AVX2 inline Four bytes_at(Four indices, Four bytes) {
  return (Four)_mm_shuffle_epi8((__m128i)bytes, (__m128i)indices);
}
CASTOR_AVX2 inline Eight bytes_at(Eight indices, Eight bytes) {
  return (Eight)_mm256_shuffle_epi8((__m256i)bytes, (__m256i)indices);
}

/// Differences of i16.
CASTOR_AVX2 inline Four i16_less(Four a, Four b) {
  return (Four)_mm_sub_epi16((__m128i)a, (__m128i)b);
}
CASTOR_AVX2 inline Eight i16_less(Eight a, Eight b) {
  return (Eight)_mm256_sub_epi16((__m256i)a, (__m256i)b);
}

/// Packs rows of at least a vector of k groups, whose elements are all in one source of bytes or
/// each in its own; a row's last vector may have some once more.
template <class Vector, size_t sources>
CASTOR_AVX2 void interleave_vectors(const KGroupSource& from, const KGroupSpec& spec,
                                    const KGroupRows& rows) {
  constexpr int64_t at_once = sizeof(Vector) / sizeof(uint32_t);
  constexpr uint32_t nowhere = 0x80808080;
  constexpr uint32_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7};
  const bool is_pairs = spec.engine == jit::ProductEngine::i16_pairs;
  Vector steps;
  std::memcpy(&steps, numbers, sizeof(steps));
  steps *= static_cast<uint32_t>(std::min<int64_t>(from.step, 4)) * 0x01010101;
  Vector indices[sources];
  const std::byte* first[sources];
  for (size_t i = 0; i < sources; ++i) {
    first[i] = from.first + std::min(static_cast<int>(i), spec.elements - 1) * from.element_step;
    uint32_t here = spec.present;
    if (sources > 1) here &= 0xffu << (i * (is_pairs ? 16 : 8) % 32);
    const uint32_t offsets = sources > 1 ? 0 : is_pairs ? 0x00010000 : 0x03020100;
    indices[i] = steps + ((offsets & here) | (nowhere & ~here));
  }
  const Vector sign_flips = Vector{} + spec.sign_flips;
  const Vector zeros = Vector{} + spec.zeros;
  const int64_t count = rows.count;
  for (int64_t row = 0; row < rows.rows; ++row) {
    // As below: no address beyond the last row is computed.
    const int64_t row_offset = row * from.row_step;
    uint32_t* const to = rows.first + row * rows.step;
    for (int64_t i = 0; i < count; i += at_once) {
      const int64_t k_group = std::min(i, count - at_once);
      Vector bytes = {};
      for (size_t j = 0; j < sources; ++j) {
        bytes |= bytes_at(indices[j],
                          load<Vector>(first[j] + row_offset + k_group * from.step, from.step));
      }
      bytes = i16_less(bytes ^ sign_flips, zeros);
      std::memcpy(to + k_group, &bytes, sizeof(bytes));
    }
  }
}

template <class Vector>
void interleave_as(size_t sources, const KGroupSource& from, const KGroupSpec& spec,
                   const KGroupRows& to) {
  if (sources == 1) return interleave_vectors<Vector, 1>(from, spec, to);
  if (sources == 2) return interleave_vectors<Vector, 2>(from, spec, to);
  interleave_vectors<Vector, 4>(from, spec, to);
}

}  // namespace

KGroupSpec k_group_spec(jit::ProductEngine engine, int64_t elements, uint8_t sign_flip,
                        int32_t zero_point) {
  const bool is_pairs = engine == jit::ProductEngine::i16_pairs;
  const auto there = static_cast<int>(std::min<int64_t>(elements, is_pairs ? 2 : 4));
  const uint32_t all = ~0u >> (32 - there * (is_pairs ? 16 : 8));
  const uint32_t zero = is_pairs ? static_cast<uint32_t>(zero_point + sign_flip) & 0xffff : 0;
  const uint32_t present = is_pairs ? all & 0x00ff00ff : all;
  return {.engine = engine,
          .elements = there,
          .present = present,
          .sign_flips = in_all_bytes(sign_flip) & present,
          .zeros = (zero | zero << 16) & all};
}

void gather_k_groups(const KGroupSource& from, const KGroupSpec& spec, const KGroupRows& rows) {
  const int bits = spec.engine == jit::ProductEngine::i16_pairs ? 16 : 8;
  const uint32_t sign_flips = spec.sign_flips;
  const uint32_t zeros = spec.zeros;
  for (int64_t row = 0; row < rows.rows; ++row) {
    for (int64_t i = 0; i < rows.count; ++i) {
      // A step of one group may lead anywhere: no address beyond the last group is computed.
      const std::byte* first = from.first + row * from.row_step + i * from.step;
      uint32_t k_group = sign_flips;
      for (int element = 0; element < spec.elements; ++element) {
        k_group ^= std::to_integer<uint32_t>(first[element * from.element_step])
                   << (element * bits);
      }
      const uint32_t low = (k_group - zeros) & 0xffff;
      rows.first[row * rows.step + i] = low | ((k_group & 0xffff0000) - (zeros & 0xffff0000));
    }
  }
}

void interleave(const KGroupSource& from, const KGroupSpec& spec, const KGroupRows& to) {
  if (to.count < 4) return gather_k_groups(from, spec, to);
  const bool is_adjacent = from.element_step == 1;
  const auto sources = static_cast<size_t>(is_adjacent ? 1 : spec.elements);
  const bool fits_16 = 7 * from.step + (is_adjacent ? spec.elements : 1) <= 16;
  const auto interleave_all = fits_16 && to.count >= 8 ? interleave_as<Eight> : interleave_as<Four>;
  interleave_all(sources, from, spec, to);
}

namespace {

template <bool is_signed>
CASTOR_AVX2 inline __m256i widened(__m128i bytes) {
  return is_signed ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
}

/// A row of at least eight bytes; the last vector may have some once more.
template <bool is_signed>
CASTOR_AVX2 void widen_row(const std::byte* from, int64_t count, __m256i zeros, std::byte* to) {
  if (count < 16) {
    for (const int64_t i : {int64_t{0}, count - 8}) {
      const __m256i numbers =
          widened<is_signed>(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + i)));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * i),
                       _mm256_castsi256_si128(_mm256_sub_epi16(numbers, zeros)));
    }
    return;
  }
  for (int64_t done = 0; done < count; done += 16) {
    const int64_t i = std::min(done, count - 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 2 * i),
                        _mm256_sub_epi16(widened<is_signed>(load_16(from + i)), zeros));
  }
}

/// A row of fewer bytes.
template <bool is_signed>
void widen_one_by_one(const std::byte* from, int64_t count, int32_t zero_point, std::byte* to) {
  using Byte = std::conditional_t<is_signed, int8_t, uint8_t>;
  for (int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<int16_t>(static_cast<Byte>(from[i]) - zero_point);
    std::memcpy(to + 2 * i, &number, sizeof(number));
  }
}

template <bool is_signed>
CASTOR_AVX2 void widen_rows(const ByteRows& from, int32_t zero_point, std::byte* to,
                            int64_t to_step) {
  const __m256i zeros = _mm256_set1_epi16(static_cast<int16_t>(zero_point));
  for (int64_t row = 0; row < from.rows; ++row) {
    const std::byte* const first = from.first + row * from.step;
    std::byte* const row_to = to + row * to_step;
    from.count < 8 ? widen_one_by_one<is_signed>(first, from.count, zero_point, row_to)
                   : widen_row<is_signed>(first, from.count, zeros, row_to);
  }
}

}  // namespace

void widen_to_i16(const ByteRows& from, bool is_signed, int32_t zero_point, std::byte* to,
                  int64_t to_step) {
  is_signed ? widen_rows<true>(from, zero_point, to, to_step)
            : widen_rows<false>(from, zero_point, to, to_step);
}

uint32_t sum_of_bytes(const std::byte* bytes, int64_t count, uint8_t sign_flip) {
  const uint64_t xors = sign_flip * uint64_t{0x0101010101010101};
  __m128i sums = _mm_setzero_si128();
  const auto add = [&](__m128i some) {
    sums = _mm_add_epi64(sums, _mm_sad_epu8(some, _mm_setzero_si128()));
  };
  const auto add_tail = [&](auto some) {
    if ((static_cast<size_t>(count) & sizeof(some)) == 0) return;
    std::memcpy(&some, bytes, sizeof(some));
    some = static_cast<decltype(some)>(some ^ xors);
    add(_mm_cvtsi64_si128(static_cast<int64_t>(some)));
    bytes += sizeof(some);
  };
  const __m128i xors_16 = _mm_set1_epi64x(static_cast<int64_t>(xors));
  for (; count >= 16; count -= 16, bytes += 16) add(_mm_xor_si128(load_16(bytes), xors_16));
  add_tail(uint64_t{});
  add_tail(uint32_t{});
  add_tail(uint16_t{});
  add_tail(uint8_t{});
  return static_cast<uint32_t>(_mm_cvtsi128_si32(sums)) +
         static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_srli_si128(sums, 8)));
}

}  // namespace castor::detail
