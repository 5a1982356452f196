// SPDX-License-Identifier: Apache-2.0
// Floats to integers that AVX2 has no instruction for, composed of others.
#include "jit/lower/float_to_integer.hpp"

namespace castor::jit {

namespace {

/// The float rounded to an integral value.
LaneId integral(LaneBuilder& builder, Rounded rounded) {
  return builder.round(rounded.value, rounded.left_to_do);
}

/// The integer part of a float, given by its bits in 64-bit lanes, that is not negative; 0 from
/// 2^64 up and for NaN.
LaneId integer_part(LaneBuilder& builder, LaneType lane, LaneId bits) {
  return builder.float_bits_to_u64(bits,
                                   lane == LaneType::f32 ? ElementType::f32 : ElementType::f64);
}

/// Lanes that need no rounding but truncation, which moving the significand down does.
LaneId truncatable(LaneBuilder& builder, Rounded rounded) {
  return rounded.left_to_do == LaneRounding::toward_zero ? rounded.value
                                                         : integral(builder, rounded);
}

}  // namespace

LaneTensor saturate_f32_to_u32_avx2(LaneBuilder& builder, Rounded rounded) {
  const auto integer_constant = [&](uint64_t bits) {
    return builder.constant(LaneType::i32, bits);
  };
  const auto number = [&](double value) { return builder.float_constant(LaneType::f32, value); };
  const LaneId positive = builder.float_max(rounded.value, number(0.0));
  const LaneId is_big = builder.compare(FloatPredicate::greater_equal, positive, number(0x1p31));
  const LaneId is_above = builder.compare(FloatPredicate::greater_equal, positive, number(0x1p32));
  const LaneId shifted = builder.float_sub(positive, builder.zero_unless(is_big, number(0x1p31)));
  const LaneId low = builder.float_to_signed(shifted, 32, rounded.left_to_do);
  const LaneId top = builder.zero_unless(is_big, integer_constant(0x80000000));
  const LaneId value = builder.bit_xor(low, top);
  return LaneTensor::computed(builder, ElementType::u32,
                              {builder.bit_or(value, is_above), Narrowing::truncate});
}

LaneTensor saturate_f64_to_u32_avx2(LaneBuilder& builder, Rounded rounded) {
  const auto number = [&](double value) { return builder.float_constant(LaneType::f64, value); };
  const LaneId positive = builder.float_max(rounded.value, number(0.0));
  const LaneId clamped = builder.float_min(positive, number(0xffffffffp0));
  const LaneId whole = builder.round(clamped, rounded.left_to_do);
  return LaneTensor::computed(builder, ElementType::u32,
                              {builder.small_f64_to_i64(whole), Narrowing::truncate});
}

LaneTensor saturate_f16_to_unsigned_avx2(LaneBuilder& builder, ElementType to, Rounded rounded) {
  const LaneId positive =
      builder.float_max(rounded.value, builder.float_constant(LaneType::f32, 0.0));
  const LaneId integer = builder.float_to_signed(positive, 32, rounded.left_to_do);
  const LaneId saturated = builder.bit_or(integer, builder.shift_right_signed(integer, 31));
  return LaneTensor::computed(builder, to,
                              {builder.extend_sign(saturated, bits_of(to)), Narrowing::truncate});
}

LaneTensor saturate_f16_to_i64_avx2(LaneBuilder& builder, LaneId value, Rounded rounded) {
  const auto number = [&](double x) { return builder.float_constant(LaneType::f32, x); };
  const auto bits = [&](uint64_t x) { return builder.constant(LaneType::i64, x); };
  const auto mask = [&](FloatPredicate predicate, double limit) {
    return builder.compare(predicate, value, number(limit));
  };
  const LaneId kept = builder.zero_unless(mask(FloatPredicate::less_equal, 65504.0), rounded.value);
  const LaneId integer =
      builder.extend_sign(builder.float_to_signed(kept, 32, rounded.left_to_do), 64);
  const LaneId is_above = builder.mask_resize(mask(FloatPredicate::greater, 65504.0), 64);
  const LaneId is_below = builder.mask_resize(mask(FloatPredicate::less, -65504.0), 64);
  constexpr uint64_t from_least_i32 = 0x7fffffff80000000;  // to the least i64, by xor
  const LaneId from_below =
      builder.bit_xor(integer, builder.bit_and(bits(from_least_i32), is_below));
  const LaneId saturated = builder.bit_or(from_below, builder.shift_right(is_above, 1));
  return LaneTensor::computed(builder, ElementType::i64, {saturated, Narrowing::truncate});
}

LaneTensor saturate_to_u64_avx2(LaneBuilder& builder, LaneType lane, Rounded rounded) {
  const LaneId positive =
      builder.float_max(truncatable(builder, rounded), builder.float_constant(lane, 0.0));
  const LaneId bits = builder.extend_zero(positive, 64);
  // As numbers that are not negative compare, so do their bits.
  const uint64_t below_2_64 = lane == LaneType::f32 ? 0x5f7fffff : 0x43efffffffffffff;
  const LaneId is_above = builder.greater_signed(bits, builder.constant(LaneType::i64, below_2_64));
  return LaneTensor::computed(
      builder, ElementType::u64,
      {builder.bit_or(integer_part(builder, lane, bits), is_above), Narrowing::truncate});
}

LaneTensor saturate_to_i64_avx2(LaneBuilder& builder, LaneType lane, Rounded rounded) {
  const LaneId value = truncatable(builder, rounded);
  const LaneId limit = first_above(builder, lane, ElementType::i64);
  const LaneId magnitude = builder.float_min(limit, builder.magnitude(value));  // or NaN
  const LaneId is_negative = builder.mask_resize(
      builder.compare(FloatPredicate::less_equal, value, builder.float_constant(lane, -1.0)), 64);
  const LaneId less_if_negative =
      builder.add(integer_part(builder, lane, builder.extend_zero(magnitude, 64)), is_negative);
  // Now only a positive 2^63 has the top bit: its own one less is the largest integer.
  const LaneId saturated = builder.sub(less_if_negative, builder.shift_right(less_if_negative, 63));
  return LaneTensor::computed(builder, ElementType::i64,
                              {builder.bit_xor(saturated, is_negative), Narrowing::truncate});
}

LaneTensor wrap_avx2(LaneBuilder& builder, ElementType to, Rounded rounded) {
  const LaneId value = integral(builder, rounded);
  const LaneId is_negative = builder.greater_signed(builder.constant(LaneType::i64, 0), value);
  const LaneId integer = builder.negate_where(
      is_negative, integer_part(builder, LaneType::f64, builder.magnitude(value)));
  const LaneId bits = builder.zero_unless(is_in_wrap_range(builder, value, to), integer);
  return LaneTensor::computed(builder, to, {bits, Narrowing::truncate});
}

}  // namespace castor::jit
