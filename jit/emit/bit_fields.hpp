// SPDX-License-Identifier: Apache-2.0
// Sub-byte layouts as emitters see them: groups of eight elements, whose bits lie in one or two
// fields each.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ir/storage.hpp"

namespace castor::jit {

/// Bits of an element that lie side by side in memory.
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

/// Elements of one vector of bytes: what is unpacked and packed at a time.
constexpr int codes_per_vector(int vector_bits) { return vector_bits / 8; }

/// A vector of constants, element by element.
template <class T, class ValueOf>
std::vector<uint8_t> vector_constant(int vector_bits, ValueOf value) {
  const size_t count = static_cast<size_t>(vector_bits) / 8 / sizeof(T);
  std::vector<uint8_t> bytes(count * sizeof(T));
  for (size_t i = 0; i < count; ++i) {
    const T element = static_cast<T>(value(static_cast<int>(i)));
    for (size_t b = 0; b < sizeof(T); ++b) {
      bytes[i * sizeof(T) + b] = static_cast<uint8_t>(element >> (8 * b));
    }
  }
  return bytes;
}

}  // namespace castor::jit
