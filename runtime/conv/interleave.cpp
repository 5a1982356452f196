// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/interleave.hpp"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "ir/support/integer_math.hpp"

/// Every tier has AVX2, but not the baseline that the compiler is given; tiers with tiles have
/// AVX-512, but where the emulator carries them out.
#define CASTOR_AVX2 [[gnu::target("avx2")]]
#define CASTOR_AVX512 [[gnu::target("avx512f,avx512bw,avx512vl")]]

namespace castor::detail {

namespace {

/// Vectors of k groups.
using Four = uint32_t __attribute__((vector_size(16)));
using Eight = uint32_t __attribute__((vector_size(32)));

__m128i load_16(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
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

constexpr int64_t lane_pixels = 16;     ///< pixels that a lane of 128 bits has of a channel
constexpr int64_t line_pixels = 64;     ///< pixels that a cache line has
constexpr int64_t block_channels = 64;  ///< channels of a block: four lanes of sixteen

/// Transposes sixteen pixels of 64 channels. Lane l of row i is channel 16 l + i; so four rounds of
/// unpacking within lanes, which double what a row has of a pixel, leave all of a pixel in a row.
CASTOR_AVX512 inline void transpose_pixels(const std::byte* from, int64_t channel_step,
                                           __m512i* rows) {
  const auto lane = [&](int64_t number) { return from + number * 16 * channel_step; };
  for (int i = 0; i < lane_pixels; ++i, from += channel_step) {
    __m512i row = _mm512_castsi128_si512(load_16(from));
    row = _mm512_inserti32x4(row, load_16(lane(1)), 1);
    row = _mm512_inserti32x4(row, load_16(lane(2)), 2);
    rows[i] = _mm512_inserti32x4(row, load_16(lane(3)), 3);
  }
  // A round takes rows i and i + 8: after four rounds, row i is pixel i.
  for (int round = 0; round < 4; ++round) {
    __m512i halves[lane_pixels];
    for (int i = 0; i < lane_pixels / 2; ++i) {
      halves[2 * i] = _mm512_unpacklo_epi8(rows[i], rows[i + 8]);
      halves[2 * i + 1] = _mm512_unpackhi_epi8(rows[i], rows[i + 8]);
    }
    std::copy(std::begin(halves), std::end(halves), rows);
  }
}

/// Transposes fewer channels, and fewer pixels, after which nothing may be read; what is not there
/// is 0.
CASTOR_AVX512 void transpose_tail(const PixelSource& from, __m512i* rows) {
  std::array<std::byte, lane_pixels* block_channels> copy = {};
  const int64_t pixels = std::min(from.pixels, lane_pixels);
  for (int64_t channel = 0; channel < from.channels; ++channel) {
    const std::byte* const first = from.first + channel * from.channel_step;
    std::byte* const to = copy.data() + channel * lane_pixels;
    if (from.end - first >= lane_pixels) {
      std::memcpy(to, first, lane_pixels);
    } else {
      std::memcpy(to, first, static_cast<size_t>(pixels));
    }
  }
  transpose_pixels(copy.data(), lane_pixels, rows);
}

/// Prefetches the pixels after those of this cache line, of a quarter of a block's channels each
/// time: a core's prefetchers follow fewer rows.
inline void prefetch_pixels(const PixelSource& from, int64_t channel, int64_t pixel) {
  constexpr int64_t quarters = 4;
  constexpr int64_t count = block_channels / quarters;
  const std::byte* row = from.first + pixel + line_pixels +
                         (channel + pixel / lane_pixels % quarters * count) * from.channel_step;
  for (int64_t i = 0; i < count; ++i, row += from.channel_step) {
    _mm_prefetch(reinterpret_cast<const char*>(row), _MM_HINT_T0);
  }
}

/// Pixels of a k group are k groups.
void gather_narrow_pixels(const PixelSource& from, std::byte* to) {
  const KGroupSpec spec = k_group_spec(jit::ProductEngine::u8_i8_dot, from.channels, 0, 0);
  const KGroupSource source = {.first = from.first, .element_step = from.channel_step, .step = 1};
  const std::byte* last = from.first + (from.channels - 1) * from.channel_step + from.pixels;
  const KGroupRows rows = {reinterpret_cast<uint32_t*>(to), from.pixels};
  from.end - last < interleave_slack ? gather_k_groups(source, spec, rows)
                                     : interleave(source, spec, rows);
}

CASTOR_AVX512 void gather_wide_pixels(const PixelSource& from, std::byte* to, int64_t pixel_bytes) {
  for (int64_t channel = 0; channel < from.channels; channel += block_channels) {
    const int64_t there = std::min(from.channels - channel, block_channels);
    const __mmask64 stored = ~__mmask64{0} >> (block_channels - ceil_div(there, 4) * 4);
    const std::byte* const block = from.first + channel * from.channel_step;
    for (int64_t done = 0; done < from.pixels;) {
      // A row's last lane overlaps the one before, or has pixels after it, if these may be read.
      const int64_t pixel = std::clamp<int64_t>(from.pixels - lane_pixels, 0, done);
      const int64_t count = std::min(from.pixels - pixel, lane_pixels);
      const std::byte* const first = block + pixel;
      const std::byte* const last = first + (there - 1) * from.channel_step;
      __m512i rows[lane_pixels];
      if (there == block_channels && pixel + 2 * line_pixels <= from.pixels) {
        prefetch_pixels(from, channel, pixel);
      }
      if (there == block_channels && from.end - last >= lane_pixels) {
        transpose_pixels(first, from.channel_step, rows);
      } else {
        transpose_tail({first, from.channel_step, there, count, from.end}, rows);
      }
      std::byte* const pixel_to = to + pixel * pixel_bytes + channel;
      for (int64_t i = 0; i < count; ++i) {
        _mm512_mask_storeu_epi8(pixel_to + i * pixel_bytes, stored, rows[i]);
      }
      done = pixel + count;
    }
  }
}

/// The same one by one, for CPUs without AVX-512, on which calls with tiles are emulated.
void gather_one_by_one(const PixelSource& from, std::byte* to, int64_t pixel_bytes) {
  const int64_t stored = ceil_div(from.channels, 4) * 4;
  for (int64_t pixel = 0; pixel < from.pixels; ++pixel) {
    for (int64_t channel = 0; channel < stored; ++channel) {
      to[pixel * pixel_bytes + channel] =
          channel < from.channels ? from.first[channel * from.channel_step + pixel] : std::byte{0};
    }
  }
}

}  // namespace

void gather_pixels(const PixelSource& from, std::byte* to, int64_t pixel_bytes) {
  if (pixel_bytes == 4) return gather_narrow_pixels(from, to);
  __builtin_cpu_supports("avx512bw") != 0 ? gather_wide_pixels(from, to, pixel_bytes)
                                          : gather_one_by_one(from, to, pixel_bytes);
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
