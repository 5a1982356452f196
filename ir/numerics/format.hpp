// SPDX-License-Identifier: Apache-2.0
// Codes of floating formats: fields, limits and special codes, derived from FloatFormat.
#pragma once

#include <cstdint>

#include "ir/types/element_type.hpp"

namespace castor::numerics {

/// A word whose low `width` bits are set; `width` from 0 to 64.
constexpr uint64_t low_bits(int width) { return width == 0 ? 0 : ~uint64_t{0} >> (64 - width); }

// Every code below is without its sign bit.

constexpr uint64_t sign_bit(const FloatFormat& format) {
  return uint64_t{1} << (format.exponent_bits + format.mantissa_bits);
}

/// The all-ones exponent over a zero mantissa: infinity, where the format has one.
constexpr uint64_t top_exponent(const FloatFormat& format) {
  return low_bits(format.exponent_bits) << format.mantissa_bits;
}

/// The first mantissa bit, which makes a NaN quiet (IEEE 754-2019, 6.2.1).
constexpr uint64_t quiet_bit(const FloatFormat& format) {
  return uint64_t{1} << (format.mantissa_bits - 1);
}

/// The largest finite number. ieee: below the all-ones exponent; nan_only: below the all-ones
/// code (OCP OFP8, table 1: 0x7E = 448); fnuz, finite: the all-ones code itself.
constexpr uint64_t largest_finite(const FloatFormat& format) {
  switch (format.specials) {
    case FloatSpecials::ieee: return top_exponent(format) - 1;
    case FloatSpecials::nan_only: return sign_bit(format) - 2;
    case FloatSpecials::fnuz:
    case FloatSpecials::finite: break;
  }
  return sign_bit(format) - 1;
}

/// Exponent of the smallest normal number: 1 - bias, "emin" of IEEE 754-2019, table 3.1.
constexpr int smallest_exponent(const FloatFormat& format) { return 1 - format.bias; }

}  // namespace castor::numerics
