// SPDX-License-Identifier: Apache-2.0
// Floats as terms: the bare operations, whose NaN is the format's nan(), and x86's instructions
// around them, whose signs and payloads of NaNs are bit-vector terms (Intel SDM 1, 4.8.3.5: the
// first operand that is a NaN, made quiet; the default NaN, of sign 1, where there is none).
#pragma once

#include "tools/prove/term/term.hpp"

namespace castor::prove {

// Bare operations.
Term float_add(FloatFormat format, Rounding rounding, const Term& a, const Term& b);
Term float_mul(FloatFormat format, Rounding rounding, const Term& a, const Term& b);
Term float_div(FloatFormat format, Rounding rounding, const Term& a, const Term& b);
Term float_sqrt(FloatFormat format, Rounding rounding, const Term& a);
Term float_fma(FloatFormat format, Rounding rounding, const Term& a, const Term& b, const Term& c);
Term float_remainder(FloatFormat format, const Term& a, const Term& b);
Term float_round(FloatFormat format, Rounding rounding, const Term& a);
Term float_convert(FloatFormat from, FloatFormat to, Rounding rounding, const Term& a);
/// x86's results: out of range and of NaN, the sign bit alone where signed, else all ones.
Term float_to_signed(FloatFormat format, Rounding rounding, int width, const Term& a);
Term float_to_unsigned(FloatFormat format, Rounding rounding, int width, const Term& a);
Term signed_to_float(FloatFormat format, Rounding rounding, const Term& a);
Term unsigned_to_float(FloatFormat format, Rounding rounding, const Term& a);

// Classes and comparisons, in bit-vectors. Comparisons are false where an operand is a NaN.
Term is_nan(FloatFormat format, const Term& a);
Term is_infinite(FloatFormat format, const Term& a);
Term is_zero(FloatFormat format, const Term& a);
Term magnitude_of(FloatFormat format, const Term& a);  ///< the sign cleared
Term quieted(FloatFormat format, const Term& a);
Term float_equal(FloatFormat format, const Term& a, const Term& b);
Term float_less(FloatFormat format, const Term& a, const Term& b);
Term float_at_most(FloatFormat format, const Term& a, const Term& b);
Term unordered(FloatFormat format, const Term& a, const Term& b);

/// x86's instructions, NaNs included.
namespace x86 {

Term add(FloatFormat format, Rounding rounding, const Term& a, const Term& b);
Term sub(FloatFormat format, Rounding rounding, const Term& a, const Term& b);
Term mul(FloatFormat format, Rounding rounding, const Term& a, const Term& b);
Term div(FloatFormat format, Rounding rounding, const Term& a, const Term& b);
Term sqrt(FloatFormat format, Rounding rounding, const Term& a);
/// a * b + c with the NaN of the first of a, b, c that is one: the order of the 213 form's operands
/// is a, b, c in Intel's text; the caller orders others.
Term fma(FloatFormat format, Rounding rounding, const Term& a, const Term& b, const Term& c);
/// b where an operand is a NaN or both are zeros.
Term min(FloatFormat format, const Term& a, const Term& b);
Term max(FloatFormat format, const Term& a, const Term& b);
Term round(FloatFormat format, Rounding rounding, const Term& a);
/// A NaN keeps its sign, becomes quiet and keeps the payload's upper bits.
Term convert(FloatFormat from, FloatFormat to, Rounding rounding, const Term& a);

}  // namespace x86
}  // namespace castor::prove
