// SPDX-License-Identifier: Apache-2.0
// Floats of at most eight bits to f32.
#include <cmath>

#include "jit/lower/convert.hpp"
#include "jit/lower/f32_lanes.hpp"
#include "jit/lower/small_float.hpp"
#include "jit/lower/small_values.hpp"

namespace castor::jit {

namespace {

/// 2^(code - 127): the code is f32's exponent, but for 0, a subnormal, and 255, the NaN.
LaneId decode_power(LaneBuilder& builder, LaneId codes) {
  constexpr uint64_t min = 0x00400000;
  const LaneId exponents = builder.shift_left(builder.extend_zero(codes, 32), 23);
  const LaneId powers = builder.max_unsigned(exponents, i32_constant(builder, min));
  const LaneId is_nan = builder.equal(exponents, i32_constant(builder, f32_infinity));
  return builder.select(is_nan, i32_constant(builder, f32_quiet_nan), powers);
}

/// f8e5m2 is the upper half of f16.
LaneId decode_upper_half(LaneBuilder& builder, LaneId codes) {
  return builder.f16_to_f32(builder.shift_left(builder.extend_zero(codes, 16), 8));
}

/// Codes (i16 lanes) with the sign moved up by some places, away from the exponent.
LaneId move_sign_up(LaneBuilder& builder, LaneId codes, int places, uint64_t sign_bit) {
  const auto word = [&](uint64_t bits) { return builder.constant(LaneType::i16, bits); };
  if (places == 1) return builder.add(codes, builder.bit_and(codes, word(sign_bit)));
  // All ones from the sign's place up to the last before the new one carry a sign there.
  const uint64_t moved_sign = sign_bit << places;
  return builder.bit_and(builder.add(codes, word(moved_sign - sign_bit)),
                         word(moved_sign + sign_bit - 1));
}

/// Formats with fewer exponent bits than f16: their magnitude, moved to where f16's mantissa and
/// exponent meet, is the f16 of a number smaller by the distance of the biases.
LaneId decode_through_f16(LaneBuilder& builder, LaneId codes, ElementType type, bool may_be_nan) {
  const FloatFormat& format = info(type).format;
  const FloatFormat& f16 = info(ElementType::f16).format;
  const int shift = f16.mantissa_bits - format.mantissa_bits;
  const LaneId wide = builder.extend_zero(codes, 16);
  const LaneId signs_apart =
      move_sign_up(builder, wide, 16 - bits_of(type) - shift, uint64_t{1} << (bits_of(type) - 1));
  const LaneId small = builder.f16_to_f32(builder.shift_left(signs_apart, shift));
  const LaneId value = builder.float_mul(
      small, builder.float_constant(LaneType::f32, std::ldexp(1.0, f16.bias - format.bias)));
  if (format.specials == FloatSpecials::finite || !may_be_nan) return value;
  if (format.specials == FloatSpecials::fnuz) {
    const LaneId is_nan = builder.equal(value, i32_constant(builder, f32_sign));  // -0
    return builder.select(is_nan, i32_constant(builder, f32_quiet_nan | f32_sign), value);
  }
  // f8e4m3's NaN would be 480, the one number above 448.
  const LaneId is_nan =
      builder.greater_signed(builder.bit_and(value, i32_constant(builder, f32_magnitude)),
                             builder.float_constant(LaneType::f32, largest_finite(type)));
  const LaneId nan = builder.merge_bits(f32_sign, value, i32_constant(builder, f32_quiet_nan));
  return builder.select(is_nan, nan, value);
}

/// f8e5m2fnuz: its largest exponents would be f16's infinities, so the fields are moved to f32's.
/// A subnormal number, given the least normal exponent and its hidden bit, loses that by a
/// subtraction.
LaneId decode_e5m2fnuz(LaneBuilder& builder, LaneId codes, const FloatFormat& format,
                       bool may_be_nan) {
  const int shift = 23 - format.mantissa_bits;
  const LaneId wide = builder.extend_zero(codes, 32);
  const LaneId magnitude = builder.bit_and(wide, i32_constant(builder, 0x7f));
  const LaneId rebias = i32_constant(builder, f32_power_of_two(-format.bias));
  const LaneId normal = builder.add(builder.shift_left(magnitude, shift), rebias);
  const LaneId one_up = builder.add(normal, i32_constant(builder, uint64_t{1} << 23));
  const LaneId subnormal = builder.float_sub(
      one_up, builder.float_constant(LaneType::f32, std::ldexp(1.0, 1 - format.bias)));
  const LaneId is_subnormal =
      builder.greater_signed(i32_constant(builder, uint64_t{1} << format.mantissa_bits), magnitude);
  const LaneId value = builder.select(is_subnormal, subnormal, normal);
  const LaneId sign = builder.shift_left(builder.bit_and(wide, i32_constant(builder, 0x80)), 24);
  const LaneId number = builder.bit_or(value, sign);
  if (!may_be_nan) return number;
  const LaneId is_nan = builder.equal(wide, i32_constant(builder, 0x80));
  return builder.select(is_nan, i32_constant(builder, f32_quiet_nan | f32_sign), number);
}

}  // namespace

LaneId decode_small(LaneBuilder& builder, LaneId codes, ElementType type, bool may_be_nan) {
  if (kind_of(type) == ElementKind::power_of_two) return decode_power(builder, codes);
  if (has_f32_table(type)) {
    return builder.look_up_i32(builder.extend_zero(codes, 32), f32_table(type));
  }
  const FloatFormat& format = info(type).format;
  const FloatFormat& f16 = info(ElementType::f16).format;
  if (format.exponent_bits < f16.exponent_bits) {
    return decode_through_f16(builder, codes, type, may_be_nan);
  }
  return format.specials == FloatSpecials::ieee
             ? decode_upper_half(builder, codes)
             : decode_e5m2fnuz(builder, codes, format, may_be_nan);
}

}  // namespace castor::jit
