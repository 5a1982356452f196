// SPDX-License-Identifier: Apache-2.0
// Where the bits of an element are stored in a tensor's bytes.
#pragma once

#include <cstdint>
#include <numeric>

#include "ir/types/element_type.hpp"

namespace castor {

/// Elements after which every layout begins at a byte again: they take bits_of(type) bytes.
inline constexpr int64_t storage_group = 8;

/// Elements after which a layout is at the beginning of a byte (split: of a group of three bytes)
/// again: the divisor of storage_group that its bits need.
constexpr int64_t aligned_elements(ElementType type) {
  return storage_group / std::gcd(storage_group, int64_t{bits_of(type)});
}

/// Whether consecutive sub-byte elements are consecutive bits: those of the split layouts are not.
constexpr bool is_bit_string(ElementType type) { return info(type).order != StorageOrder::split; }

/// The byte at which element `index` begins, a multiple of aligned_elements(type); for a distance
/// between such elements, the bytes between.
constexpr int64_t storage_byte(ElementType type, int64_t index) {
  const int64_t bits = bits_of(type);
  return index / storage_group * bits + index % storage_group * bits / 8;
}

/// The offset of bit `value_bit` (0: least significant) of element `index` of a tensor, counted in
/// bits: 8 * byte + bit of the byte. `index` is 0 or more.
/// Source: OpenVINO's element iterator and ONNX's packing, as ir/README.md, Element types, sums up.
constexpr int64_t storage_bit(ElementType type, int64_t index, int value_bit) {
  const ElementInfo& row = info(type);
  const int64_t first = index * row.bits;
  switch (row.order) {
    case StorageOrder::whole_bytes:
    case StorageOrder::lsb_first: break;
    case StorageOrder::msb_first: return first / 8 * 8 + (8 - row.bits - first % 8) + value_bit;
    case StorageOrder::split: {
      // u3: groups of 8 elements, 2 low bits and 1 high bit; u6: groups of 4, 4 and 2. The low
      // bits form a big-endian word of 16 bits, the high bits a byte, the first element on top.
      const int64_t group = aligned_elements(type);
      const int low_bits = static_cast<int>(16 / group);
      const int64_t begin = index / group * 24;
      const int64_t from_end = group - 1 - index % group;
      if (value_bit >= low_bits) {
        return begin + 16 + from_end * (row.bits - low_bits) + (value_bit - low_bits);
      }
      const int64_t in_word = from_end * low_bits + value_bit;
      return begin + (in_word >= 8 ? in_word - 8 : in_word + 8);
    }
  }
  return first + value_bit;
}

}  // namespace castor
