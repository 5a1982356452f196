// SPDX-License-Identifier: Apache-2.0
// Binary floating-point formats of IEEE 754 and its directions of rounding, for terms.
#pragma once

#include <cstdint>

#include "tools/prove/term/value.hpp"

namespace castor::prove {

enum class Rounding : uint8_t { nearest_even, down, up, toward_zero, nearest_away };

/// An interchange format: sign, exponent with the usual bias, fraction; with infinities, NaNs and
/// subnormals. Widths are at most 64 bits.
struct FloatFormat {
  uint8_t exponent_bits = 0;
  uint8_t precision = 0;  ///< bits of the significand, the hidden one included

  constexpr int fraction_bits() const { return precision - 1; }
  constexpr int width() const { return exponent_bits + precision; }
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  /// The exponent of a subnormal's last bit.
  constexpr int min_quantum() const { return 1 - bias() - fraction_bits(); }
  /// The exponent of the last bit of the largest finite number.
  constexpr int max_quantum() const { return bias() - fraction_bits(); }

  constexpr Bits sign() const { return sign_bit(width()); }
  constexpr Bits infinity() const { return low_mask(exponent_bits) << fraction_bits(); }
  constexpr Bits max_finite() const { return infinity() - 1; }
  constexpr Bits quiet_bit() const { return Bits{1} << (fraction_bits() - 1); }
  /// The NaN that float operations of terms give: quiet, sign 0, payload 0.
  constexpr Bits nan() const { return infinity() | quiet_bit(); }
  constexpr bool is_nan(Bits bits) const { return (bits & ~sign()) > infinity(); }

  friend constexpr bool operator==(const FloatFormat&, const FloatFormat&) = default;
};

inline constexpr FloatFormat f16_format{5, 11};
inline constexpr FloatFormat bf16_format{8, 8};
inline constexpr FloatFormat f32_format{8, 24};
inline constexpr FloatFormat f64_format{11, 53};

}  // namespace castor::prove
