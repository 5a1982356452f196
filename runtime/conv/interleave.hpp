// SPDX-License-Identifier: Apache-2.0
// Loops of packing: bytes are interleaved to k groups, widened, NCHW pixels become rows, i32 are
// transposed, bytes added up.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "ir/support/integer_math.hpp"
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

/// Pixels whose channels are adjacent.
struct ChannelSource {
  const std::byte* first = nullptr;
  int64_t step = 0;  ///< from one pixel to the next
  int64_t channels = 0;
  int64_t pixels = 0;
};
/// The packed pixels: a row of them for each k group of the channels.
struct PackedRows {
  uint32_t* first = nullptr;
  int64_t step = 0;  ///< k groups from one row to the next
};

/// Packs the k groups of pixels, eight pixels at a time. Needs at least that many; `spec` is that
/// of k groups that are whole.
void transpose_k_groups(const ChannelSource& from, const KGroupSpec& spec, const PackedRows& to);
/// Bytes that it reads of a pixel with that many channels: at least eight k groups, all whole.
constexpr int64_t transposed_bytes(jit::ProductEngine engine, int64_t channels) {
  const int64_t held = jit::channels_of_k_group(engine);
  return held * std::max<int64_t>(ceil_div(channels, held), 8);
}

/// Transposes rows of bytes, 1 to 16 of them: to[16 i + row] = row[i], the last row again for those
/// that are missing. Rows are read, and columns written, by whole 16 bytes.
void transpose_bytes(const std::byte* from, int64_t row_step, int64_t rows, int64_t count,
                     std::byte* to);

/// Output channels whose weights are packed together.
inline constexpr int joined_channels = 16;

/// Weights of a unit as `transpose_bytes` leaves them: a column for each input channel of each k
/// group at each position of the filter.
struct WeightColumns {
  const std::byte* first = nullptr;
  int64_t positions = 1;  ///< columns from one input channel to the next
  int64_t slots = 0;      ///< positions of all k groups
};
/// The packed weights: a slot has one k group for each output channel.
struct WeightSlots {
  std::byte* first = nullptr;
  int64_t step = 0;      ///< bytes from one slot to the next
  int64_t channels = 0;  ///< at most `joined_channels`
};

/// Joins the elements of each k group; from i16 pairs `zeros` are subtracted, one for each channel.
void join_elements(const WeightColumns& from, const KGroupSpec& spec,
                   const std::array<int16_t, joined_channels>& zeros, const WeightSlots& to);

/// Rows of adjacent bytes.
struct ByteRows {
  const std::byte* first = nullptr;
  int64_t step = 0;   ///< from one row to the next
  int64_t count = 0;  ///< bytes of a row
  int64_t rows = 1;
};
/// Widens rows to i16: to[2 i] = (signed or unsigned) from[i] - zero_point, modulo 2^16.
void widen_to_i16(const ByteRows& from, bool is_signed, int32_t zero_point, std::byte* to,
                  int64_t to_step);

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

/// The sum of signed or unsigned bytes, modulo 2^32.
inline int32_t sum_of_row(const std::byte* bytes, int64_t count, bool is_signed) {
  const uint32_t sum = sum_of_bytes(bytes, count, is_signed ? 0x80 : 0);
  return static_cast<int32_t>(sum - (is_signed ? 128 * static_cast<uint32_t>(count) : 0));
}

/// to[column * to_step + row] = from[row * from_step + column]; steps in i32.
void transpose_i32(const int32_t* from, int64_t from_step, int64_t rows, int64_t columns,
                   int32_t* to, int64_t to_step);

}  // namespace castor::detail
