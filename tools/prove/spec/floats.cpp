// SPDX-License-Identifier: Apache-2.0
// Floats: computed in f32, of f64 in f64, and rounded once to the type after every operation.
#include <bit>

#include "tools/prove/spec/convert.hpp"
#include "tools/prove/spec/elementwise.hpp"
#include "tools/prove/spec/number.hpp"
#include "tools/prove/term/float_terms.hpp"

namespace castor::prove {
namespace {

constexpr Rounding nearest = Rounding::nearest_even;

/// A type and the format in which its operations compute.
struct Floats {
  ElementType type;

  bool is_f64() const { return type == ElementType::f64; }
  ElementType computing() const { return is_f64() ? ElementType::f64 : ElementType::f32; }
  FloatFormat format() const { return is_f64() ? f64_format : f32_format; }

  Term widened(const Term& bits) const {
    return type == computing() ? bits : specified_conversion(bits, type, computing(), {});
  }
  Term rounded(const Term& number) const {
    return type == computing() ? number : specified_conversion(number, computing(), type, {});
  }
  /// Rounded to the type, to be computed with further.
  Term step(const Term& number) const { return widened(rounded(number)); }

  Term number(const Term& any, double value) const {
    const uint64_t bits = is_f64() ? std::bit_cast<uint64_t>(value)
                                   : std::bit_cast<uint32_t>(static_cast<float>(value));
    return any.terms().constant(format().width(), bits);
  }
  Term is_negative(const Term& x) const { return bit(x, format().width() - 1); }
};

/// The first NaN, made quiet, or else `number`.
Term with_nans(const Floats& in, const Term& a, const Term& b, const Term& number) {
  const FloatFormat f = in.format();
  const Term second = if_then_else(is_nan(f, b), quieted(f, b), number);
  return if_then_else(is_nan(f, a), quieted(f, a), second);
}

/// Numbers in order, -0 below +0.
Term comes_before(const Floats& in, const Term& a, const Term& b) {
  const Term both_negative = in.is_negative(a) & in.is_negative(b);
  return if_then_else(both_negative, less_unsigned(b, a), less_signed(a, b));
}

Term minimum(const Floats& in, const Term& a, const Term& b) {
  return with_nans(in, a, b, if_then_else(comes_before(in, b, a), b, a));
}

Term maximum(const Floats& in, const Term& a, const Term& b) {
  return with_nans(in, a, b, if_then_else(comes_before(in, a, b), b, a));
}

Term remainder(const Floats& in, const Term& a, const Term& b) {
  const FloatFormat f = in.format();
  const Term bare = float_remainder(f, a, b);
  const Term invalid = like(a, f.sign() | f.nan());
  const Term number = if_then_else(is_infinite(f, a) | is_zero(f, b), invalid,
                                   if_then_else(is_infinite(f, b), a, bare));
  return with_nans(in, a, b, number);
}

/// r = mod; r + y, rounded, where r is not zero and the signs differ; a zero takes y's sign.
Term floor_remainder(const Floats& in, const Term& a, const Term& b) {
  const FloatFormat f = in.format();
  const Term r = in.step(remainder(in, a, b));
  const Term differ = in.is_negative(r) ^ in.is_negative(b);
  const Term moved = in.rounded(x86::add(f, nearest, r, b));
  const Term zero = in.rounded(b & f.sign());
  Term result = if_then_else(differ, moved, in.rounded(r));
  result = if_then_else(is_zero(f, r), zero, result);
  return if_then_else(is_nan(f, r), in.rounded(r), result);
}

Term sign_of(const Floats& in, const Term& x) {
  const FloatFormat f = in.format();
  const Term one = in.number(x, 1.0) | (x & f.sign());
  const Term number = if_then_else(is_zero(f, x), like(x, 0), one);
  return if_then_else(is_nan(f, x), quieted(f, x), number);
}

/// Only the sign bit changes, of NaNs too; fnuz formats have no second zero and no second NaN.
Term with_sign(ElementType type, const Term& bits, const Term& changed) {
  if (info(type).format.specials != FloatSpecials::fnuz) return changed;
  const Term is_signless = equal(truncate(bits, bits.width() - 1), 0);
  return if_then_else(is_signless, bits, changed);
}

Term clamped(const Floats& in, const ElementwiseOp& op, const Term& x) {
  const FloatFormat f = in.format();
  Term result = if_then_else(is_nan(f, x), quieted(f, x), x);
  if (op.lo) result = maximum(in, result, in.step(in.number(x, *op.lo)));
  if (op.hi) result = minimum(in, result, in.step(in.number(x, *op.hi)));
  return result;
}

Term prelu(const Floats& in, const Term& x, const Term& slope) {
  const FloatFormat f = in.format();
  const Term is_below = float_less(f, x, like(x, 0));
  const Term same = if_then_else(is_nan(f, x), quieted(f, x), x);
  return if_then_else(is_below, x86::mul(f, nearest, x, slope), same);
}

Term of_one_operand(const Floats& in, const ElementwiseOp& op, const Term& bits) {
  const FloatFormat f = in.format();
  const Term x = in.widened(bits);
  const Bits sign = sign_bit(bits.width());
  switch (op.op) {
    case OpKind::abs: return with_sign(op.type, bits, bits & ~sign);
    case OpKind::neg: return with_sign(op.type, bits, bits ^ sign);
    case OpKind::sign: return in.rounded(sign_of(in, x));
    case OpKind::relu: return in.rounded(maximum(in, x, like(x, 0)));
    case OpKind::clamp: return in.rounded(clamped(in, op, x));
    case OpKind::sqrt: return in.rounded(x86::sqrt(f, nearest, x));
    case OpKind::floor: return in.rounded(x86::round(f, Rounding::down, x));
    case OpKind::ceil: return in.rounded(x86::round(f, Rounding::up, x));
    case OpKind::trunc: return in.rounded(x86::round(f, Rounding::toward_zero, x));
    case OpKind::round_even: return in.rounded(x86::round(f, nearest, x));
    case OpKind::is_nan: return extend_zero(decoded(op.type, bits).is_nan, 8);
    default: return {};
  }
}

}  // namespace

Term float_result(const ElementwiseOp& op, std::span<const Term> v) {
  const Floats in{op.type};
  if (v.size() == 1) return of_one_operand(in, op, v[0]);
  const FloatFormat f = in.format();
  const Term a = in.widened(v[0]);
  const Term b = in.widened(v[1]);
  switch (op.op) {
    case OpKind::add: return in.rounded(x86::add(f, nearest, a, b));
    case OpKind::sub: return in.rounded(x86::sub(f, nearest, a, b));
    case OpKind::mul: return in.rounded(x86::mul(f, nearest, a, b));
    case OpKind::div: return in.rounded(x86::div(f, nearest, a, b));
    case OpKind::floor_div:
      return in.rounded(x86::round(f, Rounding::down, in.step(x86::div(f, nearest, a, b))));
    case OpKind::mod: return in.rounded(remainder(in, a, b));
    case OpKind::floor_mod: return floor_remainder(in, a, b);
    case OpKind::min: return in.rounded(minimum(in, a, b));
    case OpKind::max: return in.rounded(maximum(in, a, b));
    case OpKind::squared_difference: {
      const Term d = in.step(x86::sub(f, nearest, a, b));
      return in.rounded(x86::mul(f, nearest, d, d));
    }
    case OpKind::prelu: return in.rounded(prelu(in, a, b));
    default: return {};
  }
}

}  // namespace castor::prove
