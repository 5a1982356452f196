// SPDX-License-Identifier: Apache-2.0
// Loops of packing: channels are interleaved to k groups, i32 transposed, bytes added up.
#pragma once

#include <cstddef>
#include <cstdint>

namespace castor::detail {

/// Rows of the channels of k groups: four of bytes, or two of i16 pairs. Null: what such a channel
/// gives does not matter.
struct KGroupSource {
  const std::byte* channels[4] = {};
  int64_t step = 1;  ///< bytes from one pixel to the next
};

/// to[i] = a byte of each channel at pixel i, the first channel's lowest, each with `flip` xored.
void interleave_bytes(const KGroupSource& from, uint8_t flip, int64_t count, uint32_t* to);

/// to[i] = an i16 of each of the first two channels at pixel i, less the zero point.
void interleave_pairs(const KGroupSource& from, bool is_signed, int32_t zero_point, int64_t count,
                      uint32_t* to);

/// The sum of bytes as unsigned numbers, each with `flip` xored, modulo 2^32.
uint32_t sum_of_bytes(const std::byte* bytes, int64_t count, uint8_t flip);

/// to[column * to_step + row] = from[row * from_step + column]; steps in i32.
void transpose_dwords(const int32_t* from, int64_t from_step, int64_t rows, int64_t columns,
                      int32_t* to, int64_t to_step);

}  // namespace castor::detail
