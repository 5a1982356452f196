// SPDX-License-Identifier: Apache-2.0
// Division of integers. Quotients of up to 16 bits are computed in f32, of 32 bits in f64: no
// quotient of N-bit integers is nearer to an integer above it than one part in 2^N, so that
// rounding never reaches one, and cutting off what follows the point gives the exact quotient.
// 64-bit lanes are divided one by one.
#include "jit/lower/elementwise_families.hpp"

namespace castor::jit {

namespace {

/// Where a float divides: the integers in lanes of 32 bits.
Operands narrow_operands(const Elementwise& op) {
  return {op.operand(0).as_integer(32), op.operand(1).as_integer(32)};
}

/// Rounded down or toward zero; where b is 0 not a quotient, but for types of up to 16 bits the low
/// bits are 0.
LaneId narrow_quotient(const Elementwise& op, const Operands& n, LaneRounding rounding) {
  LaneBuilder& builder = op.builder;
  const bool single = bits_of(op.type) <= 16;
  const LaneType lane = single ? LaneType::f32 : LaneType::f64;
  const bool is_signed = single || op.is_signed();
  const LaneId dividend = builder.integer_to_float(n.a, is_signed, lane);
  const LaneId divisor = builder.integer_to_float(n.b, is_signed, lane);
  const LaneId quotient = builder.float_div(dividend, divisor);
  if (is_signed) return builder.float_to_signed(quotient, 32, rounding);
  if (builder.has_wide_conversions()) {
    return builder.float_to_unsigned(quotient, 32, LaneRounding::toward_zero);
  }
  const LaneId integral = builder.round(quotient, LaneRounding::toward_zero);
  return builder.truncate(builder.small_f64_to_i64(integral), 32);
}

LaneTensor divide_narrow(const Elementwise& op, LaneRounding rounding) {
  const Operands n = narrow_operands(op);
  const LaneId quotient = narrow_quotient(op, n, rounding);
  if (bits_of(op.type) <= 16) return op.low_bits(quotient);
  return op.low_bits(op.builder.zero_unless(op.builder.is_set(n.b), quotient));
}

/// a - b * quotient; 0 where b is 0.
LaneTensor remainder_narrow(const Elementwise& op, LaneRounding rounding) {
  LaneBuilder& builder = op.builder;
  const Operands n = narrow_operands(op);
  const LaneId multiple = builder.mul(narrow_quotient(op, n, rounding), n.b);
  return op.exact(builder.zero_unless(builder.is_set(n.b), builder.sub(n.a, multiple)));
}

/// 64-bit operands, and what dividing their magnitudes takes.
struct WideOperands {
  LaneId a;
  LaneId b;
  LaneId dividend;
  LaneId divisor;  ///< 1 where b is 0
  LaneId has_divisor;
};

WideOperands wide_operands(const Elementwise& op) {
  LaneBuilder& builder = op.builder;
  WideOperands w{};
  w.a = op.integer(0);
  w.b = op.integer(1);
  w.has_divisor = builder.is_set(w.b);
  w.dividend = op.is_signed() ? builder.absolute(w.a) : w.a;
  const LaneId magnitude = op.is_signed() ? builder.absolute(w.b) : w.b;
  w.divisor = builder.select(w.has_divisor, magnitude, builder.constant(LaneType::i64, 1));
  return w;
}

LaneId is_negative(const Elementwise& op, LaneId lanes) {
  return op.builder.greater_signed(op.builder.constant(LaneType::i64, 0), lanes);
}

LaneId differ_in_sign(const Elementwise& op, const WideOperands& w) {
  return is_negative(op, op.builder.bit_xor(w.a, w.b));
}

/// Toward zero.
LaneId wide_quotient(const Elementwise& op, const WideOperands& w) {
  const LaneId quotient = op.builder.divide_each(w.dividend, w.divisor);
  if (!op.is_signed()) return quotient;
  return op.builder.negate_where(differ_in_sign(op, w), quotient);
}

/// The remainder, which has a's sign.
LaneId wide_remainder(const Elementwise& op, const WideOperands& w) {
  const LaneId remainder = op.builder.remainder_each(w.dividend, w.divisor);
  return op.is_signed() ? op.builder.negate_where(is_negative(op, w.a), remainder) : remainder;
}

LaneTensor zero_without_divisor(const Elementwise& op, const WideOperands& w, LaneId lanes) {
  return op.low_bits(op.builder.zero_unless(w.has_divisor, lanes));
}

bool is_wide(const Elementwise& op) { return bits_of(op.type) == 64; }

}  // namespace

LaneTensor div_integers(const Elementwise& op) {
  if (!is_wide(op)) return divide_narrow(op, LaneRounding::toward_zero);
  const WideOperands w = wide_operands(op);
  return zero_without_divisor(op, w, wide_quotient(op, w));
}

LaneTensor mod_integers(const Elementwise& op) {
  if (!is_wide(op)) return remainder_narrow(op, LaneRounding::toward_zero);
  const WideOperands w = wide_operands(op);
  return zero_without_divisor(op, w, wide_remainder(op, w));
}

LaneTensor floor_div_integers(const Elementwise& op) {
  if (!op.is_signed()) return div_integers(op);
  if (!is_wide(op)) return divide_narrow(op, LaneRounding::down);
  LaneBuilder& builder = op.builder;
  const WideOperands w = wide_operands(op);
  const LaneId quotient = wide_quotient(op, w);
  const LaneId remainder = builder.sub(w.a, builder.mul(quotient, w.b));
  const LaneId goes_down = builder.mask_and(builder.is_set(remainder), differ_in_sign(op, w));
  const LaneId below = builder.sub(quotient, builder.constant(LaneType::i64, 1));
  return zero_without_divisor(op, w, builder.select(goes_down, below, quotient));
}

LaneTensor floor_mod_integers(const Elementwise& op) {
  if (!op.is_signed()) return mod_integers(op);
  if (!is_wide(op)) return remainder_narrow(op, LaneRounding::down);
  LaneBuilder& builder = op.builder;
  const WideOperands w = wide_operands(op);
  const LaneId remainder = wide_remainder(op, w);
  const LaneId has_other_sign = builder.mask_and(builder.is_set(remainder), differ_in_sign(op, w));
  return zero_without_divisor(
      op, w, builder.select(has_other_sign, builder.add(remainder, w.b), remainder));
}

}  // namespace castor::jit
