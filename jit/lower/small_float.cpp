// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/small_float.hpp"

#include <cmath>

#include "jit/lower/convert.hpp"
#include "jit/lower/nf4.hpp"
#include "jit/lower/small_values.hpp"

namespace castor::jit {

namespace {

constexpr uint64_t f32_magnitude = 0x7fffffff;
constexpr uint64_t f32_infinity = 0x7f800000;
constexpr uint64_t f32_quiet_nan = 0x7fc00000;
constexpr uint64_t f32_sign = 0x80000000;

LaneId dword(LaneBuilder& builder, uint64_t bits) { return builder.constant(LaneType::i32, bits); }

/// f32 bits of 2^exponent.
uint64_t power_of_two(int exponent) { return static_cast<uint64_t>(exponent + 127) << 23; }

// ---- Decoding.

/// 2^(code - 127): the code is f32's exponent, but for 0, a subnormal, and 255, the NaN.
LaneId decode_power(LaneBuilder& builder, LaneId codes) {
  constexpr uint64_t min = 0x00400000;
  const LaneId exponents = builder.shift_left(builder.extend_zero(codes, 32), 23);
  const LaneId powers = builder.max_unsigned(exponents, dword(builder, min));
  const LaneId is_nan = builder.equal(exponents, dword(builder, f32_infinity));
  return builder.select(is_nan, dword(builder, f32_quiet_nan), powers);
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
LaneId decode_through_f16(LaneBuilder& builder, LaneId codes, ElementType type) {
  const FloatFormat& format = info(type).format;
  const FloatFormat& f16 = info(ElementType::f16).format;
  const int shift = f16.mantissa_bits - format.mantissa_bits;
  const LaneId wide = builder.extend_zero(codes, 16);
  const LaneId signs_apart =
      move_sign_up(builder, wide, 16 - bits_of(type) - shift, uint64_t{1} << (bits_of(type) - 1));
  const LaneId small = builder.f16_to_f32(builder.shift_left(signs_apart, shift));
  const LaneId value = builder.float_mul(
      small, builder.float_constant(LaneType::f32, std::ldexp(1.0, f16.bias - format.bias)));
  if (format.specials == FloatSpecials::finite) return value;
  if (format.specials == FloatSpecials::fnuz) {
    const LaneId is_nan = builder.equal(value, dword(builder, f32_sign));  // -0
    return builder.select(is_nan, dword(builder, f32_quiet_nan | f32_sign), value);
  }
  // f8e4m3's NaN would be 480, the one number above 448.
  const LaneId is_nan =
      builder.greater_signed(builder.bit_and(value, dword(builder, f32_magnitude)),
                             builder.float_constant(LaneType::f32, largest_finite(type)));
  const LaneId nan = builder.merge_bits(f32_sign, value, dword(builder, f32_quiet_nan));
  return builder.select(is_nan, nan, value);
}

/// f8e5m2fnuz: its largest exponents would be f16's infinities, so the fields are moved to f32's.
/// A subnormal number, given the least normal exponent and its hidden bit, loses that by a
/// subtraction.
LaneId decode_e5m2fnuz(LaneBuilder& builder, LaneId codes, const FloatFormat& format) {
  const int shift = 23 - format.mantissa_bits;
  const LaneId wide = builder.extend_zero(codes, 32);
  const LaneId magnitude = builder.bit_and(wide, dword(builder, 0x7f));
  const LaneId rebias = dword(builder, power_of_two(-format.bias));
  const LaneId normal = builder.add(builder.shift_left(magnitude, shift), rebias);
  const LaneId one_up = builder.add(normal, dword(builder, uint64_t{1} << 23));
  const LaneId subnormal = builder.float_sub(
      one_up, builder.float_constant(LaneType::f32, std::ldexp(1.0, 1 - format.bias)));
  const LaneId is_subnormal =
      builder.greater_signed(dword(builder, uint64_t{1} << format.mantissa_bits), magnitude);
  const LaneId value = builder.select(is_subnormal, subnormal, normal);
  const LaneId sign = builder.shift_left(builder.bit_and(wide, dword(builder, 0x80)), 24);
  const LaneId is_nan = builder.equal(wide, dword(builder, 0x80));
  return builder.select(is_nan, dword(builder, f32_quiet_nan | f32_sign),
                        builder.bit_or(value, sign));
}

// ---- Encoding.

LaneId is_nan(LaneBuilder& builder, LaneId value) {
  return builder.compare(FloatPredicate::unordered, value, value);
}

/// The magnitude from which on a number overflows: the number after the largest finite one, or,
/// where overflow gives that, the largest finite number itself. NaNs have larger bits.
double magnitude_limit(ElementType to, const ConvertOptions& options) {
  const FloatFormat& format = info(to).format;
  const double largest = largest_finite(to);
  if (options.overflow == Overflow::saturate || format.specials == FloatSpecials::finite) {
    return largest;
  }
  return largest + std::ldexp(1.0, std::ilogb(largest) - format.mantissa_bits);
}

/// The low eight bits: the code of the magnitude, rounded to nearest even.
///
/// Adding 2^(exponent + 23 - mantissa bits) leaves the significand, rounded, in the sum's low bits;
/// for numbers below the normal ones the least normal exponent counts. The exponent field, shifted
/// to its position, is added; what is to be subtracted from it (its bias, and one for the hidden
/// bit) is already in the low bits of the power.
LaneId rounded_magnitude(LaneBuilder& builder, LaneId magnitude, const FloatFormat& format) {
  const int shift = 23 - format.mantissa_bits;
  const uint64_t bias = static_cast<uint64_t>(128 - format.bias) << format.mantissa_bits;
  const uint64_t power = (static_cast<uint64_t>(shift) << 23) + (-bias & 0xff);
  const LaneId normal =
      builder.max_unsigned(magnitude, dword(builder, power_of_two(1 - format.bias)));
  const LaneId exponent = builder.bit_and(normal, dword(builder, f32_infinity));
  const LaneId sum = builder.float_add(magnitude, builder.add(exponent, dword(builder, power)));
  return builder.add(sum, builder.shift_right(exponent, shift));
}

/// Puts the codes of NaNs where the format's magnitude limit does not give them.
LaneId put_nans(LaneBuilder& builder, LaneId codes, LaneId value, LaneId sign, ElementType to,
                const ConvertOptions& options) {
  const FloatFormat& format = info(to).format;
  const LaneId nan = is_nan(builder, value);
  switch (format.specials) {
    case FloatSpecials::ieee: {
      // The infinity's code, the quiet bit, and the payload's top bits.
      const uint64_t mantissa = (uint64_t{1} << format.mantissa_bits) - 1;
      const uint64_t quiet = ((0xff << format.mantissa_bits) & 0x7f) | 2;
      const LaneId payload = builder.bit_and(builder.shift_right(value, 23 - format.mantissa_bits),
                                             dword(builder, mantissa));
      return builder.select(
          nan, builder.bit_or(builder.bit_or(payload, dword(builder, quiet)), sign), codes);
    }
    case FloatSpecials::nan_only:
      return builder.select(nan, builder.bit_or(sign, dword(builder, 0x7f)), codes);
    case FloatSpecials::fnuz: return builder.select(nan, dword(builder, 0x80), codes);
    case FloatSpecials::finite: break;
  }
  if (options.nan != NanMode::zero) return codes;
  const uint64_t sign_bit = uint64_t{1} << (bits_of(to) - 1);
  return builder.select(nan, builder.bit_xor(sign, dword(builder, sign_bit)), codes);
}

/// Whether NaNs, cut off at the magnitude limit, get their code that way.
bool limit_gives_nans(ElementType to, const ConvertOptions& options) {
  switch (info(to).format.specials) {
    case FloatSpecials::ieee: return false;
    case FloatSpecials::nan_only:
    case FloatSpecials::fnuz: return options.overflow != Overflow::saturate;
    case FloatSpecials::finite: break;
  }
  return options.nan != NanMode::zero;
}

LaneId encode_float(LaneBuilder& builder, LaneId value, ElementType to,
                    const ConvertOptions& options) {
  const FloatFormat& format = info(to).format;
  const int bits = bits_of(to);
  const uint64_t sign_bit = uint64_t{1} << (bits - 1);
  const LaneId limit = builder.float_constant(LaneType::f32, magnitude_limit(to, options));
  const LaneId magnitude =
      builder.min_unsigned(builder.bit_and(value, dword(builder, f32_magnitude)), limit);
  const LaneId rounded = rounded_magnitude(builder, magnitude, format);
  const LaneId shifted = builder.shift_right(value, 32 - bits);
  LaneId codes = no_lane;
  LaneId sign = no_lane;
  if (format.specials == FloatSpecials::fnuz) {
    // The code of -0 is the NaN's: zero has no sign, and overflow carries into the sign's bit.
    const LaneId unsigned_codes = builder.bit_and(rounded, dword(builder, 0xff));
    sign = builder.bit_and(shifted, dword(builder, sign_bit));
    const LaneId is_zero = builder.equal(unsigned_codes, dword(builder, 0));
    codes = builder.select(is_zero, unsigned_codes, builder.bit_or(unsigned_codes, sign));
  } else {
    codes = builder.merge_bits(sign_bit - 1, rounded, shifted);
  }
  if (limit_gives_nans(to, options)) return codes;
  if (sign == no_lane) sign = builder.bit_and(shifted, dword(builder, sign_bit));
  return put_nans(builder, codes, value, sign, to, options);
}

/// How many units of the last place `encode_signed` adds to a significand, so that what its code is
/// above the format's has only bits that are no code's: an even number, for ties to stay what they
/// are.
uint64_t added_units(ElementType to) {
  const FloatFormat& format = info(to).format;
  const int shift = 23 - format.mantissa_bits;
  const uint64_t code = static_cast<uint64_t>(shift + 127 + 1 - format.bias)
                        << format.mantissa_bits;
  // fnuz: the code of overflow is one above those of numbers.
  const bool is_fnuz = format.specials == FloatSpecials::fnuz;
  const uint64_t codes = uint64_t{1} << (bits_of(to) - (is_fnuz ? 0 : 1));
  return -code & (codes - 1);
}

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

LaneId encode_power(LaneBuilder& builder, LaneId value, const ConvertOptions& options) {
  constexpr uint64_t min_normal = 0x00800000;
  const LaneId zero = dword(builder, 0);
  const LaneId nan = dword(builder, 255);
  // As integers, negative numbers are negative; both zeros and they become 0.
  LaneId bits = builder.max_signed(value, zero);
  const LaneId below_normal = builder.greater_signed(dword(builder, min_normal), bits);
  const LaneId shift =
      builder.zero_unless(below_normal, dword(builder, subnormal_shift(options.rounding)));
  bits = builder.sub(bits, shift);
  LaneId sum = builder.add(bits, dword(builder, rounding_addend(options.rounding)));
  if (options.rounding == Rounding::by_type) {
    sum = builder.add(sum, builder.bit_and(builder.shift_right(bits, 23), dword(builder, 1)));
  }
  const LaneId rounded = builder.shift_right(sum, 23);
  LaneId codes = builder.min_unsigned(rounded, dword(builder, 254));
  if (options.overflow == Overflow::nan) {
    const auto number = [&](double x) { return builder.float_constant(LaneType::f32, x); };
    const LaneId in_range =
        builder.mask_and(builder.compare(FloatPredicate::greater_equal, value, number(0x1p-127)),
                         builder.compare(FloatPredicate::less_equal, value, number(0x1p127)));
    return builder.select(in_range, codes, nan);
  }
  return builder.select(is_nan(builder, value), nan, codes);
}

}  // namespace

LaneId decode_small(LaneBuilder& builder, LaneId codes, ElementType type) {
  if (kind_of(type) == ElementKind::power_of_two) return decode_power(builder, codes);
  if (has_f32_table(type)) {
    return builder.look_up_i32(builder.extend_zero(codes, 32), f32_table(type));
  }
  const FloatFormat& format = info(type).format;
  const FloatFormat& f16 = info(ElementType::f16).format;
  if (format.exponent_bits < f16.exponent_bits) return decode_through_f16(builder, codes, type);
  return format.specials == FloatSpecials::ieee ? decode_upper_half(builder, codes)
                                                : decode_e5m2fnuz(builder, codes, format);
}

LaneId encode_small(LaneBuilder& builder, LaneId value, ElementType to,
                    const ConvertOptions& options) {
  if (to == ElementType::nf4) return encode_nf4(builder, value);
  if (to == ElementType::f8e8m0) return encode_power(builder, value, options);
  return encode_float(builder, value, to, options);
}

/// Adding the power of two of a number's exponent times 2^(23 - mantissa bits) leaves the
/// significand, rounded, in the sum's low bits, as rounded_magnitude does; here by one multiply-add
/// that keeps the sign: the power times its factor is exact. Only then is the magnitude cut off, so
/// that infinities and NaNs, which are quiet by now, take the limit as well. In the sum's bits the
/// lower half has the significand, and the upper half the sign and the exponent, of which a unit
/// counts 2^mantissa_bits codes: a product of i16 pairs joins them, and gives -32768 for the sign.
std::optional<LaneId> encode_signed(LaneBuilder& builder, LaneId value, ElementType to,
                                    const ConvertOptions& options) {
  const FloatFormat& format = info(to).format;
  const bool has_form = builder.target().has_avx512() && kind_of(to) == ElementKind::floating &&
                        format.specials != FloatSpecials::ieee && bits_of(to) <= 8;
  const bool has_own_nans = !limit_gives_nans(to, options);
  if (!has_form || (has_own_nans && format.specials == FloatSpecials::finite)) return std::nullopt;
  const auto number = [&](double x) { return builder.float_constant(LaneType::f32, x); };
  const int shift = 23 - format.mantissa_bits;
  const double factor =
      std::ldexp(1.0, shift) + std::ldexp(static_cast<double>(added_units(to)), shift - 23);
  const double limit = magnitude_limit(to, options);
  const double cut_off = limit + std::ldexp(factor, std::ilogb(limit));

  const LaneId normal = builder.magnitude_from(value, number(std::ldexp(1.0, 1 - format.bias)));
  const LaneId power = builder.bit_and(normal, dword(builder, f32_sign | f32_infinity));
  const LaneId sum = builder.float_sub_product(value, power, number(-factor));
  const LaneId rounded = builder.magnitude_to(sum, number(cut_off));
  const int first_bit = 7 - format.mantissa_bits;
  const LaneId codes =
      builder.dot_i16_pairs(rounded, dword(builder, uint64_t{1} << 16 | uint64_t{1} << first_bit));
  if (!has_own_nans) return codes;
  // The NaN's code is the one after that of the largest number.
  const LaneId nans = builder.add(codes, dword(builder, uint64_t{1} << first_bit));
  return builder.select(is_nan(builder, value), nans, codes);
}

/// The power of two is added by one multiply-add here too, but to the magnitude, which is cut off
/// before. The sum's lower half is a negative i16, the significand less what the code of the least
/// normal exponent would be without it, so that the product of i16 pairs is the code alone.
std::optional<LaneId> encode_magnitude(LaneBuilder& builder, LaneId value, ElementType to,
                                       const ConvertOptions& options, bool may_be_nan) {
  const FloatFormat& format = info(to).format;
  const bool has_form = !builder.target().has_avx512() && kind_of(to) == ElementKind::floating &&
                        format.specials != FloatSpecials::ieee;
  const bool has_own_nans = may_be_nan && !limit_gives_nans(to, options);
  if (!has_form || (has_own_nans && format.specials == FloatSpecials::finite)) return std::nullopt;
  const auto number = [&](double x) { return builder.float_constant(LaneType::f32, x); };
  constexpr int first_bit = 8;
  const int mantissa_bits = format.mantissa_bits;
  const int shift = 23 - mantissa_bits;
  const int code_of_least = (shift + 127 + 1 - format.bias) << mantissa_bits;
  const double factor = std::ldexp(1.0, shift) + std::ldexp(0x10000 - code_of_least, shift - 23);

  const LaneId magnitude = builder.min_unsigned(
      builder.bit_and(value, dword(builder, f32_magnitude)), number(magnitude_limit(to, options)));
  // Integers, which alone are known to be numbers, are normal, or zero: then so are power and sum.
  const LaneId normal =
      may_be_nan ? builder.max_unsigned(magnitude, number(std::ldexp(1.0, 1 - format.bias)))
                 : magnitude;
  const LaneId power = builder.bit_and(normal, dword(builder, f32_infinity));
  const LaneId sum = builder.float_sub_product(magnitude, power, number(-factor));
  const uint64_t of_exponent = uint64_t{1} << (first_bit - 7 + mantissa_bits);
  const LaneId codes =
      builder.dot_i16_pairs(sum, dword(builder, of_exponent << 16 | uint64_t{1} << first_bit));
  if (!has_own_nans) return codes;
  // The NaN's code is the one after that of the largest number.
  const LaneId one = dword(builder, uint64_t{1} << first_bit);
  return builder.add(codes, builder.zero_unless(is_nan(builder, value), one));
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
  const LaneId carried = builder.add(value, dword(builder, folded_bit - 1));
  const LaneId folded = builder.bit_or(value, builder.bit_and(carried, dword(builder, folded_bit)));
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
