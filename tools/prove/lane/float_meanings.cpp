// SPDX-License-Identifier: Apache-2.0
// Float lanes: x86's instructions, and conversions between lanes of different kinds.
#include "jit/lane/quotient_facts.hpp"
#include "tools/prove/lane/step.hpp"

namespace castor::prove {

using jit::FloatPredicate;
using jit::LaneOp;
using jit::LaneRounding;

namespace {

constexpr Rounding nearest = Rounding::nearest_even;

Rounding rounding_of(const LaneStep& step) {
  switch (static_cast<LaneRounding>(step.inst.imm)) {
    case LaneRounding::nearest_even: return Rounding::nearest_even;
    case LaneRounding::down: return Rounding::down;
    case LaneRounding::up: return Rounding::up;
    case LaneRounding::toward_zero: return Rounding::toward_zero;
  }
  return nearest;
}

Term compared(FloatPredicate predicate, FloatFormat f, const Term& a, const Term& b) {
  switch (predicate) {
    case FloatPredicate::equal: return float_equal(f, a, b);
    case FloatPredicate::less: return float_less(f, a, b);
    case FloatPredicate::less_equal: return float_at_most(f, a, b);
    case FloatPredicate::greater: return float_less(f, b, a);
    case FloatPredicate::greater_equal: return float_at_most(f, b, a);
    case FloatPredicate::not_equal: return ~unordered(f, a, b) & ~float_equal(f, a, b);
    case FloatPredicate::ordered: return ~unordered(f, a, b);
    case FloatPredicate::unordered: return unordered(f, a, b);
    case FloatPredicate::not_equal_or_unordered: return ~float_equal(f, a, b);
  }
  return {};
}

Term is_signalling(FloatFormat f, const Term& a) {
  return is_nan(f, a) & equal(a & f.quiet_bit(), 0);
}

/// vrangeps (Intel SDM): a signalling NaN made quiet, the first if both are; else of a NaN and a
/// number the number; else what `number` picks. `sign_of_a` replaces the result's sign, but not a
/// signalling NaN's.
Term ranged(FloatFormat f, const Term& a, const Term& b, const Term& number, bool sign_of_a) {
  Term picked = if_then_else(is_nan(f, a), b, number);
  picked = if_then_else(is_nan(f, b), a, picked);
  if (sign_of_a) picked = (picked & (f.sign() - 1)) | (a & f.sign());
  picked = if_then_else(is_signalling(f, b), quieted(f, b), picked);
  return if_then_else(is_signalling(f, a), quieted(f, a), picked);
}

/// Numbers in order, -0 below +0.
Term below(FloatFormat f, const Term& a, const Term& b) {
  const Term both_negative = bit(a & b, f.width() - 1);
  return if_then_else(both_negative, less_unsigned(b, a), less_signed(a, b));
}

Term magnitude_picked(FloatFormat f, const Term& a, const Term& b, bool smaller) {
  const Term a_first = at_most_unsigned(magnitude_of(f, a), magnitude_of(f, b));
  return smaller ? if_then_else(a_first, a, b) : if_then_else(a_first, b, a);
}

/// vfixupimmps: the class of b picks one of 8 digits of the table, which says what becomes of it
/// (Intel SDM, VFIXUPIMMPS). Digits that castor does not use are a broken precondition.
Term fixed_up(LaneStep& step, FloatFormat f) {
  const Term &a = step.a, &b = step.b;
  const auto constant = [&](Bits bits) { return like(a, bits); };
  const Bits one = static_cast<Bits>(f.bias()) << f.fraction_bits();
  const Term negative = bit(b, f.width() - 1);
  Term token = if_then_else(negative, constant(6), constant(7));
  token = if_then_else(equal(b, one), constant(3), token);
  token = if_then_else(is_infinite(f, b), if_then_else(negative, constant(4), constant(5)), token);
  token = if_then_else(is_zero(f, b), constant(2), token);
  token = if_then_else(is_nan(f, b), if_then_else(is_signalling(f, b), constant(1), constant(0)),
                       token);
  const Term digit = shift_right(step.c, token * 4) & 0xf;
  const Term responses[] = {a,
                            b,
                            quieted(f, b),
                            constant(f.sign() | f.nan()),
                            constant(f.sign() | f.infinity()),
                            constant(f.infinity()),
                            (b & f.sign()) | f.infinity(),
                            constant(f.sign()),
                            constant(0),
                            constant(f.sign() | one),
                            constant(one)};
  Term result = a;
  for (size_t i = 0; i < std::size(responses); ++i) {
    result = if_then_else(equal(digit, i), responses[i], result);
  }
  step.require(less_unsigned(digit, std::size(responses)));
  return result;
}

/// A quotient that rounding to an integer, or encoding, reads. Small ones may be any number as
/// small: this is the one that a division gives.
Term quotient(const LaneStep& step, FloatFormat f) {
  if (jit::QuotientFacts::of(step.inst.imm).is_encoded) {
    return x86::div(f, nearest, step.a, step.b);
  }
  const Term bare = float_div(f, nearest, step.a, step.b);
  return if_then_else(is_nan(f, bare), like(bare, 0), bare);
}

Term remainder(LaneStep& step, FloatFormat f) { return float_remainder(f, step.a, step.b); }

}  // namespace

Term float_meaning(LaneStep& step) {
  const Term &a = step.a, &b = step.b;
  const bool is_compare = step.inst.op == LaneOp::float_compare;
  const FloatFormat f = lane_format(is_compare ? a.width() : step.width());
  switch (step.inst.op) {
    case LaneOp::float_add: return x86::add(f, nearest, a, b);
    case LaneOp::float_sub: return x86::sub(f, nearest, a, b);
    case LaneOp::float_mul: return x86::mul(f, nearest, a, b);
    case LaneOp::float_div: return x86::div(f, nearest, a, b);
    case LaneOp::float_quotient: return quotient(step, f);
    case LaneOp::float_sqrt: return x86::sqrt(f, nearest, a);
    case LaneOp::float_sub_product: return x86::fma(f, nearest, a ^ f.sign(), b, step.c);
    case LaneOp::float_min: return x86::min(f, a, b);
    case LaneOp::float_max: return x86::max(f, a, b);
    case LaneOp::range_min: return ranged(f, a, b, if_then_else(below(f, b, a), b, a), false);
    case LaneOp::range_max: return ranged(f, a, b, if_then_else(below(f, b, a), a, b), false);
    case LaneOp::range_magnitude: return ranged(f, a, b, magnitude_picked(f, a, b, true), true);
    case LaneOp::range_magnitude_from:
      return ranged(f, a, b, magnitude_picked(f, a, b, false), true);
    case LaneOp::float_remainder_each: return remainder(step, f);
    case LaneOp::fix_up: return fixed_up(step, f);
    case LaneOp::round: return x86::round(f, rounding_of(step), a);
    case LaneOp::float_compare:
      return compared(static_cast<FloatPredicate>(step.inst.imm), f, a, b);
    default: return {};
  }
}

Term conversion_meaning(LaneStep& step) {
  const Term& a = step.a;
  const FloatFormat from = lane_format(a.width());
  const FloatFormat to = lane_format(step.width());
  const Rounding rounding = rounding_of(step);
  switch (step.inst.op) {
    case LaneOp::f16_to_f32:
    case LaneOp::f32_to_f64:
    case LaneOp::f16_to_f64:
    case LaneOp::f64_to_f16: return x86::convert(from, to, nearest, a);
    case LaneOp::f32_to_f16:
    case LaneOp::f64_to_f32: return x86::convert(from, to, rounding, a);
    case LaneOp::signed_to_float: return signed_to_float(to, rounding, a);
    case LaneOp::unsigned_to_float: return unsigned_to_float(to, rounding, a);
    case LaneOp::float_to_signed: return float_to_signed(from, rounding, step.width(), a);
    case LaneOp::float_to_unsigned: return float_to_unsigned(from, rounding, step.width(), a);
    default: return {};
  }
}

}  // namespace castor::prove
