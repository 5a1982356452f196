// SPDX-License-Identifier: Apache-2.0
// f16 as hardware computes with it, in plain arithmetic: every f16, f64 and 64-bit integer is a
// long double, which x86 gives 64 significant bits.
#pragma once

#include <cstdint>

namespace castor::emulator {

/// As in MXCSR's bits 13 and 14, and in EVEX.
enum class RoundingMode : uint8_t { nearest_even, down, up, toward_zero };

inline constexpr uint16_t half_sign = 0x8000;
inline constexpr uint16_t half_infinity = 0x7c00;
inline constexpr uint16_t half_quiet = 0x0200;
/// What invalid operations give.
inline constexpr uint16_t half_default_nan = 0xfe00;

constexpr bool is_nan(uint16_t half) { return (half & 0x7fff) > half_infinity; }

/// The value of a half that is no NaN.
long double value_of(uint16_t half);
/// An exact number, rounded once; infinities stay.
uint16_t rounded_half(long double exact, RoundingMode mode);
/// Rounded to an integral number.
long double integral(long double exact, RoundingMode mode);

}  // namespace castor::emulator
