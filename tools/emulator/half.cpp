// SPDX-License-Identifier: Apache-2.0
#include "tools/emulator/half.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace castor::emulator {

namespace {

constexpr int mantissa_bits = 10;
constexpr int min_exponent = -14;
constexpr long double largest = 65504;

/// Where numbers beyond the largest go.
uint16_t overflowed(bool negative, RoundingMode mode) {
  const uint16_t sign = negative ? half_sign : 0;
  const bool stays_finite = mode == RoundingMode::toward_zero ||
                            mode == (negative ? RoundingMode::up : RoundingMode::down);
  return static_cast<uint16_t>(sign | (half_infinity - (stays_finite ? 1 : 0)));
}

}  // namespace

long double value_of(uint16_t half) {
  const int exponent = half >> mantissa_bits & 0x1f;
  const int fraction = half & 0x3ff;
  long double magnitude = 0;
  if (exponent == 0x1f) {
    magnitude = std::numeric_limits<long double>::infinity();
  } else {
    const int hidden = exponent == 0 ? 0 : 1 << mantissa_bits;
    magnitude = std::ldexp(static_cast<long double>(fraction + hidden),
                           std::max(exponent, 1) - 15 - mantissa_bits);
  }
  return (half & half_sign) != 0 ? -magnitude : magnitude;
}

long double integral(long double exact, RoundingMode mode) {
  switch (mode) {
    case RoundingMode::nearest_even: return std::nearbyint(exact);
    case RoundingMode::down: return std::floor(exact);
    case RoundingMode::up: return std::ceil(exact);
    case RoundingMode::toward_zero: return std::trunc(exact);
  }
  return exact;
}

uint16_t rounded_half(long double exact, RoundingMode mode) {
  const bool negative = std::signbit(exact);
  const uint16_t sign = negative ? half_sign : 0;
  if (std::isinf(exact)) return static_cast<uint16_t>(sign | half_infinity);
  if (exact == 0) return sign;
  const int exponent = std::max(std::ilogb(exact), min_exponent);
  const int last_place = exponent - mantissa_bits;
  const long double units = std::abs(integral(std::ldexp(exact, -last_place), mode));
  if (std::ldexp(units, last_place) > largest) return overflowed(negative, mode);
  // The hidden bit adds one to the exponent field; so does a carry out of the significand.
  const int field = (exponent - min_exponent) << mantissa_bits;
  return static_cast<uint16_t>(sign | (field + static_cast<int>(units)));
}

}  // namespace castor::emulator
