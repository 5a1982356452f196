// SPDX-License-Identifier: Apache-2.0
// Arithmetic on exact numbers, before any rounding.
#pragma once

#include "ir/numerics/unpacked.hpp"

namespace castor::numerics {

/// What an invalid operation gives: sign 1, payload 0 (ir/README.md, Arithmetic, NaN).
inline constexpr Unpacked invalid_result = {.kind = NumberClass::nan, .negative = true};

// The operands are exact numbers or infinities, never NaN. Results hold the exact value's upper 64
// bits and whether there was more (`inexact`): enough to round once to every type. Signs of zeros
// are those of IEEE 754-2019, 6.3, for rounding to nearest.

/// a + b; +0 where numbers of different signs cancel. Infinities of different signs are invalid.
Unpacked sum(const Unpacked& a, const Unpacked& b);

/// -a, NaN included.
Unpacked negated(const Unpacked& a);

/// a * b; 0 * infinity is invalid.
Unpacked product(const Unpacked& a, const Unpacked& b);

/// a / b; a nonzero number over 0 is an infinity, 0 / 0 and infinity / infinity are invalid.
Unpacked quotient(const Unpacked& a, const Unpacked& b);

/// C's fmod: a - b * trunc(a / b), never inexact, of the sign of `a`; a mod 0 and infinity mod b
/// are invalid, a mod infinity is a.
Unpacked remainder(const Unpacked& a, const Unpacked& b);

/// The square root; that of -0 is -0, of numbers below 0 invalid.
Unpacked square_root(const Unpacked& a);

/// `a` rounded to an integral number; zeros keep the sign of `a`, infinities stay. `rounding` is
/// not by_type.
Unpacked integral(const Unpacked& a, Rounding rounding);

}  // namespace castor::numerics
