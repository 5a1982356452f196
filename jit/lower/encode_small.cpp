// SPDX-License-Identifier: Apache-2.0
// F32 to codes of at most eight bits, as lanes.
#include <cmath>

#include "jit/lower/convert.hpp"
#include "jit/lower/f32_lanes.hpp"
#include "jit/lower/nf4.hpp"
#include "jit/lower/small_float.hpp"

namespace castor::jit {

double magnitude_limit(ElementType to, const ConvertOptions& options) {
  const FloatFormat& format = info(to).format;
  const double largest = largest_finite(to);
  if (options.overflow == Overflow::saturate || format.specials == FloatSpecials::finite) {
    return largest;
  }
  return largest + std::ldexp(1.0, std::ilogb(largest) - format.mantissa_bits);
}

bool limit_gives_nans(ElementType to, const ConvertOptions& options) {
  switch (info(to).format.specials) {
    case FloatSpecials::ieee: return false;
    case FloatSpecials::nan_only:
    case FloatSpecials::fnuz: return options.overflow != Overflow::saturate;
    case FloatSpecials::finite: break;
  }
  return options.nan != NanMode::zero;
}

namespace {

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
      builder.max_unsigned(magnitude, i32_constant(builder, f32_power_of_two(1 - format.bias)));
  const LaneId exponent = builder.bit_and(normal, i32_constant(builder, f32_infinity));
  const LaneId sum =
      builder.float_add(magnitude, builder.add(exponent, i32_constant(builder, power)));
  return builder.add(sum, builder.shift_right(exponent, shift));
}

/// Puts the codes of NaNs where the format's magnitude limit does not give them.
LaneId put_nans(LaneBuilder& builder, LaneId codes, LaneId value, LaneId sign, ElementType to,
                const ConvertOptions& options) {
  const FloatFormat& format = info(to).format;
  const LaneId nan = nan_mask(builder, value);
  switch (format.specials) {
    case FloatSpecials::ieee: {
      // The infinity's code, the quiet bit, and the payload's top bits.
      const uint64_t mantissa = (uint64_t{1} << format.mantissa_bits) - 1;
      const uint64_t quiet = ((0xff << format.mantissa_bits) & 0x7f) | 2;
      const LaneId payload = builder.bit_and(builder.shift_right(value, 23 - format.mantissa_bits),
                                             i32_constant(builder, mantissa));
      return builder.select(
          nan, builder.bit_or(builder.bit_or(payload, i32_constant(builder, quiet)), sign), codes);
    }
    case FloatSpecials::nan_only:
      return builder.select(nan, builder.bit_or(sign, i32_constant(builder, 0x7f)), codes);
    case FloatSpecials::fnuz: return builder.select(nan, i32_constant(builder, 0x80), codes);
    case FloatSpecials::finite: break;
  }
  if (options.nan != NanMode::zero) return codes;
  const uint64_t sign_bit = uint64_t{1} << (bits_of(to) - 1);
  return builder.select(nan, builder.bit_xor(sign, i32_constant(builder, sign_bit)), codes);
}

LaneId encode_float(LaneBuilder& builder, LaneId value, ElementType to,
                    const ConvertOptions& options) {
  const FloatFormat& format = info(to).format;
  const int bits = bits_of(to);
  const uint64_t sign_bit = uint64_t{1} << (bits - 1);
  const LaneId limit = builder.float_constant(LaneType::f32, magnitude_limit(to, options));
  const LaneId magnitude =
      builder.min_unsigned(builder.bit_and(value, i32_constant(builder, f32_magnitude)), limit);
  const LaneId rounded = rounded_magnitude(builder, magnitude, format);
  const LaneId shifted = builder.shift_right(value, 32 - bits);
  LaneId codes = no_lane;
  LaneId sign = no_lane;
  if (format.specials == FloatSpecials::fnuz) {
    // The code of -0 is the NaN's: zero has no sign, and overflow carries into the sign's bit.
    const LaneId unsigned_codes = builder.bit_and(rounded, i32_constant(builder, 0xff));
    sign = builder.bit_and(shifted, i32_constant(builder, sign_bit));
    const LaneId is_zero = builder.equal(unsigned_codes, i32_constant(builder, 0));
    codes = builder.select(is_zero, unsigned_codes, builder.bit_or(unsigned_codes, sign));
  } else {
    codes = builder.merge_bits(sign_bit - 1, rounded, shifted);
  }
  if (limit_gives_nans(to, options)) return codes;
  if (sign == no_lane) sign = builder.bit_and(shifted, i32_constant(builder, sign_bit));
  return put_nans(builder, codes, value, sign, to, options);
}

}  // namespace

LaneId encode_small(LaneBuilder& builder, LaneId value, ElementType to,
                    const ConvertOptions& options) {
  if (to == ElementType::nf4) return encode_nf4(builder, value);
  if (to == ElementType::f8e8m0) return encode_power(builder, value, options);
  return encode_float(builder, value, to, options);
}

}  // namespace castor::jit
