// SPDX-License-Identifier: Apache-2.0
// Values of terms: bit-vectors of 1 to 128 bits.
#pragma once

#include <bit>
#include <cstdint>

namespace castor::prove {

/// The bits of a value; those from its width on are 0.
__extension__ typedef unsigned __int128 Bits;
inline constexpr int max_width = 128;

constexpr Bits low_mask(int width) {
  return width >= max_width ? ~Bits{0} : (Bits{1} << width) - 1;
}
constexpr Bits sign_bit(int width) { return Bits{1} << (width - 1); }
constexpr bool is_negative(Bits value, int width) { return (value & sign_bit(width)) != 0; }

/// The value as a two's complement number of all 128 bits.
constexpr Bits sign_extended(Bits value, int width) {
  return is_negative(value, width) ? value | ~low_mask(width) : value;
}

/// Bits up to the highest one that is set; 0 of 0.
constexpr int bit_length(Bits value) {
  const auto high = static_cast<uint64_t>(value >> 64);
  return high != 0 ? 64 + std::bit_width(high) : std::bit_width(static_cast<uint64_t>(value));
}

}  // namespace castor::prove
