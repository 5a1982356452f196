// SPDX-License-Identifier: Apache-2.0
// Encoding: one rounding of an exact number, then the range rules of the conversion table.
#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdlib>

#include "ir/numerics/compare.hpp"
#include "ir/numerics/format.hpp"
#include "ir/numerics/round.hpp"
#include "ir/numerics/unpacked.hpp"
#include "ir/types/nf4.hpp"

namespace castor::numerics {

namespace {

/// An integer as sign and magnitude; `huge` if the magnitude is 2^64 or more.
struct RoundedInteger {
  bool negative = false;
  bool huge = false;
  uint64_t magnitude = 0;
};

RoundedInteger round_to_integer(const Unpacked& number, Rounding rounding) {
  const RoundedInteger huge = {.negative = number.negative, .huge = true};
  // 1. Infinity, and 2^64 and above, have no bits below the point that could matter.
  if (number.kind == NumberClass::infinity || number.exponent > 63) return huge;
  // 2. The significand stands for 1.f * 2^exponent: its lowest 63 - exponent bits are fraction.
  const Cut cut = cut_low_bits(number, 63 - number.exponent);
  // 3. Round once (ir/README.md, Convert, float to integer).
  if (!rounds_away_from_zero(rounding, number.negative, cut)) {
    return {.negative = number.negative, .magnitude = cut.kept};
  }
  return {.negative = number.negative, .magnitude = cut.kept + 1};  // a cut leaves 63 bits
}

/// Two's complement, modulo 2^N.
uint64_t wrap(const RoundedInteger& value, ElementType to) {
  const uint64_t word = value.negative ? 0 - value.magnitude : value.magnitude;
  return word & low_bits(bits_of(to));
}

/// The largest magnitude that `type` holds with this sign.
uint64_t magnitude_limit(ElementType type, bool negative) {
  if (!negative) return integer_max(type);
  return is_signed_integer(type) ? integer_max(type) + 1 : 0;
}

uint64_t saturate(const RoundedInteger& value, ElementType to) {
  const uint64_t limit = magnitude_limit(to, value.negative);
  const uint64_t magnitude = value.huge ? limit : std::min(value.magnitude, limit);
  return wrap({.negative = value.negative, .magnitude = magnitude}, to);
}

bool fits(const RoundedInteger& value, ElementType type) {
  return !value.huge && value.magnitude <= magnitude_limit(type, value.negative);
}

// ir/README.md, Convert, overflow = wrap: the low N bits where the rounded value fits i64 (or u64,
// if that is the destination), else 0.
uint64_t wrap_within_64_bits(const RoundedInteger& value, ElementType to) {
  const bool has_low_bits =
      fits(value, ElementType::i64) || (to == ElementType::u64 && fits(value, ElementType::u64));
  return has_low_bits ? wrap(value, to) : 0;
}

uint64_t encode_integer(const Unpacked& number, ElementType from, ElementType to,
                        const ConvertOptions& options) {
  // 1. NaN and zero give 0.
  if (number.kind == NumberClass::nan || number.kind == NumberClass::zero) return 0;
  // 2. Integers are exact and wrap unless told to saturate.
  const bool from_integer = is_whole(from);
  const bool saturates =
      options.overflow == Overflow::saturate || options.overflow == Overflow::saturate_finite;
  const bool by_type = options.rounding == Rounding::by_type;
  const Rounding rounding = by_type ? Rounding::toward_zero : options.rounding;
  const RoundedInteger value = round_to_integer(number, rounding);
  if (from_integer) {
    return saturates ? saturate(value, to) : wrap(value, to);
  }
  // 3. Floats saturate unless told to wrap; an infinity is huge and wraps to 0.
  return options.overflow == Overflow::wrap ? wrap_within_64_bits(value, to) : saturate(value, to);
}

// IEEE 754-2019, 6.2.3: quiet, with sign and payload kept as far as the destination has room;
// the payload is aligned left, so narrowing keeps its top bits (ir/README.md, Convert).
uint64_t nan_code(const Unpacked& number, const FloatFormat& format, NanMode mode) {
  const uint64_t sign = number.negative ? sign_bit(format) : 0;
  switch (format.specials) {
    case FloatSpecials::ieee: {
      const uint64_t payload = number.significand >> (63 - format.mantissa_bits);
      return sign | top_exponent(format) | quiet_bit(format) | payload;
    }
    case FloatSpecials::nan_only: return sign | (sign_bit(format) - 1);
    case FloatSpecials::fnuz: return sign_bit(format);
    case FloatSpecials::finite: break;
  }
  // No NaN: the largest of that sign, or, as ONNX has it, a zero of the other sign.
  if (mode == NanMode::zero) return sign ^ sign_bit(format);
  return sign | largest_finite(format);
}

// IEEE 754-2019, 7.4 a: to nearest, overflow gives infinity; without one NaN; with neither, and
// under saturate, the largest finite number. Under saturate_finite an infinity that the format has
// is no overflow.
uint64_t overflow_code(const Unpacked& number, const FloatFormat& format, Overflow overflow) {
  const uint64_t sign = number.negative ? sign_bit(format) : 0;
  const bool is_kept_infinity = overflow == Overflow::saturate_finite &&
                                number.kind == NumberClass::infinity &&
                                format.specials == FloatSpecials::ieee;
  const bool saturates = overflow == Overflow::saturate || overflow == Overflow::saturate_finite;
  if ((saturates && !is_kept_infinity) || format.specials == FloatSpecials::finite) {
    return sign | largest_finite(format);
  }
  if (format.specials == FloatSpecials::ieee) return sign | top_exponent(format);
  return nan_code({.kind = NumberClass::nan, .negative = number.negative}, format,
                  NanMode::by_type);
}

/// The number's magnitude rounded to nearest even as if the exponent range had no upper end: a
/// code above largest_finite means overflow (IEEE 754-2019, 7.4).
uint64_t rounded_code(const Unpacked& number, const FloatFormat& format) {
  // 1. The last place: mantissa_bits below the leading bit; for subnormals, below emin.
  const int exponent = std::max(number.exponent, smallest_exponent(format));
  const int cut_bits = 63 - format.mantissa_bits + (exponent - number.exponent);
  // 2. Round once.
  const Cut cut = cut_low_bits(number, cut_bits);
  const bool away = rounds_away_from_zero(Rounding::nearest_even, number.negative, cut);
  const uint64_t significand = cut.kept + (away ? 1 : 0);
  // 3. Pack by adding: the hidden bit of a normal number raises the exponent field from
  //    biased - 1 to biased, a subnormal number has none and stays at 0, and a carry out of the
  //    significand goes on into the exponent, where it belongs.
  const int exponent_field = exponent + format.bias - 1;
  return (static_cast<uint64_t>(exponent_field) << format.mantissa_bits) + significand;
}

uint64_t encode_float(const Unpacked& number, const FloatFormat& format,
                      const ConvertOptions& options) {
  const uint64_t sign = number.negative ? sign_bit(format) : 0;
  // 1. NaN.
  if (number.kind == NumberClass::nan) return nan_code(number, format, options.nan);
  // 2. Infinity, which saturate clamps too.
  if (number.kind == NumberClass::infinity) return overflow_code(number, format, options.overflow);
  // 3. Round; what comes out above the largest finite number overflows.
  const uint64_t code = number.kind == NumberClass::zero ? 0 : rounded_code(number, format);
  if (code > largest_finite(format)) return overflow_code(number, format, options.overflow);
  // 4. Zero keeps its sign where the format has -0; in fnuz that code is NaN.
  if (code == 0 && format.specials == FloatSpecials::fnuz) return 0;
  return sign | code;
}

/// Whether a finite number or an infinity is none of 2^-127 to 2^127 and the numbers between.
bool outside_powers_of_two(const Unpacked& number, const FloatFormat& format) {
  if (number.kind != NumberClass::finite || number.negative) return true;
  if (number.exponent != format.bias) return std::abs(number.exponent) > format.bias;
  return cut_low_bits(number, 63).tail != Tail::zero;
}

// ir/README.md, Convert, to f8e8m0.
uint64_t encode_power_of_two(const Unpacked& number, const FloatFormat& format,
                             const ConvertOptions& options) {
  const uint64_t nan = low_bits(format.exponent_bits);
  const uint64_t largest = nan - 1;
  // 1. NaN of either sign; under overflow = nan all that the format does not span.
  if (number.kind == NumberClass::nan) return nan;
  if (options.overflow == Overflow::nan && outside_powers_of_two(number, format)) return nan;
  // 2. The ends: zero, negative and tiny numbers; infinity and large ones.
  if (number.kind == NumberClass::zero || number.negative) return 0;
  if (number.kind == NumberClass::infinity || number.exponent >= format.bias) return largest;
  if (number.exponent < -format.bias) return 0;
  // 3. Between 2^e and 2^(e + 1) the fraction decides, at the arithmetic midpoint 1.5 * 2^e; ties
  //    go to the even code.
  const bool by_type = options.rounding == Rounding::by_type;
  const Rounding rounding = by_type ? Rounding::nearest_even : options.rounding;
  const auto code = static_cast<uint64_t>(number.exponent + format.bias);
  const Cut cut = {.kept = code, .tail = cut_low_bits(number, 63).tail};
  return code + (rounds_away_from_zero(rounding, false, cut) ? 1 : 0);
}

// ir/README.md, Convert, to nf4: the thresholds below the number are counted.
uint64_t encode_nf4(const Unpacked& number) {
  return static_cast<uint64_t>(
      std::count_if(nf4_thresholds.begin(), nf4_thresholds.end(), [&](float threshold) {
        return is_greater(number, decode(std::bit_cast<uint32_t>(threshold), ElementType::f32));
      }));
}

}  // namespace

uint64_t encode(const Unpacked& number, ElementType from, ElementType to,
                const ConvertOptions& options) {
  switch (kind_of(to)) {
    case ElementKind::boolean:  // nonzero -> 1, NaN -> 1
      return number.kind != NumberClass::zero;
    case ElementKind::unsigned_integer:
    case ElementKind::signed_integer: return encode_integer(number, from, to, options);
    case ElementKind::floating: return encode_float(number, info(to).format, options);
    case ElementKind::power_of_two: return encode_power_of_two(number, info(to).format, options);
    case ElementKind::codebook: return encode_nf4(number);
  }
  assert(!"every element type has a kind");
  return 0;
}

}  // namespace castor::numerics
