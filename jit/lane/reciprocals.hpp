// SPDX-License-Identifier: Apache-2.0
// Strength reduction of quotients: by a divisor that is hoisted, three multiplications in place of
// a division.
#pragma once

#include "jit/lane/hoist.hpp"

namespace castor::jit {

/// The program with a reciprocal for each float_quotient whose divisor is computed outside of
/// chunks, and with a mask of the divisors that must be divided by: of others, quotients of at
/// least a quarter, or encoded ones, are those of a division (emit_float_quotient has the formula).
/// A quotient that is only cut and converted to an integer becomes a quotient_to_signed.
LaneProgram with_reciprocals(const LaneProgram& program, const std::vector<LoopLevel>& sources);

/// Divisors, in magnitude, whose quotients can be computed by a reciprocal: the remainder of a
/// quotient of at least a quarter has no bits below the least subnormal number, and the reciprocal
/// is normal.
inline constexpr float min_reciprocal_divisor = 0x1p-100f;
/// The same where quotients are encoded: from min_encoded_quotient on, the remainder has none.
inline constexpr float min_encoded_divisor = 0x1p-80f;
inline constexpr float max_reciprocal_divisor = 0x1p+100f;
/// Units of the last place by which multipliers on either side of a reciprocal differ from it. The
/// reciprocal is within half a unit of 1 / b, and a / b changes by at most a unit of it where it is
/// rounded: a quotient, rounded or not, is between the two products, unrounded.
inline constexpr uint32_t reciprocal_slack = 2;

/// The largest by which a product and a multiply-add divide: what the reciprocal lacks is normal.
inline constexpr float max_two_step_divisor = 0x1p+60f;

}  // namespace castor::jit
