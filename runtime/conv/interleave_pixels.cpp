// SPDX-License-Identifier: Apache-2.0
// NCHW pixels become k groups of columns.
#include <algorithm>
#include <array>
#include <cassert>

#include "runtime/conv/vectors.hpp"
#include "runtime/conv/weight_rows.hpp"

namespace castor::detail {

namespace {

constexpr int64_t k_group = 4;         ///< channels
constexpr int64_t vector_pixels = 16;  ///< k groups that a vector has
constexpr int64_t line_pixels = 64;    ///< pixels that are packed at once
constexpr int64_t vector_bytes = 64;

/// The offsets at which a k group's vectors are stored.
class VectorOffsets {
 public:
  VectorOffsets(int64_t pixels, const PackedColumns& to)
      : group_bytes_(to.vectors * vector_bytes), first_(to.first) {
    assert(pixels <= jit::WeightRowsPlan::max_block_pixels);
    for (int64_t vector = 0; vector < ceil_div(pixels, vector_pixels); ++vector) {
      offsets_[static_cast<size_t>(vector)] =
          vector / to.vectors * to.tile_bytes + vector % to.vectors * vector_bytes;
    }
  }
  std::byte* of(int64_t group, int64_t vector) const {
    return first_ + group * group_bytes_ + offsets_[static_cast<size_t>(vector)];
  }

 private:
  const int64_t group_bytes_;
  std::byte* const first_;
  std::array<int64_t, jit::WeightRowsPlan::max_block_pixels / vector_pixels> offsets_;
};

/// Loads four pixels at a time: four times l of each sixteen go to lane l, so that unpacking within
/// lanes leaves sixteen adjacent pixels in a vector.
CASTOR_AVX512 inline __m512i load_quarters(const std::byte* from, __mmask64 there) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_maskz_permutexvar_epi32(~__mmask16{0}, order, _mm512_maskz_loadu_epi8(there, from));
}

/// Four channels of sixteen pixels, added up.
CASTOR_AVX512 inline __m512i sums_of(__m512i k_groups, bool is_signed) {
  const __m512i ones = _mm512_set1_epi8(1);
  const __m512i pairs =
      is_signed ? _mm512_maddubs_epi16(ones, k_groups) : _mm512_maddubs_epi16(k_groups, ones);
  return _mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
}

/// Packs up to 64 pixels of four rows, from a pixel on.
CASTOR_AVX512 inline void interleave_line(const ChannelRows& from, int64_t group, int64_t pixel,
                                          int64_t pixels, const VectorOffsets& to,
                                          const PixelSums& sums) {
  const __mmask64 there = ~__mmask64{0} >> (line_pixels - pixels);
  const std::byte* const rows = from.first + group * k_group * from.step + pixel;
  __m512i row[k_group];
  for (int64_t i = 0; i < k_group; ++i) row[i] = load_quarters(rows + i * from.step, there);
  const __m512i low[] = {_mm512_unpacklo_epi8(row[0], row[1]),
                         _mm512_unpacklo_epi8(row[2], row[3])};
  const __m512i high[] = {_mm512_unpackhi_epi8(row[0], row[1]),
                          _mm512_unpackhi_epi8(row[2], row[3])};
  const __m512i packed[] = {
      _mm512_unpacklo_epi16(low[0], low[1]), _mm512_unpackhi_epi16(low[0], low[1]),
      _mm512_unpacklo_epi16(high[0], high[1]), _mm512_unpackhi_epi16(high[0], high[1])};
  for (int64_t i = 0; i < ceil_div(pixels, vector_pixels); ++i) {
    _mm512_store_si512(to.of(group, pixel / vector_pixels + i), packed[i]);
    if (sums.to == nullptr) continue;
    int32_t* const sum = sums.to + pixel + i * vector_pixels;
    const __m512i before = group == 0 ? _mm512_setzero_si512() : _mm512_loadu_si512(sum);
    _mm512_storeu_si512(sum, _mm512_add_epi32(before, sums_of(packed[i], sums.is_signed)));
  }
}

/// Brings rows that come soon to L1: no prefetcher of a core follows four rows at once into pages
/// that are new.
inline void prefetch_rows(const ChannelRows& from, int64_t group, int64_t pixel) {
  constexpr int64_t groups_ahead = 2;
  const std::byte* row = from.first + (group + groups_ahead) * k_group * from.step + pixel;
  for (int64_t i = 0; i < k_group; ++i, row += from.step) {
    _mm_prefetch(reinterpret_cast<const char*>(row), _MM_HINT_T0);
  }
}

CASTOR_AVX512 void interleave_vectors(const ChannelRows& from, int64_t pixels,
                                      const VectorOffsets& to, const PixelSums& sums) {
  for (int64_t group = 0; group < from.count / k_group; ++group) {
    for (int64_t pixel = 0; pixel < pixels; pixel += line_pixels) {
      prefetch_rows(from, group, pixel);
      interleave_line(from, group, pixel, std::min(pixels - pixel, line_pixels), to, sums);
    }
  }
}

/// The same one by one, for CPUs without AVX-512, on which calls with tiles are emulated.
void interleave_one_by_one(const ChannelRows& from, int64_t pixels, const VectorOffsets& to,
                           const PixelSums& sums) {
  for (int64_t i = 0; i < ceil_div(pixels, vector_pixels) * vector_pixels; ++i) {
    int32_t sum = 0;
    for (int64_t channel = 0; channel < from.count; ++channel) {
      const std::byte byte = i < pixels ? from.first[channel * from.step + i] : std::byte{0};
      std::byte* const group = to.of(channel / k_group, i / vector_pixels);
      group[i % vector_pixels * k_group + channel % k_group] = byte;
      sum += sums.is_signed ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
    }
    if (sums.to != nullptr) sums.to[i] = sum;
  }
}

}  // namespace

void interleave_pixels(const ChannelRows& from, int64_t pixels, const PackedColumns& to,
                       const PixelSums& sums) {
  const VectorOffsets offsets(pixels, to);
  __builtin_cpu_supports("avx512bw") != 0 ? interleave_vectors(from, pixels, offsets, sums)
                                          : interleave_one_by_one(from, pixels, offsets, sums);
}

}  // namespace castor::detail
