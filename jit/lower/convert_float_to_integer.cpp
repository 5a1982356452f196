// SPDX-License-Identifier: Apache-2.0
// Floats to integers: rounded by mode; out of range saturated (NaN -> 0) or wrapped.
#include "jit/lower/convert.hpp"

namespace castor::jit {

namespace {

/// A float that is about to become an integer: the lanes, and the rounding that the conversion
/// itself has still to do.
struct Rounded {
  LaneId value;
  LaneRounding left_to_do;
};

/// Half away from zero: truncate(x + copysign(h, x)) with h the number before one half, which no
/// sum below the next integer reaches from below a half, nor misses from one half up.
LaneId add_half_away(LaneBuilder& builder, LaneId value) {
  const int bits = bits_of(builder.type_of(value));
  const LaneType integer = integer_lane(bits);
  const LaneId sign = builder.constant(integer, uint64_t{1} << (bits - 1));
  const LaneId almost_half =
      builder.constant(integer, bits == 32 ? 0x3effffff : 0x3fdfffffffffffff);
  return builder.float_add(value, builder.bit_or(builder.bit_and(value, sign), almost_half));
}

/// floor(x + 1/2): the distance x - floor(x) compares with one half as the exact distance does.
LaneId round_half_up(LaneBuilder& builder, LaneId value) {
  const LaneType lane = float_lane(bits_of(builder.type_of(value)));
  const LaneId floor = builder.round(value, LaneRounding::down);
  const LaneId distance = builder.float_sub(value, floor);
  const LaneId goes_up =
      builder.compare(FloatPredicate::greater_equal, distance, builder.float_constant(lane, 0.5));
  const LaneId above = builder.float_add(floor, builder.float_constant(lane, 1.0));
  return builder.select(goes_up, above, floor);
}

Rounded apply_rounding(LaneBuilder& builder, LaneId value, Rounding rounding) {
  switch (rounding) {
    case Rounding::by_type:
    case Rounding::toward_zero: return {value, LaneRounding::toward_zero};
    case Rounding::nearest_even: return {value, LaneRounding::nearest_even};
    case Rounding::down: return {value, LaneRounding::down};
    case Rounding::up: return {value, LaneRounding::up};
    case Rounding::nearest_away: return {add_half_away(builder, value), LaneRounding::toward_zero};
    case Rounding::half_up: return {round_half_up(builder, value), LaneRounding::toward_zero};
  }
  return {value, LaneRounding::toward_zero};
}

/// 2^N of the first value above the integer type's range; exact.
LaneId first_above(LaneBuilder& builder, LaneType lane, ElementType to) {
  const int value_bits = bits_of(to) - (is_signed_integer(to) ? 1 : 0);
  return builder.float_constant(
      lane, value_bits == 64 ? 0x1p64 : static_cast<double>(uint64_t{1} << value_bits));
}

/// Whether the float lane represents every limit of the integer type, so that clamping before the
/// conversion gives the limit itself.
bool limits_are_exact(LaneType lane, ElementType to) {
  return bits_of(to) <= (lane == LaneType::f32 ? 16 : 32);
}

LaneId ordered(LaneBuilder& builder, LaneId value) {
  return builder.compare(FloatPredicate::ordered, value, value);
}

/// i8, i16, and i32 from f64: clamped above in float; below, the conversion's own result (the
/// smallest integer) saturates.
LaneTensor saturate_to_signed(LaneBuilder& builder, LaneId value, ElementType to, Rounded rounded) {
  const LaneType lane = float_lane(bits_of(builder.type_of(value)));
  const Narrowing narrowing =
      bits_of(to) == 32 ? Narrowing::truncate : Narrowing::saturate_to_signed;
  const LaneId limit = builder.float_constant(lane, static_cast<double>(integer_max(to)));
  const LaneId is_number = ordered(builder, value);
  if (!builder.has_wide_conversions()) {
    // NaN becomes zero before the lanes get narrower: masks do so by several instructions.
    const LaneId number = builder.zero_unless(is_number, rounded.value);
    const LaneId below = builder.float_min(limit, number);
    return LaneTensor::computed(
        builder, to, {builder.float_to_signed(below, 32, rounded.left_to_do), narrowing});
  }
  const LaneId below = builder.float_min(limit, rounded.value);
  const LaneId integer = builder.float_to_signed(below, 32, rounded.left_to_do);
  return LaneTensor::computed(
      builder, to, {builder.zero_unless(builder.mask_resize(is_number, 32), integer), narrowing});
}

/// The same of f16, whose numbers all fit 32 bits: only NaN and +infinity need care.
LaneTensor saturate_f16_to_signed(LaneBuilder& builder, ElementType to, Rounded rounded) {
  const LaneId bounded =
      builder.bound_specials(rounded.value, static_cast<double>(integer_max(to)));
  return LaneTensor::computed(
      builder, to,
      {builder.float_to_signed(bounded, 32, rounded.left_to_do), Narrowing::saturate_to_signed});
}

/// u8, u16: clamped above in float; below, NaN included, the conversion's own result (the smallest
/// integer) saturates to 0.
LaneTensor saturate_to_small_unsigned(LaneBuilder& builder, ElementType to, LaneType lane,
                                      Rounded rounded) {
  const LaneId limit = builder.float_constant(lane, static_cast<double>(integer_max(to)));
  const LaneId below = builder.float_min(limit, rounded.value);
  return LaneTensor::computed(
      builder, to,
      {builder.float_to_signed(below, 32, rounded.left_to_do), Narrowing::saturate_to_unsigned});
}

/// Sub-byte integers: clamped in float on both sides.
LaneTensor saturate_to_sub_byte(LaneBuilder& builder, LaneId value, ElementType to,
                                Rounded rounded) {
  const LaneType lane = float_lane(bits_of(builder.type_of(value)));
  const auto number = [&](auto limit) {
    return builder.float_constant(lane, static_cast<double>(limit));
  };
  const LaneId at_least = builder.float_max(rounded.value, number(integer_min(to)));
  const LaneId bounded = builder.float_min(number(integer_max(to)), at_least);
  LaneId integer = builder.float_to_signed(bounded, 32, rounded.left_to_do);
  if (!is_signed_integer(to)) {  // max has made NaN the smallest value, 0
    return LaneTensor::computed(builder, to, {integer, Narrowing::fits_unsigned});
  }
  integer = builder.zero_unless(builder.mask_resize(ordered(builder, value), 32), integer);
  return LaneTensor::computed(builder, to, {integer, Narrowing::fits_signed});
}

/// i32 from f32, i64: the conversion's own out-of-range result is the smallest integer, right
/// below the range; above it the largest is put in its place.
LaneTensor saturate_to_wide_signed(LaneBuilder& builder, LaneId value, ElementType to,
                                   Rounded rounded) {
  const int bits = bits_of(to);
  const LaneType lane = float_lane(bits_of(builder.type_of(value)));
  const LaneId is_above =
      builder.compare(FloatPredicate::greater_equal, value, first_above(builder, lane, to));
  const LaneId integer =
      builder.zero_unless(builder.mask_resize(ordered(builder, value), bits),
                          builder.float_to_signed(rounded.value, bits, rounded.left_to_do));
  if (!builder.has_wide_conversions()) {
    // Too big a number became the smallest integer; the complement of that is the largest.
    return LaneTensor::computed(builder, to,
                                {builder.bit_xor(integer, is_above), Narrowing::truncate});
  }
  const LaneId largest = builder.constant(integer_lane(bits), integer_max(to));
  return LaneTensor::computed(
      builder, to,
      {builder.select(builder.mask_resize(is_above, bits), largest, integer), Narrowing::truncate});
}

/// u32, u64 by instruction: max turns NaN and negative numbers into 0, and the out-of-range result
/// is the largest integer. Rounding up to 0 from below needs no care: max comes after it.
LaneTensor saturate_to_wide_unsigned(LaneBuilder& builder, ElementType to, LaneType lane,
                                     Rounded rounded) {
  const LaneId positive = builder.float_max(rounded.value, builder.float_constant(lane, 0.0));
  return LaneTensor::computed(
      builder, to,
      {builder.float_to_unsigned(positive, bits_of(to), rounded.left_to_do), Narrowing::truncate});
}

/// AVX2, u32 from f32: numbers from 2^31 up are converted less 2^31.
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

/// AVX2, u32 from f64: clamped at both ends in float.
LaneTensor saturate_f64_to_u32_avx2(LaneBuilder& builder, Rounded rounded) {
  const auto number = [&](double value) { return builder.float_constant(LaneType::f64, value); };
  const LaneId positive = builder.float_max(rounded.value, number(0.0));
  const LaneId clamped = builder.float_min(positive, number(0xffffffffp0));
  const LaneId integral = builder.round(clamped, rounded.left_to_do);
  return LaneTensor::computed(builder, ElementType::u32,
                              {builder.small_f64_to_i64(integral), Narrowing::truncate});
}

/// AVX2, u32 and u64 from f16: its numbers fit 31 bits, and +infinity becomes the one negative
/// i32, which the sign turns into all ones.
LaneTensor saturate_f16_to_unsigned_avx2(LaneBuilder& builder, ElementType to, Rounded rounded) {
  const LaneId positive =
      builder.float_max(rounded.value, builder.float_constant(LaneType::f32, 0.0));
  const LaneId integer = builder.float_to_signed(positive, 32, rounded.left_to_do);
  const LaneId saturated = builder.bit_or(integer, builder.shift_right_signed(integer, 31));
  return LaneTensor::computed(builder, to,
                              {builder.extend_sign(saturated, bits_of(to)), Narrowing::truncate});
}

/// AVX2, i64 from f16: its numbers fit 32 bits. Infinities, as zero and the smallest i32, are put
/// right after.
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

/// AVX2, u64: by moving the significand. NaN and negative numbers become 0 first.
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

/// AVX2, i64: the same of the magnitude, at most 2^63; then the sign, as complement of one less.
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

LaneTensor saturate(LaneBuilder& builder, LaneId value, ElementType from, ElementType to,
                    Rounded rounded) {
  const LaneType lane = float_lane(bits_of(builder.type_of(value)));
  const bool is_signed = is_signed_integer(to);
  const bool wide = builder.has_wide_conversions();
  const bool is_f16 = from == ElementType::f16;
  if (is_sub_byte(to)) return saturate_to_sub_byte(builder, value, to, rounded);
  if (is_f16 && is_signed && bits_of(to) <= 16 && wide) {
    return saturate_f16_to_signed(builder, to, rounded);
  }
  if (is_f16 && bits_of(to) >= 32 && !is_signed && !wide) {
    return saturate_f16_to_unsigned_avx2(builder, to, rounded);
  }
  if (is_f16 && bits_of(to) == 64 && !wide) {
    return saturate_f16_to_i64_avx2(builder, value, rounded);
  }
  if (is_signed && limits_are_exact(lane, to)) {
    return saturate_to_signed(builder, value, to, rounded);
  }
  if (!is_signed && bits_of(to) <= 16) {
    return saturate_to_small_unsigned(builder, to, lane, rounded);
  }
  if (is_signed && (wide || bits_of(to) == 32)) {
    return saturate_to_wide_signed(builder, value, to, rounded);
  }
  if (wide) return saturate_to_wide_unsigned(builder, to, lane, rounded);
  if (to == ElementType::u32) {
    return lane == LaneType::f32 ? saturate_f32_to_u32_avx2(builder, rounded)
                                 : saturate_f64_to_u32_avx2(builder, rounded);
  }
  return is_signed ? saturate_to_i64_avx2(builder, lane, rounded)
                   : saturate_to_u64_avx2(builder, lane, rounded);
}

/// In the range whose low bits `overflow = wrap` keeps: i64, and u64 as well if that is the
/// destination. NaN is in no range.
LaneId in_wrap_range(LaneBuilder& builder, LaneId integral_value, ElementType to) {
  const LaneType lane = float_lane(bits_of(builder.type_of(integral_value)));
  const double above = to == ElementType::u64 ? 0x1p64 : 0x1p63;
  return builder.mask_and(
      builder.compare(FloatPredicate::greater_equal, integral_value,
                      builder.float_constant(lane, -0x1p63)),
      builder.compare(FloatPredicate::less, integral_value, builder.float_constant(lane, above)));
}

/// Whether every number of a type is in i32's range.
bool fits_32_bits(ElementType type) {
  return type == ElementType::f16 || type == ElementType::nf4 ||
         (is_float(type) && bits_of(type) <= 8);
}

/// The same of such numbers, for at most 16 bits: what infinities and NaNs become, the smallest
/// i32, has low bits of 0.
LaneTensor wrap_32_bits(LaneBuilder& builder, ElementType to, Rounded rounded) {
  return LaneTensor::computed(
      builder, to,
      {builder.float_to_signed(rounded.value, 32, rounded.left_to_do), Narrowing::truncate});
}

LaneTensor wrap(LaneBuilder& builder, ElementType to, Rounded rounded) {
  if (!builder.has_wide_conversions()) {
    const LaneId value = integral(builder, rounded);
    const LaneId is_negative = builder.greater_signed(builder.constant(LaneType::i64, 0), value);
    const LaneId integer = builder.negate_where(
        is_negative, integer_part(builder, LaneType::f64, builder.magnitude(value)));
    const LaneId bits = builder.zero_unless(in_wrap_range(builder, value, to), integer);
    return LaneTensor::computed(builder, to, {bits, Narrowing::truncate});
  }
  LaneId bits = builder.float_to_signed(rounded.value, 64, rounded.left_to_do);
  if (bits_of(to) == 64) {
    // Out of range gives 1 << 63, whose low bits are 0 only for narrower destinations.
    const LaneType lane = float_lane(bits_of(builder.type_of(rounded.value)));
    const LaneId in_range = builder.mask_resize(in_wrap_range(builder, rounded.value, to), 64);
    if (to == ElementType::u64) {
      const LaneId is_big = builder.compare(FloatPredicate::greater_equal, rounded.value,
                                            builder.float_constant(lane, 0x1p63));
      bits = builder.select(builder.mask_resize(is_big, 64),
                            builder.float_to_unsigned(rounded.value, 64, rounded.left_to_do), bits);
    }
    bits = builder.zero_unless(in_range, bits);
  }
  return LaneTensor::computed(builder, to, {bits, Narrowing::truncate});
}

}  // namespace

LaneTensor convert_float_to_integer(LaneBuilder& builder, LaneTensor& source, ElementType to,
                                    const ConvertOptions& options) {
  const bool wraps = options.overflow == Overflow::wrap;
  if (wraps && bits_of(to) <= 16 && fits_32_bits(source.element())) {
    return wrap_32_bits(builder, to, apply_rounding(builder, source.as_f32(), options.rounding));
  }
  const bool through_f64 =
      source.element() == ElementType::f64 || (wraps && !builder.has_wide_conversions());
  const LaneId value = through_f64 ? source.as_f64() : source.as_f32();
  const Rounded rounded = apply_rounding(builder, value, options.rounding);
  return wraps ? wrap(builder, to, rounded)
               : saturate(builder, value, source.element(), to, rounded);
}

}  // namespace castor::jit
