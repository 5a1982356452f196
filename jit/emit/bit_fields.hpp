// SPDX-License-Identifier: Apache-2.0
// Sub-byte layouts as emitters see them: groups of eight elements, whose bits are in one or two
// fields each.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "ir/types/storage.hpp"

namespace castor::jit {

/// Bits of an element that are adjacent in memory.
struct BitField {
  int value_bit;  ///< the lowest
  int width;
};

/// An element in one field; in the split layouts its low bits, then its high bits.
inline std::vector<BitField> bit_fields(ElementType type) {
  const int bits = bits_of(type);
  if (info(type).order != StorageOrder::split) return {{0, bits}};
  const int low_bits = bits * 2 / 3;
  return {{0, low_bits}, {low_bits, bits - low_bits}};
}

/// Where a field of element `index` of a group begins, in bits from the group's first byte.
inline int field_position(ElementType type, const BitField& field, int index) {
  return static_cast<int>(storage_bit(type, index, field.value_bit));
}

/// With AVX-512: the opmask under which that many packed bytes are moved; 0 where there are plain
/// moves of them.
constexpr uint64_t mask_of_packed(int bytes) {
  return std::has_single_bit(static_cast<unsigned>(bytes)) ? 0 : (uint64_t{1} << bytes) - 1;
}

/// Elements of one vector of bytes: what is unpacked and packed at a time.
constexpr int codes_per_vector(int vector_bits) { return vector_bits / 8; }

}  // namespace castor::jit
