// SPDX-License-Identifier: Apache-2.0
// Arithmetic of any FloatFormat on given bits, in integers: the concrete side of float terms.
//
// Every function rounds once. A NaN comes out as the format's nan(), whatever NaNs went in: rules
// for signs and payloads are bit-vector terms around these (float_terms.hpp).
#pragma once

#include "tools/prove/term/float_format.hpp"

namespace castor::prove::soft {

Bits add(FloatFormat format, Rounding rounding, Bits a, Bits b);
Bits mul(FloatFormat format, Rounding rounding, Bits a, Bits b);
Bits div(FloatFormat format, Rounding rounding, Bits a, Bits b);
Bits sqrt(FloatFormat format, Rounding rounding, Bits a);
/// a * b + c, rounded once.
Bits fma(FloatFormat format, Rounding rounding, Bits a, Bits b, Bits c);
/// C's fmod, which is exact.
Bits remainder(FloatFormat format, Bits a, Bits b);
/// To an integral value; a zero keeps the operand's sign.
Bits round(FloatFormat format, Rounding rounding, Bits a);
Bits convert(FloatFormat from, FloatFormat to, Rounding rounding, Bits a);
/// x86's results out of range and of NaN: the sign bit alone where signed, else all ones.
Bits to_integer(FloatFormat format, Rounding rounding, int width, bool is_signed, Bits a);
Bits from_integer(FloatFormat format, Rounding rounding, int width, bool is_signed, Bits a);

}  // namespace castor::prove::soft
