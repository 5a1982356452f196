// SPDX-License-Identifier: Apache-2.0
// F32 to f8e8m0.
#include "jit/lower/f32_lanes.hpp"
#include "jit/lower/small_float.hpp"

namespace castor::jit {

namespace {

constexpr uint64_t nan_code = 255;

/// What is added to a magnitude's bits so that its exponent field is the rounded code.
uint64_t rounding_addend(Rounding rounding) {
  switch (rounding) {
    case Rounding::up: return 0x7fffff;
    case Rounding::down: return 0;
    case Rounding::half_up: return 0x400000;
    default: return 0x3fffff;  // nearest even: and the exponent's last bit
  }
}

/// How far below its regular position f32 has the midpoint of 2^-127, which is subnormal there, and
/// 2^-126.
uint64_t subnormal_shift(Rounding rounding) {
  switch (rounding) {
    case Rounding::up: return 0x400000;
    case Rounding::down: return 0;
    default: return 0x200000;
  }
}

/// The exponent field of positive f32 (bits, none a NaN), rounded to nearest even, in the low byte
/// of each lane. The bits have at most 24 significant ones: as integers they convert exactly, and
/// are rounded by adding a number whose last place is that of the exponent field.
LaneId nearest_exponent_of_few_bits(LaneBuilder& builder, LaneId bits) {
  const LaneId integer = builder.integer_to_float(bits, true, LaneType::f32);
  const auto number = [&](double x) { return builder.float_constant(LaneType::f32, x); };
  // A multiply-add, since conversions and additions share Zen 4's pipes.
  return builder.float_sub_product(number(0x1.8p46), integer, number(-1.0));
}

}  // namespace

LaneId encode_power(LaneBuilder& builder, LaneId value, const ConvertOptions& options) {
  constexpr uint64_t min_normal = 0x00800000;
  const LaneId zero = i32_constant(builder, 0);
  const LaneId nan = i32_constant(builder, 255);
  // As integers, negative numbers are negative; both zeros and they become 0.
  LaneId bits = builder.max_signed(value, zero);
  if (const uint64_t shift = subnormal_shift(options.rounding); shift != 0) {
    const LaneId below_normal = builder.greater_signed(i32_constant(builder, min_normal), bits);
    bits = builder.sub(bits, builder.zero_unless(below_normal, i32_constant(builder, shift)));
  }
  const uint64_t addend = rounding_addend(options.rounding);
  LaneId sum = addend == 0 ? bits : builder.add(bits, i32_constant(builder, addend));
  if (options.rounding == Rounding::by_type) {
    sum =
        builder.add(sum, builder.bit_and(builder.shift_right(bits, 23), i32_constant(builder, 1)));
  }
  const LaneId rounded = builder.shift_right(sum, 23);
  LaneId codes = builder.min_unsigned(rounded, i32_constant(builder, 254));
  if (options.overflow == Overflow::nan) {
    const auto number = [&](double x) { return builder.float_constant(LaneType::f32, x); };
    const LaneId in_range =
        builder.mask_and(builder.compare(FloatPredicate::greater_equal, value, number(0x1p-127)),
                         builder.compare(FloatPredicate::less_equal, value, number(0x1p127)));
    return builder.select(in_range, codes, nan);
  }
  return builder.select(nan_mask(builder, value), nan, codes);
}

LaneId encode_power(LaneBuilder& builder, LaneId value, const ConvertOptions& options,
                    const Integers& integers) {
  const LaneId zero = i32_constant(builder, 0);
  // As integers, negative numbers are negative.
  const LaneId bits = integers.is_signed ? builder.max_signed(value, zero) : value;
  constexpr double max_of_few_bits = 0x1p16;
  const bool to_nearest = options.rounding == Rounding::by_type;
  LaneId codes = no_lane;
  if (to_nearest && integers.max <= max_of_few_bits) {
    codes = nearest_exponent_of_few_bits(builder, bits);
  } else {
    const LaneId rounded =
        to_nearest ? builder.round_half_even(bits, 23)
                   : builder.add(bits, i32_constant(builder, rounding_addend(options.rounding)));
    codes = builder.shift_right(rounded, 23);
  }
  if (options.overflow != Overflow::nan) return codes;
  return builder.select(builder.greater_signed(value, zero), codes,
                        i32_constant(builder, nan_code));
}

LaneId encode_power_of_f16(LaneBuilder& builder, LaneId value, Overflow overflow) {
  // f16's least number is a normal f32.
  return nearest_exponent_of_few_bits(builder,
                                      builder.bound_to_powers(value, overflow == Overflow::nan));
}

}  // namespace castor::jit
