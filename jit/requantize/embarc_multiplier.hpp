// SPDX-License-Identifier: Apache-2.0
// The library's approximation of a ratio of scales.
// Source: embARC MLI 2.0, its conversion of quantization parameters.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>

#include "jit/requantize/method.hpp"

namespace castor::jit {

/// scale * 2^-shift, with 2^13 <= scale < 2^15.
struct EmbarcMultiplier {
  int32_t scale;
  int shift;
};

/// Leading bits of a positive number that repeat its sign, in a type of that many bits.
constexpr int redundant_sign_bits(int32_t positive, int bits) {
  return bits - 1 - static_cast<int>(std::bit_width(static_cast<uint32_t>(positive)));
}

inline EmbarcMultiplier embarc_multiplier(const SliceParameters& slice, bool half_up) {
  const int up =
      redundant_sign_bits(slice.from_scale, 32) - redundant_sign_bits(slice.to_scale, 16);
  const int32_t quotient = (slice.from_scale << up) / slice.to_scale;
  const int down = 16 - redundant_sign_bits(quotient, 32);
  const int shift = up + slice.from_frac - slice.to_frac - down;
  if (down <= 0) return {quotient << -down, shift};
  const int32_t below = quotient >> down;
  const int32_t fraction = quotient & ((1 << down) - 1);
  const int32_t half = 1 << (down - 1);
  const bool rounds_up = fraction > half || (fraction == half && (half_up || below % 2 != 0));
  return {std::min(below + (rounds_up ? 1 : 0), 32767), shift};
}

/// The multiplier scaled so that 2^14 <= scale < 2^15.
inline EmbarcMultiplier embarc_multiplier_of_15_bits(const SliceParameters& slice, bool half_up) {
  const EmbarcMultiplier multiplier = embarc_multiplier(slice, half_up);
  const int missing = redundant_sign_bits(multiplier.scale, 16);
  return {multiplier.scale << missing, multiplier.shift + missing};
}

/// The least redundant sign bits of a difference from the zero point and of the multiplier:
/// how far the library moves the product of 64 bits to the left before it cuts the lower 32 bits
/// off, which are zeros where this is 32 or more.
inline int min_norms(const RequantizeForm& form, const SliceParameters& slice,
                     const EmbarcMultiplier& multiplier) {
  const int norm = redundant_sign_bits(multiplier.scale, 32);
  if (form.from == QuantizedFormat::sa32) return norm;
  const int32_t farthest =
      (1 << (bits_of(form.from_element()) - 1)) - 1 + std::abs(slice.from_zero_point);
  return norm + redundant_sign_bits(farthest, 32);
}

/// Whether the bits that the library's 64-bit accumulators cut off are zeros, or none that rounding
/// would have seen.
inline bool rounds_whole_accumulators(const RequantizeForm& form, const SliceParameters& slice,
                                      const EmbarcMultiplier& multiplier) {
  const int norms = min_norms(form, slice, multiplier);
  if (norms >= 32) return true;
  if (!form.rounds_half_up()) return false;
  if (form.to != QuantizedFormat::sa32) return true;  // where bits are cut off, results saturate
  return std::min(multiplier.shift, 63) + norms >= 33;
}

}  // namespace castor::jit
