// SPDX-License-Identifier: Apache-2.0
// Channels interleaved to k groups; and other loops over bytes and dwords that want vectors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace castor::detail {

/// Rows of up to four channels; null where there are no more.
struct DwordSource {
  const std::byte* channels[4] = {};
  int64_t step = 1;  ///< bytes from one pixel to the next
};

/// to[i] = a byte of each channel at pixel i, the first channel's lowest, each with `flip` xored;
/// what channels that are not there give does not matter.
void interleave_bytes(const DwordSource& from, uint8_t flip, int64_t count, uint32_t* to);

/// to[i] = a word of each of the first two channels at pixel i, less the zero point; what a channel
/// that is not there gives does not matter.
void interleave_words(const DwordSource& from, bool is_signed, int32_t zero_point, int64_t count,
                      uint32_t* to);

/// to[k * positions + i] = position i of the k-th four filters, as by interleave_bytes; all filters
/// are adjacent and have `positions` bytes.
void interleave_filters(const std::byte* first, int64_t positions, uint8_t flip, int64_t k_groups,
                        uint32_t* to);

/// The sum of bytes as unsigned numbers, each with `flip` xored, modulo 2^32.
uint32_t sum_of_bytes(const std::byte* bytes, int64_t count, uint8_t flip);

/// to[column * to_step + row] = from[row * from_step + column]; steps in dwords.
void transpose_dwords(const int32_t* from, int64_t from_step, int64_t rows, int64_t columns,
                      int32_t* to, int64_t to_step);

}  // namespace castor::detail
