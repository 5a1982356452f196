// SPDX-License-Identifier: Apache-2.0
// F32 and f16 to small floats in the forms that stores finish (Narrowing).
#include <cmath>

#include "jit/lower/convert.hpp"
#include "jit/lower/f32_lanes.hpp"
#include "jit/lower/small_float.hpp"

namespace castor::jit {

namespace {

/// What the exponent of the sum of a number of the least exponent and its power adds to a code: a
/// unit counts 2^mantissa_bits codes.
int code_of_least(const FloatFormat& format) {
  const int shift = 23 - format.mantissa_bits;
  return (shift + 127 + 1 - format.bias) << format.mantissa_bits;
}

/// What a power of two is multiplied by, so that the sum's last place is the format's and its low
/// bits have the significand and `units` more.
double rounding_factor(const FloatFormat& format, int units) {
  const int shift = 23 - format.mantissa_bits;
  return std::ldexp(1.0, shift) + std::ldexp(units, shift - 23);
}

/// Units of the last place that `encode_signed` adds to a significand, so that what the exponent
/// adds falls only in bits above the code; an even number, so that ties stay ties.
int added_units(ElementType to) {
  const FloatFormat& format = info(to).format;
  // fnuz: the code of overflow is one above those of numbers.
  const bool is_fnuz = format.specials == FloatSpecials::fnuz;
  const int codes = 1 << (bits_of(to) - (is_fnuz ? 0 : 1));
  return -code_of_least(format) & (codes - 1);
}

/// What a NaN becomes where it becomes zero (NanMode::zero): that of the other sign.
LaneId zero_of_nan(LaneBuilder& builder, LaneId value) {
  const LaneId other = builder.bit_and(builder.bit_not(value), i32_constant(builder, f32_sign));
  return builder.shift_right_signed(other, 16);
}

}  // namespace

/// Adding the power of two of a number's exponent times 2^(23 - mantissa bits) leaves the
/// significand, rounded, in the sum's low bits, as rounded_magnitude does; here by one multiply-add
/// that keeps the sign: the power times its factor is exact. Only then is the magnitude cut off, so
/// that infinities and NaNs, which are quiet by now, take the limit as well. In the sum's bits the
/// lower half has the significand, and the upper half the sign and the exponent, of which a unit
/// counts 2^mantissa_bits codes: a product of i16 pairs joins them, and gives -32768 for the sign.
std::optional<LaneId> encode_signed(LaneBuilder& builder, LaneId value, ElementType to,
                                    const ConvertOptions& options,
                                    const std::optional<Integers>& integers) {
  const FloatFormat& format = info(to).format;
  const bool has_form = builder.target().has_avx512() && kind_of(to) == ElementKind::floating &&
                        (format.specials != FloatSpecials::ieee || integers) && bits_of(to) <= 8;
  const bool has_own_nans = !integers && !limit_gives_nans(to, options);
  if (!has_form) return std::nullopt;
  const auto number = [&](double x) { return builder.float_constant(LaneType::f32, x); };
  const double factor = rounding_factor(format, added_units(to));
  const double limit = magnitude_limit(to, options);
  const double cut_off = limit + std::ldexp(factor, std::ilogb(limit));

  // Integers are normal, or zero: then so are power and sum.
  const LaneId normal =
      integers ? value : builder.magnitude_from(value, number(std::ldexp(1.0, 1 - format.bias)));
  const LaneId power = builder.bit_and(normal, i32_constant(builder, f32_sign | f32_infinity));
  const LaneId sum = builder.float_sub_product(value, power, number(-factor));
  const bool overflows = !integers || integers->max > limit;
  const LaneId rounded = overflows ? builder.magnitude_to(sum, number(cut_off)) : sum;
  const int first_bit = 7 - format.mantissa_bits;
  const LaneId codes = builder.dot_i16_pairs(
      rounded, i32_constant(builder, uint64_t{1} << 16 | uint64_t{1} << first_bit));
  if (!has_own_nans) return codes;
  if (format.specials == FloatSpecials::finite) {
    return builder.select(nan_mask(builder, value), zero_of_nan(builder, value), codes);
  }
  // The NaN's code is the one after that of the largest number.
  const LaneId nans = builder.add(codes, i32_constant(builder, uint64_t{1} << first_bit));
  return builder.select(nan_mask(builder, value), nans, codes);
}

/// The power of two is added by one multiply-add here too, but to the magnitude, which is cut off
/// before. The sum's lower half is a negative i16, the significand less what the code of the least
/// normal exponent would be without it, so that the product of i16 pairs is the code alone.
std::optional<LaneId> encode_magnitude(LaneBuilder& builder, LaneId value, ElementType to,
                                       const ConvertOptions& options,
                                       const std::optional<Integers>& integers) {
  const FloatFormat& format = info(to).format;
  // A register holds four 64-bit integers: their signs cost more than f16 does.
  const bool is_wide = integers && integers->is_signed && integers->max > 0x1p31;
  const bool has_form = !builder.target().has_avx512() && kind_of(to) == ElementKind::floating &&
                        (format.specials != FloatSpecials::ieee || (integers && !is_wide));
  const bool has_own_nans = !integers && !limit_gives_nans(to, options);
  if (!has_form || (has_own_nans && format.specials == FloatSpecials::finite)) return std::nullopt;
  const auto number = [&](double x) { return builder.float_constant(LaneType::f32, x); };
  constexpr int first_bit = 8;
  const double factor = rounding_factor(format, 0x10000 - code_of_least(format));

  const bool has_signs = !integers || integers->is_signed;
  LaneId magnitude =
      has_signs ? builder.bit_and(value, i32_constant(builder, f32_magnitude)) : value;
  const double limit = magnitude_limit(to, options);
  if (!integers || integers->max > limit) {
    magnitude = builder.min_unsigned(magnitude, number(limit));
  }
  // Integers are normal, or zero: then so are power and sum.
  const LaneId normal =
      integers ? magnitude
               : builder.max_unsigned(magnitude, number(std::ldexp(1.0, 1 - format.bias)));
  const LaneId power = builder.bit_and(normal, i32_constant(builder, f32_infinity));
  const LaneId sum = builder.float_sub_product(magnitude, power, number(-factor));
  const uint64_t of_exponent = uint64_t{1} << (first_bit - 7 + format.mantissa_bits);
  const LaneId codes = builder.dot_i16_pairs(
      sum, i32_constant(builder, of_exponent << 16 | uint64_t{1} << first_bit));
  if (!has_own_nans) return codes;
  // The NaN's code is the one after that of the largest number.
  const LaneId one = i32_constant(builder, uint64_t{1} << first_bit);
  return builder.add(codes, builder.zero_unless(nan_mask(builder, value), one));
}

/// Bit 20 of an f32 is the first that f8e5m2 drops of a normal number, and of subnormal ones a
/// higher bit is. What is below bit 20 only tells whether a number is a tie: bit 19 stands for all
/// of it. f16 keeps that bit of all numbers that do not round to zero (from 2^-17 on), and so the
/// cut to f16, toward zero, loses nothing that counts. It makes overflow the largest f16, which
/// rounds to infinity, and NaNs quiet.
LaneId fold_to_f16(LaneBuilder& builder, LaneId value, const ConvertOptions& options) {
  constexpr uint64_t folded_bit = uint64_t{1} << 19;
  if (options.overflow == Overflow::saturate) {
    value = clamp_to_finite(builder, value, ElementType::f8e5m2);
  }
  const LaneId carried = builder.add(value, i32_constant(builder, folded_bit - 1));
  const LaneId folded =
      builder.bit_or(value, builder.bit_and(carried, i32_constant(builder, folded_bit)));
  return builder.f32_to_f16(folded, LaneRounding::toward_zero);
}

LaneId round_to_e5m2(LaneBuilder& builder, LaneId halves) {
  const auto word = [&](uint64_t bits) { return builder.constant(LaneType::i16, bits); };
  constexpr uint64_t f16_infinity = 0x7c00;
  constexpr uint64_t f16_quiet = 0x0200;
  const LaneId is_nan =
      builder.greater_signed(builder.bit_and(halves, word(0x7fff)), word(f16_infinity));
  const LaneId rounded = builder.round_half_even(halves, 8);
  return builder.select(is_nan, builder.bit_or(halves, word(f16_quiet)), rounded);
}

}  // namespace castor::jit
