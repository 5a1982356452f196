// SPDX-License-Identifier: Apache-2.0
// Vectors for the constant pool: permutations, masks, factors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace castor::jit {

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

/// A vector of equal constants.
template <class T>
std::vector<uint8_t> repeated_constant(int vector_bits, int value) {
  return vector_constant<T>(vector_bits, [&](int) { return value; });
}

/// A vector of constants for lanes of `lane_bits`.
template <class ValueOf>
std::vector<uint8_t> lanes_constant(int lane_bits, int vector_bits, ValueOf value) {
  switch (lane_bits) {
    case 8: return vector_constant<uint8_t>(vector_bits, value);
    case 16: return vector_constant<uint16_t>(vector_bits, value);
    case 32: return vector_constant<uint32_t>(vector_bits, value);
    default: return vector_constant<uint64_t>(vector_bits, value);
  }
}

/// vgf2p8affineqb: bits `from` and those above of each byte become `count` bits from `to` on, and
/// all others 0. The row of bit 0 is the last byte.
inline std::vector<uint8_t> bit_matrix(int vector_bits, int from, int to, int count = 1) {
  uint64_t matrix = 0;
  for (int i = 0; i < count; ++i) matrix |= uint64_t{1} << (from + i) << (8 * (7 - to - i));
  return vector_constant<uint64_t>(vector_bits, [&](int) { return matrix; });
}

/// The order by which a permutation of two vectors takes the even elements, or with `offset` 1 the
/// odd ones.
template <class T>
std::vector<uint8_t> every_second(int vector_bits, int offset) {
  return vector_constant<T>(vector_bits, [&](int i) { return 2 * i + offset; });
}

}  // namespace castor::jit
