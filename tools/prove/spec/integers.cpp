// SPDX-License-Identifier: Apache-2.0
// Integers wrap in their own width; truth values; comparisons by decoded value.
#include <bit>
#include <cmath>

#include "tools/prove/spec/convert.hpp"
#include "tools/prove/spec/elementwise.hpp"
#include "tools/prove/term/float_terms.hpp"

namespace castor::prove {
namespace {

/// An integer type's arithmetic on terms of its width.
struct Integers {
  ElementType type;
  bool is_signed = is_signed_integer(type);

  Term is_negative(const Term& x) const {
    return is_signed ? bit(x, x.width() - 1) : x.terms().truth(false);
  }
  Term magnitude(const Term& x) const { return if_then_else(is_negative(x), -x, x); }
  Term less(const Term& a, const Term& b) const {
    return is_signed ? less_signed(a, b) : less_unsigned(a, b);
  }
  Term min(const Term& a, const Term& b) const { return if_then_else(less(a, b), a, b); }
  Term max(const Term& a, const Term& b) const { return if_then_else(less(a, b), b, a); }
};

Term zero_of(const Term& x) { return like(x, 0); }
Term is_zero_integer(const Term& x) { return equal(x, zero_of(x)); }

/// x / 0 = 0; MIN / -1 = MIN, as magnitudes give.
Term quotient(const Integers& in, const Term& a, const Term& b) {
  const Term size = udiv(in.magnitude(a), in.magnitude(b));
  const Term signed_size = if_then_else(in.is_negative(a) ^ in.is_negative(b), -size, size);
  return if_then_else(is_zero_integer(b), zero_of(a), signed_size);
}

/// The sign is the dividend's; x mod 0 = 0.
Term remainder(const Integers& in, const Term& a, const Term& b) {
  const Term size = urem(in.magnitude(a), in.magnitude(b));
  const Term signed_size = if_then_else(in.is_negative(a), -size, size);
  return if_then_else(is_zero_integer(b), zero_of(a), signed_size);
}

/// Whether the quotient is not whole and negative.
Term rounds_down(const Integers& in, const Term& a, const Term& b) {
  const Term r = remainder(in, a, b);
  return ~is_zero_integer(b) & ~is_zero_integer(r) & (in.is_negative(r) ^ in.is_negative(b));
}

Term floor_quotient(const Integers& in, const Term& a, const Term& b) {
  const Term q = quotient(in, a, b);
  return if_then_else(rounds_down(in, a, b), q - 1, q);
}

Term floor_remainder(const Integers& in, const Term& a, const Term& b) {
  const Term r = remainder(in, a, b);
  return if_then_else(rounds_down(in, a, b), r + b, r);
}

/// A bound of clamp: a whole number, saturated to the type.
Term bound(const Integers& in, const Term& any, double whole) {
  Terms& terms = any.terms();
  const Term f64 = terms.constant(64, std::bit_cast<uint64_t>(whole));
  return specified_conversion(f64, ElementType::f64, in.type, {});
}

Term clamped(const Integers& in, const ElementwiseOp& op, const Term& x) {
  Term result = x;
  if (op.lo) result = in.max(result, bound(in, x, std::ceil(*op.lo)));
  if (op.hi) result = in.min(result, bound(in, x, std::floor(*op.hi)));
  return result;
}

/// The element as a number in which comparisons compare: boolean as 0 or 1.
Term comparable(ElementType type, const Term& bits) {
  if (is_boolean(type)) return not_equal(bits, zero_of(bits));
  if (is_integer(type) || type == ElementType::f32 || type == ElementType::f64) return bits;
  return specified_conversion(bits, type, ElementType::f32, {});
}

struct Order {
  Term equal, less, greater;
};

Order ordered(ElementType type, const Term& a, const Term& b) {
  if (is_integer(type)) {
    const Integers in{type};
    return {equal(a, b), in.less(a, b), in.less(b, a)};
  }
  if (is_boolean(type)) return {equal(a, b), ~a & b, a & ~b};
  const FloatFormat f = type == ElementType::f64 ? f64_format : f32_format;
  return {float_equal(f, a, b), float_less(f, a, b), float_less(f, b, a)};
}

Term byte_of(const Term& truth) { return extend_zero(truth, 8); }

}  // namespace

Term integer_result(const ElementwiseOp& op, std::span<const Term> v) {
  const Integers in{op.type};
  const Term& a = v[0];
  const Term b = v.size() > 1 ? v[1] : Term();
  const Term zero = zero_of(a);
  switch (op.op) {
    case OpKind::add: return a + b;
    case OpKind::sub: return a - b;
    case OpKind::mul: return a * b;
    case OpKind::div: return quotient(in, a, b);
    case OpKind::floor_div: return floor_quotient(in, a, b);
    case OpKind::mod: return remainder(in, a, b);
    case OpKind::floor_mod: return floor_remainder(in, a, b);
    case OpKind::min: return in.min(a, b);
    case OpKind::max: return in.max(a, b);
    case OpKind::squared_difference: return (a - b) * (a - b);
    case OpKind::prelu: return if_then_else(in.is_negative(a), a * b, a);
    case OpKind::abs: return in.magnitude(a);
    case OpKind::neg: return -a;
    case OpKind::sign:
      return if_then_else(in.is_negative(a), like(a, ~Bits{0}),
                          if_then_else(is_zero_integer(a), zero, like(a, 1)));
    case OpKind::relu: return if_then_else(in.is_negative(a), zero, a);
    case OpKind::clamp: return clamped(in, op, a);
    case OpKind::floor:
    case OpKind::ceil:
    case OpKind::trunc:
    case OpKind::round_even: return a;
    case OpKind::bitwise_and: return a & b;
    case OpKind::bitwise_or: return a | b;
    case OpKind::bitwise_xor: return a ^ b;
    case OpKind::bitwise_not: return ~a;
    case OpKind::shift_left: return shift_left(a, b);
    case OpKind::shift_right: return in.is_signed ? shift_right_signed(a, b) : shift_right(a, b);
    default: return {};
  }
}

Term truth_result(const ElementwiseOp& op, std::span<const Term> v) {
  const auto truth = [&](size_t i) { return not_equal(v[i], zero_of(v[i])); };
  switch (op.op) {
    case OpKind::logical_and:
    case OpKind::bitwise_and: return byte_of(truth(0) & truth(1));
    case OpKind::logical_or:
    case OpKind::bitwise_or: return byte_of(truth(0) | truth(1));
    case OpKind::logical_xor:
    case OpKind::bitwise_xor: return byte_of(truth(0) ^ truth(1));
    case OpKind::logical_not:
    case OpKind::bitwise_not: return byte_of(~truth(0));
    default: return {};
  }
}

Term comparison_result(const ElementwiseOp& op, std::span<const Term> v) {
  const Order order = ordered(op.type, comparable(op.type, v[0]), comparable(op.type, v[1]));
  switch (op.op) {
    case OpKind::equal: return byte_of(order.equal);
    case OpKind::not_equal: return byte_of(~order.equal);
    case OpKind::less: return byte_of(order.less);
    case OpKind::less_equal: return byte_of(order.less | order.equal);
    case OpKind::greater: return byte_of(order.greater);
    case OpKind::greater_equal: return byte_of(order.greater | order.equal);
    default: return {};
  }
}

}  // namespace castor::prove
