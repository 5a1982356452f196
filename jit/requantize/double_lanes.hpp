// SPDX-License-Identifier: Apache-2.0
// Lanes of f64 that the methods in f64 share.
#pragma once

#include "jit/requantize/method.hpp"

namespace castor::jit {

/// Sums with it are whole, rounded to the nearest, ties to even; their low 32 bits are the integer.
inline constexpr double double_rounder = 0x1.8p52;

/// x less the source's zero point (constant 0); saturated as the library does: to 16 bits, where
/// the library accumulates in 32, else to 32.
LaneId difference(const RequantizeForm& form, const RequantizeLanes& lanes);

/// f32 as f64; NaN as 0, infinities as 2^300 of their sign.
LaneId finite_double(LaneBuilder& b, LaneId x);

/// The value and 2^-50 of its magnitude.
LaneId lift_magnitude(LaneBuilder& b, LaneId value);

/// A sum with `double_rounder`, clamped as an integer of that type.
LaneId clamp_rounded(LaneBuilder& b, LaneId sum, ElementType integer);

/// Clamps a sum with `double_rounder` to the result's type and stores it.
void store_rounded(const RequantizeLanes& lanes, LaneId sum, ElementType to);

}  // namespace castor::jit
