// SPDX-License-Identifier: Apache-2.0
// What is known of quotients that are computed with a reciprocal, for solvers to which sums,
// products and quotients are any functions.
//
// y is 1 / s, rounded to nearest, for |s| from `least` to `largest`, and q is x / s, rounded; p is
// the format's precision.
//
// 1. Let lo and hi be y with its magnitude less and more by two units of its last place. Where x *
//    lo + M and x * hi + M, rounded, are one number, with M = 1.5 * 2^(p - 1), its bits less those
//    of M are q rounded to an integer, or beyond `limit` on the same side, though not beyond those
//    of infinities less those of M. For y is within half a
//    unit of 1 / s, and rounding moves x / s by at most half of q's last place, which is at most a
//    unit of y's, times x. So q is between x * lo and x * hi, and q + M, rounded, between the two
//    sums, where the last place is that of integers while |q| <= 2^(p - 2). Below -2^(p - 2) the
//    products differ by |q| * 2^(2 - p), which is at least two units of the sums' last place: these
//    differ too, but where both are infinite.
// 2. Let q0 be x * y and r be x - q0 * s, each rounded once. Then r * y + q0, rounded, is q where
//    |q| is from a quarter to `limit`, and else beyond on the same side (after P. Markstein,
//    Computation of Elementary Functions on the IBM RISC System/6000 Processor, 1990): `least` is
//    such that r has no bits below the least subnormal number.
//
// reciprocal_lemmas_test runs both on all numbers of small formats. For f32, the second rests on
// quotient_test, which enumerates the cases in which it is nearly not so.
#pragma once

#include <optional>

#include "tools/prove/term/float_terms.hpp"

namespace castor::prove {

/// A format, and between which magnitudes the lemmas hold.
struct ReciprocalFormat {
  FloatFormat format;
  int least = 0;    ///< exponent of two
  int largest = 0;  ///< the same
  int limit = 0;    ///< the same; at most the format's precision less 2
};

/// f32 as jit/lane/reciprocals.hpp uses it.
ReciprocalFormat reciprocals_of_f32();

/// The lemmas of two numbers: a truth value that always holds.
Term reciprocal_lemmas(const ReciprocalFormat& reciprocals, const Term& x, const Term& s);

/// What is known of a number and what converting it to the nearest integer gives: 0 below a
/// quarter, the limit for it, and no more than minus the limit below that.
Term conversion_lemmas(const ReciprocalFormat& reciprocals, const Term& number,
                       const Term& converted);

/// A truth value with the lemmas of all f32 quotients in it whose divisor has a reciprocal there,
/// and with conversions to integers as new inputs of which the lemmas above are known. It can be 1
/// where the given one can. Nothing where there is no such quotient.
std::optional<Term> with_reciprocal_lemmas(const Term& truth);

}  // namespace castor::prove
