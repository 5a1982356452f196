// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/term/float_terms.hpp"

#include <algorithm>
#include <array>
#include <cassert>

namespace castor::prove {
namespace {

template <class... Operands>
Term made(TermOp op, int width, const FloatDetail& detail, const Term& a, const Operands&... more) {
  return a.terms().make(op, width, std::array{a, more...}, detail.packed());
}

/// The first operand that is a NaN, quiet, or the default NaN; `bare` where there is none.
template <size_t Count>
Term with_nans(FloatFormat format, const Term& bare, const std::array<Term, Count>& operands) {
  const Term invalid = like(bare, format.sign() | format.nan());
  Term result = if_then_else(is_nan(format, bare), invalid, bare);
  for (size_t i = Count; i-- > 0;) {
    result = if_then_else(is_nan(format, operands[i]), quieted(format, operands[i]), result);
  }
  return result;
}

}  // namespace

Term float_add(FloatFormat format, Rounding rounding, const Term& a, const Term& b) {
  if (a.is_constant() && !b.is_constant()) return float_add(format, rounding, b, a);
  // x - 0 is x, and x + 0 is x but of -0, unless sums of opposite zeros are -0.
  const bool adds_zero = b.is_constant(format.sign()) || b.is_constant(0);
  if (adds_zero && !a.is_constant() && rounding != Rounding::down) {
    const Term sum = b.is_constant(0) ? if_then_else(is_zero(format, a), like(a, 0), a) : a;
    return if_then_else(is_nan(format, a), like(a, format.nan()), sum);
  }
  return made(TermOp::float_add, format.width(), {format, {}, rounding}, a, b);
}
Term float_mul(FloatFormat format, Rounding rounding, const Term& a, const Term& b) {
  return made(TermOp::float_mul, format.width(), {format, {}, rounding}, a, b);
}
Term float_div(FloatFormat format, Rounding rounding, const Term& a, const Term& b) {
  return made(TermOp::float_div, format.width(), {format, {}, rounding}, a, b);
}
Term float_sqrt(FloatFormat format, Rounding rounding, const Term& a) {
  return made(TermOp::float_sqrt, format.width(), {format, {}, rounding}, a);
}
Term float_fma(FloatFormat format, Rounding rounding, const Term& a, const Term& b, const Term& c) {
  return made(TermOp::float_fma, format.width(), {format, {}, rounding}, a, b, c);
}
Term float_remainder(FloatFormat format, const Term& a, const Term& b) {
  return made(TermOp::float_remainder, format.width(), {format, {}, {}}, a, b);
}
Term float_round(FloatFormat format, Rounding rounding, const Term& a) {
  return made(TermOp::float_round, format.width(), {format, {}, rounding}, a);
}
Term float_convert(FloatFormat from, FloatFormat to, Rounding rounding, const Term& a) {
  assert(a.width() == from.width());
  return made(TermOp::float_convert, to.width(), {to, from, rounding}, a);
}
Term float_to_signed(FloatFormat format, Rounding rounding, int width, const Term& a) {
  return made(TermOp::float_to_signed, width, {format, {}, rounding}, a);
}
Term float_to_unsigned(FloatFormat format, Rounding rounding, int width, const Term& a) {
  return made(TermOp::float_to_unsigned, width, {format, {}, rounding}, a);
}
Term signed_to_float(FloatFormat format, Rounding rounding, const Term& a) {
  return made(TermOp::signed_to_float, format.width(), {format, {}, rounding}, a);
}
Term unsigned_to_float(FloatFormat format, Rounding rounding, const Term& a) {
  return made(TermOp::unsigned_to_float, format.width(), {format, {}, rounding}, a);
}

Term magnitude_of(FloatFormat format, const Term& a) { return a & (format.sign() - 1); }
Term is_nan(FloatFormat format, const Term& a) {
  return less_unsigned(like(a, format.infinity()), magnitude_of(format, a));
}
Term is_infinite(FloatFormat format, const Term& a) {
  return equal(magnitude_of(format, a), format.infinity());
}
Term is_zero(FloatFormat format, const Term& a) { return equal(magnitude_of(format, a), 0); }
Term quieted(FloatFormat format, const Term& a) { return a | format.quiet_bit(); }
Term unordered(FloatFormat format, const Term& a, const Term& b) {
  return is_nan(format, a) | is_nan(format, b);
}

Term float_equal(FloatFormat format, const Term& a, const Term& b) {
  return ~unordered(format, a, b) & (equal(a, b) | (is_zero(format, a) & is_zero(format, b)));
}

Term float_less(FloatFormat format, const Term& a, const Term& b) {
  const Term both_negative = bit(a & b, format.width() - 1);
  const Term by_bits = if_then_else(both_negative, less_unsigned(b, a), less_signed(a, b));
  return ~unordered(format, a, b) & ~(is_zero(format, a) & is_zero(format, b)) & by_bits;
}

Term float_at_most(FloatFormat format, const Term& a, const Term& b) {
  return float_less(format, a, b) | float_equal(format, a, b);
}

namespace x86 {

Term add(FloatFormat format, Rounding rounding, const Term& a, const Term& b) {
  return with_nans(format, float_add(format, rounding, a, b), std::array{a, b});
}
Term sub(FloatFormat format, Rounding rounding, const Term& a, const Term& b) {
  const Term bare = float_add(format, rounding, a, b ^ format.sign());
  return with_nans(format, bare, std::array{a, b});
}
Term mul(FloatFormat format, Rounding rounding, const Term& a, const Term& b) {
  return with_nans(format, float_mul(format, rounding, a, b), std::array{a, b});
}
Term div(FloatFormat format, Rounding rounding, const Term& a, const Term& b) {
  return with_nans(format, float_div(format, rounding, a, b), std::array{a, b});
}
Term sqrt(FloatFormat format, Rounding rounding, const Term& a) {
  return with_nans(format, float_sqrt(format, rounding, a), std::array{a});
}
Term fma(FloatFormat format, Rounding rounding, const Term& a, const Term& b, const Term& c) {
  return with_nans(format, float_fma(format, rounding, a, b, c), std::array{a, b, c});
}

Term min(FloatFormat format, const Term& a, const Term& b) {
  return if_then_else(float_less(format, a, b), a, b);
}
Term max(FloatFormat format, const Term& a, const Term& b) {
  return if_then_else(float_less(format, b, a), a, b);
}

Term round(FloatFormat format, Rounding rounding, const Term& a) {
  return if_then_else(is_nan(format, a), quieted(format, a), float_round(format, rounding, a));
}

Term convert(FloatFormat from, FloatFormat to, Rounding rounding, const Term& a) {
  const int payload = std::min(from.fraction_bits(), to.fraction_bits());
  Term fraction = extract(a, from.fraction_bits() - payload, payload);
  if (payload < to.fraction_bits()) {
    fraction = concat(fraction, a.terms().constant(to.fraction_bits() - payload, 0));
  }
  const Term exponent = a.terms().constant(to.exponent_bits, ~Bits{0});
  const Term nan = quieted(to, concat(bit(a, from.width() - 1), concat(exponent, fraction)));
  return if_then_else(is_nan(from, a), nan, float_convert(from, to, rounding, a));
}

}  // namespace x86
}  // namespace castor::prove
