// SPDX-License-Identifier: Apache-2.0
// Intents of arithmetic and comparisons that not every target has an instruction for.
#include "jit/lane/builder.hpp"

namespace castor::jit {

LaneId LaneBuilder::mul(LaneId a, LaneId b) {
  if (bits_of(type_of(a)) < 64 || target_.has_avx512()) return binary(LaneOp::mul, a, b);
  // The upper halves' product is beyond 2^64; the mixed ones count from 2^32 on.
  const auto product = [&](LaneId x, LaneId y) { return binary(LaneOp::mul_low_u32, x, y); };
  const LaneId upper_a = product(shift_right(a, 32), b);
  const LaneId upper_b = product(a, shift_right(b, 32));
  const LaneId upper = shift_left(add(upper_a, upper_b), 32);
  return add(product(a, b), upper);
}

LaneId LaneBuilder::absolute(LaneId a) {
  const LaneType type = integer_lane(bits_of(type_of(a)));
  if (bits_of(type) < 64 || target_.has_avx512()) return unary(LaneOp::absolute, type, a);
  return negate_where(greater_signed(zero_like(a), a), a);
}

LaneId LaneBuilder::add_dot_i16_pairs(LaneId c, LaneId a, LaneId b) {
  if (!target_.supports(Feature::avx512_vnni) && !target_.supports(Feature::avx_vnni)) {
    return add(c, dot_i16_pairs(a, b));
  }
  return append({.op = LaneOp::add_dot_i16_pairs, .type = LaneType::i32, .a = a, .b = b, .c = c});
}

LaneId LaneBuilder::leading_zeros(LaneId a) {
  if (target_.has_avx512()) return unary(LaneOp::leading_zeros, LaneType::i32, a);
  // The exponent of a float tells. Without the bit below its highest one, the number does not round
  // up to the next power of two; from 2^31 on it counts as negative, whose sign is above the
  // exponent.
  constexpr uint64_t exponent_of_2_31 = 127 + 31;
  const auto number = [&](uint64_t bits) { return constant(LaneType::i32, bits); };
  const LaneId rounds_down = bit_and(a, bit_not(shift_right(a, 1)));
  const LaneId as_float = integer_to_float(rounds_down, true, LaneType::f32);
  const LaneId zeros = sub(number(exponent_of_2_31), shift_right(as_float, 23));
  return min_signed(max_signed(zeros, number(0)), number(32));
}

LaneId LaneBuilder::bit_not(LaneId a) {
  return bit_xor(a, constant(integer_lane(bits_of(type_of(a))), ~uint64_t{0}));
}

LaneId LaneBuilder::negate_where(LaneId mask, LaneId a) {
  if (target_.has_avx512()) return select(mask, sub(zero_like(a), a), a);
  return sub(bit_xor(a, mask), mask);
}

LaneId LaneBuilder::shift_right_signed_by(LaneId a, LaneId b) {
  if (bits_of(type_of(a)) < 64 || target_.has_avx512()) {
    return binary(LaneOp::shift_right_signed_by, a, b);
  }
  const LaneId sign = greater_signed(zero_like(a), a);
  return bit_xor(shift_right_by(bit_xor(a, sign), b), sign);
}

// ---- Comparisons.

LaneId LaneBuilder::compare(IntegerPredicate predicate, bool is_signed, LaneId a, LaneId b) {
  if (predicate == IntegerPredicate::equal) return equal(a, b);
  if (is_signed && predicate == IntegerPredicate::greater) return greater_signed(a, b);
  if (is_signed && predicate == IntegerPredicate::less) return greater_signed(b, a);
  if (target_.has_avx512()) {
    return append({.op = is_signed ? LaneOp::compare_signed : LaneOp::compare_unsigned,
                   .type = mask_lane(bits_of(type_of(a))),
                   .a = a,
                   .b = b,
                   .imm = static_cast<int64_t>(predicate)});
  }
  return is_signed ? compare_signed(predicate, a, b) : compare_unsigned(predicate, a, b);
}

LaneId LaneBuilder::compare_signed(IntegerPredicate predicate, LaneId a, LaneId b) {
  switch (predicate) {
    case IntegerPredicate::equal: return equal(a, b);
    case IntegerPredicate::not_equal: return mask_not(equal(a, b));
    case IntegerPredicate::less: return greater_signed(b, a);
    case IntegerPredicate::less_equal: return mask_not(greater_signed(a, b));
    case IntegerPredicate::greater: return greater_signed(a, b);
    case IntegerPredicate::greater_equal: return mask_not(greater_signed(b, a));
  }
  return no_lane;
}

LaneId LaneBuilder::compare_unsigned(IntegerPredicate predicate, LaneId a, LaneId b) {
  if (bits_of(type_of(a)) < 64) {
    if (predicate == IntegerPredicate::less_equal) return equal(min_unsigned(a, b), a);
    if (predicate == IntegerPredicate::greater_equal) return equal(max_unsigned(a, b), a);
  }
  const LaneId flipped_a = flip_sign_bit(a);
  return compare_signed(predicate, flipped_a, flip_sign_bit(b));
}

LaneId LaneBuilder::is_set(LaneId a) {
  return target_.has_avx512() ? any_bits(a, a) : mask_not(equal(a, zero_like(a)));
}

LaneId LaneBuilder::any_bits(LaneId a, LaneId b) {
  return target_.has_avx512() ? compare(LaneOp::any_bits, a, b) : is_set(bit_and(a, b));
}

// ---- Floats.

// x86's minimum and maximum take the second operand where both are zero: both orders, and the sign
// of either or of both.

LaneId LaneBuilder::min_of_numbers(LaneId a, LaneId b) {
  if (has_float_classes(a)) return binary(LaneOp::range_min, a, b);
  const LaneId second_of_zeros = float_min(a, b);
  return bit_or(second_of_zeros, float_min(b, a));
}

LaneId LaneBuilder::max_of_numbers(LaneId a, LaneId b) {
  if (has_float_classes(a)) return binary(LaneOp::range_max, a, b);
  const LaneId second_of_zeros = float_max(a, b);
  return bit_and(second_of_zeros, float_max(b, a));
}

LaneId LaneBuilder::clamp_magnitude(LaneId a, double limit) {
  const LaneId max = float_constant(type_of_float(a), limit);
  if (has_float_classes(a)) return binary(LaneOp::range_magnitude, a, max);
  return float_min(max, float_max(float_constant(type_of_float(a), -limit), a));
}

LaneId LaneBuilder::minimum(LaneId a, LaneId b) {
  const LaneId is_nan = compare(FloatPredicate::unordered, a, b);
  const LaneId first_nan = float_add(a, b);
  return select(is_nan, first_nan, min_of_numbers(a, b));
}

LaneId LaneBuilder::maximum(LaneId a, LaneId b) {
  const LaneId is_nan = compare(FloatPredicate::unordered, a, b);
  const LaneId first_nan = float_add(a, b);
  return select(is_nan, first_nan, max_of_numbers(a, b));
}

LaneId LaneBuilder::float_remainder_where(LaneId mask, LaneId a, LaneId b, LaneId otherwise) {
  // Other lanes get operands that take one step.
  const LaneId dividend = zero_unless(mask, a);
  const LaneId divisor = select(mask, b, float_constant(type_of_float(b), 1.0));
  return append({.op = LaneOp::float_remainder_each,
                 .type = type_of_float(a),
                 .a = dividend,
                 .b = divisor,
                 .c = otherwise,
                 .mask = mask});
}

LaneId LaneBuilder::unconverted_integer(LaneId a) {
  const LaneInst& floats = program_.code[static_cast<size_t>(a)];
  if (floats.op != LaneOp::signed_to_float || floats.type != LaneType::f32) return a;
  const LaneInst& integers = program_.code[static_cast<size_t>(floats.a)];
  const bool is_rounded = integers.op == LaneOp::float_to_signed && bits_of(integers.type) == 32 &&
                          integers.imm == static_cast<int64_t>(LaneRounding::nearest_even);
  if (!is_rounded || bits_of(type_of(integers.a)) != 32) return a;
  return round(integers.a, LaneRounding::nearest_even);
}

LaneId LaneBuilder::quiet(LaneId a) {
  const LaneOp op = program_.code[static_cast<size_t>(a)].op;
  const bool is_quiet = (op >= LaneOp::float_add && op <= LaneOp::float_sqrt) ||
                        (op >= LaneOp::round && op <= LaneOp::unsigned_to_float);
  return is_quiet ? a : float_add(a, float_constant(type_of_float(a), -0.0));
}

LaneId LaneBuilder::sign_of(LaneId a) {
  const LaneType type = type_of_float(a);
  const LaneType integer = integer_lane(bits_of(type));
  if (has_float_classes(a)) {
    // A digit for each class: NaNs quiet (2), zeros +0 (8), negative -1 (9), positive 1 (10).
    constexpr uint64_t responses = 0xa9a9a822;
    return append(
        {.op = LaneOp::fix_up, .type = type, .a = a, .b = a, .c = constant(integer, responses)});
  }
  const LaneId sign = constant(integer, uint64_t{1} << (bits_of(type) - 1));
  const LaneId one = bit_or(bit_and(a, sign), float_constant(type, 1.0));
  const LaneId zero = zero_like(a);
  const LaneId number = zero_unless(compare(FloatPredicate::not_equal, a, zero), one);
  const LaneId is_nan = compare(FloatPredicate::unordered, a, a);
  return select(is_nan, float_add(a, a), number);
}

LaneId LaneBuilder::at_least_zero(LaneId a) {
  const LaneType type = type_of_float(a);
  if (has_float_classes(a)) {
    // A digit for each class: NaNs quiet (2), zeros and negative ones +0 (8), others as they are.
    constexpr uint64_t responses = 0x18181822;
    const LaneId table = constant(integer_lane(bits_of(type)), responses);
    return append({.op = LaneOp::fix_up, .type = type, .a = a, .b = a, .c = table});
  }
  // x86's max takes its second operand where that is NaN or both are zero. a + 0 is never -0.
  const LaneId zero = float_constant(type, 0.0);
  return float_max(zero, float_add(a, zero));
}

}  // namespace castor::jit
