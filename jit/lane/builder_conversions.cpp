// SPDX-License-Identifier: Apache-2.0
// Intents that convert to, from and between floats.
#include "jit/lane/builder.hpp"

#include <limits>

namespace castor::jit {

namespace {

/// 2^52 and 2^84 as f64 bits: or-ing a 32-bit integer into the low mantissa bits adds it to 2^52,
/// or adds it times 2^32 to 2^84, exactly.
constexpr uint64_t bits_of_2_52 = 0x4330000000000000;
constexpr uint64_t bits_of_2_84 = 0x4530000000000000;

}  // namespace

LaneId LaneBuilder::f64_to_f32_odd(LaneId a) {
  // Ten significant bits convert exactly down to 2^-140, where bf16 has long rounded to zero.
  return f64_to_f32_marked(a, 43);
}

LaneId LaneBuilder::f64_to_f32_odd_in_range(LaneId a) { return f64_to_f32_marked(a, 29); }

LaneId LaneBuilder::f64_to_f32_marked(LaneId a, int dropped_bits) {
  if (!has_wide_conversions()) return f64_to_f32(fold_low_bits(a, dropped_bits));
  const auto toward_zero = static_cast<int64_t>(LaneRounding::toward_zero);
  const LaneId cut = unary(LaneOp::f64_to_f32, LaneType::f32, a, toward_zero);
  const LaneId dropped = constant(LaneType::i64, (uint64_t{1} << dropped_bits) - 1);
  const LaneId is_inexact = mask_resize(any_bits(a, dropped), 32);
  return select(is_inexact, bit_or(cut, constant(LaneType::i32, 1)), cut);
}

LaneId LaneBuilder::f64_to_f32_up(LaneId a) {
  if (target_.has_avx512()) {
    return unary(LaneOp::f64_to_f32, LaneType::f32, a, static_cast<int64_t>(LaneRounding::up));
  }
  // Cutting off the bits that f32 lacks rounds negative numbers up. Positive ones are raised
  // before, by so little that only those with such a bit reach the next number of f32.
  constexpr uint64_t dropped = (uint64_t{1} << 29) - 1;
  const auto number = [&](uint64_t bits) { return constant(LaneType::i64, bits); };
  const double infinity = std::numeric_limits<double>::infinity();
  const LaneId bits = float_max(a, float_constant(LaneType::f64, -infinity));  // NaN: the second
  const LaneId is_positive = greater_signed(bits, number(~uint64_t{0}));
  const LaneId raised = add(bits, zero_unless(is_positive, number(dropped)));
  return f64_to_f32(bit_and(raised, number(~dropped)));
}

LaneId LaneBuilder::i64_to_f64(LaneId a, bool is_signed) {
  return halves_to_f64(shift_right(a, 32), a, is_signed);
}

LaneId LaneBuilder::halves_to_f64(LaneId upper, LaneId lower, bool is_signed) {
  // (2^84 + high * 2^32) - (2^84 + 2^52) + (2^52 + low): the subtraction is exact, the addition
  // rounds once. Signed numbers are biased by 2^63 first, which the constant takes back.
  const LaneId low = combine_halves(constant(LaneType::i64, bits_of_2_52), lower);
  const uint64_t high_bits = is_signed ? bits_of_2_84 | 0x80000000 : bits_of_2_84;
  const LaneId high = bit_xor(upper, constant(LaneType::i64, high_bits));
  const double bias = 0x1p84 + 0x1p52 + (is_signed ? 0x1p63 : 0);
  return float_add(float_sub(high, float_constant(LaneType::f64, bias)), low);
}

LaneId LaneBuilder::fold_low_bits(LaneId a, int count) {
  return fold_masked_bits(a,
                          constant(integer_lane(bits_of(type_of(a))), (uint64_t{1} << count) - 1));
}

LaneId LaneBuilder::fold_masked_bits(LaneId a, LaneId low_mask) {
  // The sum carries into the bit above the mask exactly where one of the low bits is set.
  const LaneId carry = add(bit_and(a, low_mask), low_mask);
  return binary(LaneOp::bit_andnot, low_mask, bit_or(a, carry));
}

LaneId LaneBuilder::fold_to_high_half(LaneId a) {
  // The sum carries into bit 16 exactly where one of the low bits is set. Where the carry leaves
  // that bit 0, it was 1.
  const LaneId sum = add(a, constant(LaneType::i32, 0xffff));
  return bit_or(a, bit_and(sum, constant(LaneType::i32, 0x10000)));
}

LaneId LaneBuilder::i64_to_f64_odd(LaneId a, bool is_signed) {
  // The low 11 bits, where the number is so big that f32 sees of them only whether any is set.
  // The 53 bits above convert exactly.
  const auto number = [&](uint64_t bits) { return constant(LaneType::i64, bits); };
  if (!is_signed) {
    // From (2^20 + 1) * 2^32 up the difference is negative: its top 11 bits are ones.
    const LaneId upper = shift_right(a, 32);
    const LaneId low_bits = bit_and(a, shift_right(sub(number(1 << 20), upper), 53));
    return bit_or(halves_to_f64(upper, bit_xor(a, low_bits), false), low_bits);
  }
  // Two's complement is rounded to odd before it is converted, so that the sign does not matter.
  // The sum is i64's smallest number more than a number below 2^53 for -2^52 <= a < 2^52.
  constexpr uint64_t min = uint64_t{1} << 63;
  constexpr uint64_t range = uint64_t{1} << 53;
  const LaneId is_big = greater_signed(add(a, number(min + range / 2)), number(min + range - 1));
  return i64_to_f64(fold_masked_bits(a, bit_and(number(0x7ff), is_big)), true);
}

LaneId LaneBuilder::integer_to_float(LaneId a, bool is_signed, LaneType to) {
  const LaneOp op = is_signed ? LaneOp::signed_to_float : LaneOp::unsigned_to_float;
  const int from_bits = bits_of(type_of(a));
  const bool by_instruction = target_.has_avx512() || (is_signed && from_bits == 32);
  if (by_instruction) return unary(op, to, a);
  if (from_bits == 64) {
    if (to == LaneType::f64) return i64_to_f64(a, is_signed);
    return f64_to_f32(i64_to_f64_odd(a, is_signed));
  }
  if (to == LaneType::f64) {
    const LaneId magic = constant(LaneType::i64, bits_of_2_52);
    return float_sub(bit_or(extend_zero(a, 64), magic), magic);
  }
  return u32_to_f32(shift_right(a, 16), bit_and(a, constant(LaneType::i32, 0xffff)));
}

LaneId LaneBuilder::u32_to_f32(LaneId high, LaneId low) {
  // Both halves and the product are exact, the sum rounds once.
  const auto as_float = [&](LaneId half) {
    return unary(LaneOp::signed_to_float, LaneType::f32, half);
  };
  return float_sub_product(as_float(low), as_float(high), float_constant(LaneType::f32, -65536.0));
}

LaneId LaneBuilder::u32_to_f32_odd(LaneId a) {
  // The low 8 bits, where the number is so big that eight significant bits see of them only whether
  // any is set: from 33 * 2^16 up the difference is negative. The 24 bits above convert exactly.
  const auto number = [&](uint64_t bits) { return constant(LaneType::i32, bits); };
  const LaneId high = shift_right(a, 16);
  const LaneId low_mask = shift_right(sub(number(32), high), 24);
  const LaneId low_bits = bit_and(a, low_mask);
  const LaneId low = bit_and(bit_xor(a, low_bits), number(0xffff));
  return bit_or(u32_to_f32(high, low), low_bits);
}

LaneId LaneBuilder::integer_to_float_odd(LaneId a, bool is_signed, LaneType to) {
  const LaneOp op = is_signed ? LaneOp::signed_to_float : LaneOp::unsigned_to_float;
  const auto rounded = [&](LaneRounding rounding) {
    return unary(op, to, a, static_cast<int64_t>(rounding));
  };
  const LaneId down = rounded(LaneRounding::down);
  const LaneId up = rounded(LaneRounding::up);
  return select(any_bits(down, constant(integer_lane(bits_of(to)), 1)), down, up);
}

LaneId LaneBuilder::integer_to_f32_odd(LaneId a, bool is_signed) {
  if (target_.has_avx512()) return integer_to_float_odd(a, is_signed, LaneType::f32);
  if (bits_of(type_of(a)) == 64) {
    // No integer is near f32's subnormals, so the bits below f32's 24 can be folded into the last.
    return f64_to_f32(fold_low_bits(i64_to_f64_odd(a, is_signed), 29));
  }
  if (!is_signed) return u32_to_f32_odd(a);
  // From 2^17 up, the low 8 bits are folded into bit 8: 24 bits are left and convert exactly.
  const LaneId folded = fold_low_bits(a, 8);
  LaneId magnitude_bits = a;
  if (is_signed) magnitude_bits = bit_xor(a, shift(LaneOp::shift_right_signed, a, 31));
  const LaneId is_small = equal(shift_right(magnitude_bits, 17), constant(LaneType::i32, 0));
  return integer_to_float(select(is_small, a, folded), is_signed, LaneType::f32);
}

LaneId LaneBuilder::i64_to_bf16_in_f32(LaneId a, bool is_signed) {
  constexpr int dropped_bits = 52 - 7;
  const LaneId rounded = round_half_even(i64_to_f64_odd(a, is_signed), dropped_bits);
  return f64_to_f32(bit_and(rounded, constant(LaneType::i64, ~uint64_t{0} << dropped_bits)));
}

LaneId LaneBuilder::float_to_signed(LaneId a, int bits, LaneRounding rounding) {
  const bool by_instruction = target_.has_avx512() || rounding == LaneRounding::nearest_even ||
                              rounding == LaneRounding::toward_zero;
  if (!by_instruction) {
    a = round(a, rounding);
    rounding = LaneRounding::toward_zero;
  }
  return unary(LaneOp::float_to_signed, integer_lane(bits), a, static_cast<int64_t>(rounding));
}

LaneId LaneBuilder::float_to_unsigned(LaneId a, int bits, LaneRounding rounding) {
  return unary(LaneOp::float_to_unsigned, integer_lane(bits), a, static_cast<int64_t>(rounding));
}

LaneId LaneBuilder::float_bits_to_u64(LaneId bits, ElementType format) {
  // The significand with its hidden bit at the top, which counts 2^(exponent - bias), is moved
  // down.
  const auto number = [&](uint64_t value) { return constant(LaneType::i64, value); };
  const int mantissa_bits = info(format).format.mantissa_bits;
  const auto bias = static_cast<uint64_t>(info(format).format.bias);
  const LaneId significand =
      bit_or(shift_left(bits, 63 - mantissa_bits), number(uint64_t{1} << 63));
  return shift_right_by(significand, sub(number(bias + 63), shift_right(bits, mantissa_bits)));
}

LaneId LaneBuilder::small_f64_to_i64(LaneId a) {
  return float_add(a, float_constant(LaneType::f64, 0x1p52));
}

}  // namespace castor::jit
