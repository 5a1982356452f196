// SPDX-License-Identifier: Apache-2.0
// Sums, products, quotients, remainders and roots in integer arithmetic of two words.
#include "ir/numerics/arithmetic.hpp"

#include <cassert>
#include <tuple>

#include "ir/numerics/exact.hpp"
#include "ir/numerics/round.hpp"

namespace castor::numerics {

namespace {

bool is_zero(const Unpacked& number) { return number.kind == NumberClass::zero; }
bool is_infinite(const Unpacked& number) { return number.kind == NumberClass::infinity; }

Unpacked zero(bool negative) { return {.kind = NumberClass::zero, .negative = negative}; }
Unpacked infinity(bool negative) { return {.kind = NumberClass::infinity, .negative = negative}; }

/// Whether |a| < |b|, of finite exact numbers.
bool is_smaller(const Unpacked& a, const Unpacked& b) {
  return std::tuple(a.exponent, a.significand) < std::tuple(b.exponent, b.significand);
}

/// |large| + |small| or |large| - |small| with the sign of `large`; |large| >= |small|, both
/// finite.
Unpacked combined(const Unpacked& large, const Unpacked& small, bool subtract) {
  // 1. Align: 63 bits below the larger significand, one above for the carry.
  const int distance = large.exponent - small.exponent;
  const Wide upper = Wide{large.significand} << 63;
  const Wide whole = Wide{small.significand} << 63;
  const Wide lower = distance < 128 ? whole >> distance : 0;
  const bool cut = distance >= 128 || lower << distance != whole;
  // 2. A fraction that was cut off makes the difference one unit less, plus a fraction again. A
  // fraction means a distance of 64 or more, so that the difference still has over 64 bits.
  const Wide magnitude = subtract ? upper - lower - (cut ? 1 : 0) : upper + lower;
  if (magnitude == 0) return zero(false);
  return exact_number(large.negative, magnitude, large.exponent - 126, cut);
}

}  // namespace

Unpacked sum(const Unpacked& a, const Unpacked& b) {
  assert(!a.inexact && !b.inexact);
  const bool subtract = a.negative != b.negative;
  if (is_infinite(a)) return is_infinite(b) && subtract ? invalid_result : a;
  if (is_infinite(b)) return b;
  if (is_zero(a) && is_zero(b)) return zero(a.negative && b.negative);
  if (is_zero(a)) return b;
  if (is_zero(b)) return a;
  return is_smaller(a, b) ? combined(b, a, subtract) : combined(a, b, subtract);
}

Unpacked negated(const Unpacked& a) {
  Unpacked result = a;
  result.negative = !a.negative;
  return result;
}

Unpacked product(const Unpacked& a, const Unpacked& b) {
  assert(!a.inexact && !b.inexact);
  const bool negative = a.negative != b.negative;
  if (is_infinite(a) || is_infinite(b)) {
    return is_zero(a) || is_zero(b) ? invalid_result : infinity(negative);
  }
  if (is_zero(a) || is_zero(b)) return zero(negative);
  const Wide magnitude = Wide{a.significand} * b.significand;
  return exact_number(negative, magnitude, a.exponent + b.exponent - 126, false);
}

Unpacked quotient(const Unpacked& a, const Unpacked& b) {
  assert(!a.inexact && !b.inexact);
  const bool negative = a.negative != b.negative;
  if (is_infinite(a)) return is_infinite(b) ? invalid_result : infinity(negative);
  if (is_infinite(b)) return zero(negative);
  if (is_zero(b)) return is_zero(a) ? invalid_result : infinity(negative);
  if (is_zero(a)) return zero(negative);
  // The dividend is shifted so that the quotient has 64 bits; the remainder tells whether the
  // quotient is exact.
  const int shift = a.significand < b.significand ? 64 : 63;
  const Wide dividend = Wide{a.significand} << shift;
  return exact_number(negative, dividend / b.significand, a.exponent - b.exponent - shift,
                      dividend % b.significand != 0);
}

Unpacked remainder(const Unpacked& a, const Unpacked& b) {
  assert(!a.inexact && !b.inexact);
  if (is_infinite(a) || is_zero(b)) return invalid_result;
  if (is_infinite(b) || is_zero(a) || is_smaller(a, b)) return a;
  // In units of b's last place `a` is its significand times 2^distance: long division by b's
  // significand, one bit at a time.
  Wide left = a.significand % b.significand;
  for (int distance = a.exponent - b.exponent; distance > 0; --distance) {
    left = 2 * left % b.significand;
  }
  return exact_number(a.negative, left, b.exponent - 63, false);
}

Unpacked square_root(const Unpacked& a) {
  assert(!a.inexact);
  if (is_zero(a)) return a;
  if (a.negative) return invalid_result;
  if (is_infinite(a)) return a;
  // 1. radicand * 2^(2 * scale) with an even power of two and a radicand from 2^126 on, whose root
  //    has 64 bits.
  const int shift = a.exponent % 2 == 0 ? 63 : 64;
  const Wide radicand = Wide{a.significand} << shift;
  const int scale = (a.exponent - 63 - shift) / 2;
  // 2. The largest integer whose square is not above the radicand, from the top bit on.
  uint64_t root = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const uint64_t candidate = root | uint64_t{1} << bit;
    if (Wide{candidate} * candidate <= radicand) root = candidate;
  }
  return exact_number(false, root, scale, Wide{root} * root != radicand);
}

Unpacked integral(const Unpacked& a, Rounding rounding) {
  if (a.kind != NumberClass::finite || a.exponent >= 63) return a;
  const Cut cut = cut_low_bits(a, 63 - a.exponent);
  const uint64_t away = rounds_away_from_zero(rounding, a.negative, cut) ? 1 : 0;
  return exact_number(a.negative, cut.kept + away, 0);
}

}  // namespace castor::numerics
