// SPDX-License-Identifier: Apache-2.0
// NCHW pixels become rows of their channels.
#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/conv/vectors.hpp"

namespace castor::detail {

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

}  // namespace castor::detail
