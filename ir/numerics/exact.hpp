// SPDX-License-Identifier: Apache-2.0
// Making exact numbers from integers of one or two words.
#pragma once

#include <bit>
#include <cstdint>

#include "ir/numerics/unpacked.hpp"

namespace castor::numerics {

/// Two words: holds every product, aligned sum and shifted dividend of two significands.
__extension__ using Wide = unsigned __int128;

/// The number magnitude * 2^scale, normalised so that bit 63 of the significand is set.
inline Unpacked exact_number(bool negative, uint64_t magnitude, int scale) {
  if (magnitude == 0) return {.kind = NumberClass::zero, .negative = negative};
  const int leading_zeros = std::countl_zero(magnitude);
  return {.kind = NumberClass::finite,
          .negative = negative,
          .significand = magnitude << leading_zeros,
          .exponent = 63 - leading_zeros + scale};
}

/// The number (magnitude + fraction) * 2^scale with 0 <= fraction < 1, nonzero if `inexact`: the
/// upper 64 bits of the magnitude, and whether anything below them was nonzero. If `inexact`, the
/// magnitude has 64 bits or more.
inline Unpacked exact_number(bool negative, Wide magnitude, int scale, bool inexact) {
  const auto upper = static_cast<uint64_t>(magnitude >> 64);
  if (upper == 0) {
    Unpacked number = exact_number(negative, static_cast<uint64_t>(magnitude), scale);
    number.inexact = inexact;
    return number;
  }
  const int cut = 64 - std::countl_zero(upper);
  Unpacked number = exact_number(negative, static_cast<uint64_t>(magnitude >> cut), scale + cut);
  number.inexact = inexact || (magnitude & ((Wide{1} << cut) - 1)) != 0;
  return number;
}

}  // namespace castor::numerics
