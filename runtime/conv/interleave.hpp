// SPDX-License-Identifier: Apache-2.0
// Loops of packing: bytes are interleaved to k groups, NCHW pixels to rows, i32 transposed, bytes
// added up.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jit/conv/dot_product.hpp"

namespace castor::detail {

/// The byte four times.
constexpr uint32_t in_all_bytes(uint8_t byte) { return byte * uint32_t{0x01010101}; }

/// How elements, bytes, become a k group: those of i16 pairs are the low bytes of i16. The result
/// is (bytes ^ sign_flips) - zeros, a difference of i16.
struct KGroupSpec {
  jit::ProductEngine engine = jit::ProductEngine::u8_i8_dot;
  int elements = 0;      ///< present ones
  uint32_t present = 0;  ///< bytes that are elements
  uint32_t sign_flips = 0;
  uint32_t zeros = 0;
};

/// The spec of k groups with that many elements; bytes beyond them are 0. `sign_flip` is xored to
/// each byte. I16 pairs are less the zero point: `sign_flip` is 0x80 where elements are signed.
KGroupSpec k_group_spec(jit::ProductEngine engine, int64_t elements, uint8_t sign_flip,
                        int32_t zero_point);

/// Where the elements of rows of k groups are. Steps in bytes.
struct KGroupSource {
  const std::byte* first = nullptr;
  int64_t element_step = 0;
  int64_t step = 0;      ///< from one k group to the next
  int64_t row_step = 0;  ///< from one row to the next
};
/// Where they are packed to.
struct KGroupRows {
  uint32_t* first = nullptr;
  int64_t count = 0;  ///< k groups of a row
  int64_t rows = 1;
  int64_t step = 0;  ///< k groups from one row to the next
};

/// Packs k groups one by one.
void gather_k_groups(const KGroupSource& from, const KGroupSpec& spec, const KGroupRows& rows);

/// The same, several at a time. Elements may be read that are not there, and `interleave_slack`
/// bytes after the last ones.
void interleave(const KGroupSource& from, const KGroupSpec& spec, const KGroupRows& rows);
inline constexpr int64_t interleave_slack = 16;

/// Adjacent pixels, whose channels are apart.
struct PixelSource {
  const std::byte* first = nullptr;
  int64_t channel_step = 0;
  int64_t channels = 0;
  int64_t pixels = 0;
  const std::byte* end = nullptr;  ///< after the last byte that may be read
};

/// Brings the channels of each pixel together: to[pixel * pixel_bytes + channel]. Up to three bytes
/// after a pixel's last channel, of a k group that is not full, are zeroed. Fast with AVX-512.
void gather_pixels(const PixelSource& from, std::byte* to, int64_t pixel_bytes);

/// The sum of bytes as unsigned numbers, each with `sign_flip` xored, modulo 2^32.
uint32_t sum_of_bytes(const std::byte* bytes, int64_t count, uint8_t sign_flip);

/// to[column * to_step + row] = from[row * from_step + column]; steps in i32.
void transpose_i32(const int32_t* from, int64_t from_step, int64_t rows, int64_t columns,
                   int32_t* to, int64_t to_step);

}  // namespace castor::detail
