// SPDX-License-Identifier: Apache-2.0
// ir/README.md, Convert: rounding of exact numbers to float types.
#include <algorithm>
#include <bit>

#include "ir/types/nf4.hpp"
#include "tools/prove/spec/number.hpp"
#include "tools/prove/term/float_terms.hpp"

namespace castor::prove {
namespace {

Term exponent_of(const Term& any, int value) {
  return any.terms().constant(exponent_width, static_cast<Bits>(static_cast<int64_t>(value)));
}

/// Codes of a float type without the sign.
struct Codes {
  castor::FloatFormat format;
  int bits;  ///< that a magnitude has

  explicit Codes(ElementType type) : format(info(type).format), bits(bits_of(type) - 1) {}
  int min_normal() const { return 1 - format.bias; }
  int min_quantum() const { return min_normal() - format.mantissa_bits; }
  int max_quantum() const { return min_quantum() + (1 << format.exponent_bits) - 2; }
  Bits infinity() const { return low_mask(format.exponent_bits) << format.mantissa_bits; }
  Bits largest() const {
    switch (format.specials) {
      case FloatSpecials::ieee: return infinity() - 1;
      case FloatSpecials::nan_only: return low_mask(bits) - 1;
      case FloatSpecials::fnuz:
      case FloatSpecials::finite: break;
    }
    return low_mask(bits);
  }
};

/// The exponent of the first digit as far as rounding needs it: where the number is below the
/// type's normal numbers, anything that is.
Term first_exponent_for(const ExactNumber& number, const Codes& codes) {
  const bool is_float = number.min_normal != 0;
  if (!is_float || number.min_normal > codes.min_normal()) return first_exponent(number);
  return number.exponent + static_cast<Bits>(number.significand.width() - 1);
}

struct Magnitude {
  Term code;
  Term overflows;
};

/// The magnitude's code, rounded to nearest even; meaningless where it overflows.
Magnitude rounded_magnitude(const ExactNumber& number, const Codes& codes) {
  const int precision = codes.format.mantissa_bits + 1;
  const int width = std::max({number.significand.width(), precision, exponent_width}) + 2;
  const Term min_quantum = exponent_of(number.exponent, codes.min_quantum());
  const Term max_quantum = exponent_of(number.exponent, codes.max_quantum());
  const Term wanted = first_exponent_for(number, codes) - static_cast<Bits>(precision - 1);
  const Term is_large = less_signed(max_quantum, wanted);
  const Term quantum = if_then_else(is_large, max_quantum, max_signed(wanted, min_quantum));
  const Term shift = quantum - number.exponent;
  const Term is_left = less_signed(shift, 0);
  const auto count = [&](const Term& signed_count) {  // up to the width
    const Term limit = like(signed_count, static_cast<Bits>(width));
    return resize_zero(min_unsigned(signed_count, limit), width);
  };
  const Term significand = extend_zero(number.significand, width);
  const Shifted right = shifted_right(significand, count(shift));
  const Term rounded =
      right.floor +
      extend_zero(grows(right, number.negative, castor::Rounding::nearest_even), width);
  const Term units = if_then_else(is_left, shift_left(significand, count(-shift)), rounded);
  const int code_width = codes.bits + 1;
  const Term steps = resize_zero(quantum - min_quantum, std::max(code_width, exponent_width));
  const Term base = shift_left(steps, codes.format.mantissa_bits);
  const Term code = truncate(base + resize_zero(units, base.width()), code_width);
  const Term is_zero = equal(number.significand, 0);
  return {.code = if_then_else(is_zero, like(code, 0), code),
          .overflows = ~is_zero & (is_large | less_unsigned(like(code, codes.largest()), code))};
}

/// The type's NaN of that sign, quiet, with the upper bits of the payload.
Term nan_code(const ExactNumber& number, const Codes& codes, NanMode mode) {
  Terms& terms = number.negative.terms();
  const auto with_sign = [&](Bits magnitude) {
    return concat(number.negative, terms.constant(codes.bits, magnitude));
  };
  switch (codes.format.specials) {
    case FloatSpecials::nan_only: return with_sign(low_mask(codes.bits));
    case FloatSpecials::fnuz: return terms.constant(codes.bits + 1, sign_bit(codes.bits + 1));
    case FloatSpecials::finite:
      if (mode == NanMode::by_type) return with_sign(codes.largest());
      return concat(~number.negative, terms.constant(codes.bits, 0));  // +NaN -0, -NaN +0
    case FloatSpecials::ieee: break;
  }
  const int wanted = codes.format.mantissa_bits;
  const int given = number.payload.width();
  const Term payload = given >= wanted ? extract(number.payload, given - wanted, wanted)
                                       : concat(number.payload, terms.constant(wanted - given, 0));
  const Term fraction = payload | sign_bit(wanted);
  return concat(concat(number.negative, terms.constant(codes.format.exponent_bits, ~Bits{0})),
                fraction);
}

/// What a number beyond the largest finite one becomes, without options: infinity, or NaN where
/// there is none, or the largest where there is neither.
Term overflow_code(const ExactNumber& number, const Codes& codes) {
  Terms& terms = number.negative.terms();
  const auto with_sign = [&](Bits magnitude) {
    return concat(number.negative, terms.constant(codes.bits, magnitude));
  };
  switch (codes.format.specials) {
    case FloatSpecials::ieee: return with_sign(codes.infinity());
    case FloatSpecials::nan_only: return with_sign(low_mask(codes.bits));
    case FloatSpecials::fnuz: return terms.constant(codes.bits + 1, sign_bit(codes.bits + 1));
    case FloatSpecials::finite: break;
  }
  return with_sign(codes.largest());
}

}  // namespace

Shifted shifted_right(const Term& significand, const Term& count) {
  const Term one = like(significand, 1);
  const Term cut = significand & (shift_left(one, count) - 1);
  const Term half = shift_left(one, count - 1);
  const Term floor = shift_right(significand, count);
  return {.floor = floor,
          .odd = bit(floor, 0),
          .above_half = less_unsigned(half, cut) & not_equal(count, like(count, 0)),
          .half = equal(half, cut) & not_equal(count, like(count, 0)),
          .inexact = not_equal(cut, like(cut, 0))};
}

Term grows(const Shifted& shifted, const Term& negative, castor::Rounding rounding) {
  switch (rounding) {
    case castor::Rounding::nearest_even: return shifted.above_half | (shifted.half & shifted.odd);
    case castor::Rounding::nearest_away: return shifted.above_half | shifted.half;
    case castor::Rounding::down: return shifted.inexact & negative;
    case castor::Rounding::up: return shifted.inexact & ~negative;
    case castor::Rounding::half_up: return shifted.above_half | (shifted.half & ~negative);
    case castor::Rounding::by_type:
    case castor::Rounding::toward_zero: break;
  }
  return negative.terms().truth(false);
}

Term encoded(const ExactNumber& number, ElementType type, const ConvertOptions& options) {
  if (type == ElementType::f8e8m0) return power_code(number, options);
  if (type == ElementType::nf4) return nf4_code(number);
  const Codes codes(type);
  const Magnitude magnitude = rounded_magnitude(number, codes);
  const Term magnitude_code = truncate(magnitude.code, codes.bits);
  const bool has_one_zero = codes.format.specials == FloatSpecials::fnuz;
  const Term sign = has_one_zero
                        ? number.negative & not_equal(magnitude_code, like(magnitude_code, 0))
                        : number.negative;
  const Term largest = concat(number.negative, like(magnitude_code, codes.largest()));
  const Term beyond = overflow_code(number, codes);
  const bool clamps_finite =
      options.overflow == Overflow::saturate || options.overflow == Overflow::saturate_finite;
  const bool clamps_infinity =
      options.overflow == Overflow::saturate || (clamps_finite && !has_infinities(type));
  Term code = concat(sign, magnitude_code);
  code = if_then_else(magnitude.overflows, clamps_finite ? largest : beyond, code);
  code = if_then_else(number.is_infinite, clamps_infinity ? largest : beyond, code);
  return if_then_else(number.is_nan, nan_code(number, codes, options.nan), code);
}

RoundedMagnitude rounded_to_integer(const ExactNumber& number, castor::Rounding rounding,
                                    int width) {
  const int precision = number.significand.width();
  const int work = std::max({width, precision + 2, exponent_width + 2});
  const Term is_left = ~less_signed(number.exponent, 0);
  const Term shift = if_then_else(is_left, number.exponent, -number.exponent);
  const Term limit = like(shift, static_cast<Bits>(work));
  const Term count = resize_zero(min_unsigned(shift, limit), work);
  const Term significand = extend_zero(number.significand, work);
  const Shifted right = shifted_right(significand, count);
  const Term rounded = right.floor + extend_zero(grows(right, number.negative, rounding), work);
  // A left shift by `room` or less keeps all bits; one by more makes 2^width at least of a number
  // that is not zero, as its first digit is set where its exponent is positive, or it is 1.
  const int room = work - precision;
  const Term fits_left =
      less_signed(number.exponent, static_cast<Bits>(room + 1)) | equal(number.significand, 0);
  const Term magnitude = if_then_else(is_left, shift_left(significand, count), rounded);
  const Term fits =
      (~is_left | fits_left) & at_most_unsigned(magnitude, like(magnitude, low_mask(width)));
  return {truncate(magnitude, width), fits};
}

/// A number above threshold i and not above threshold i + 1 is code i + 1; NaN is code 0. Compared
/// as f64, which holds the numbers of floats; integers beyond its precision are beyond 1.
Term nf4_code(const ExactNumber& number) {
  const Term value = encoded(number, ElementType::f64, {});
  Term code = number.negative.terms().constant(4, 0);
  for (size_t i = 0; i < nf4_thresholds.size(); ++i) {
    const auto threshold = std::bit_cast<uint64_t>(double{nf4_thresholds[i]});
    const Term is_above = float_less(f64_format, like(value, threshold), value);
    code = if_then_else(is_above, like(code, i + 1), code);
  }
  return code;
}

/// The nearest power of two by the arithmetic midpoint 1.5 * 2^e.
Term power_code(const ExactNumber& number, const ConvertOptions& options) {
  Terms& terms = number.negative.terms();
  constexpr int bias = 127;
  const Term first = first_exponent(number);
  const int width = std::max(number.significand.width(), exponent_width) + 2;
  // The significand from its second digit on, in a field whose first bit is the half.
  const Term distance = first - number.exponent;
  const Term shift = resize_zero(like(distance, static_cast<Bits>(width)) - distance, width);
  const Term digits = shift_left(extend_zero(number.significand, width), shift);
  const Term half = like(digits, sign_bit(width));
  const Term is_power = equal(digits, 0);
  // Codes by the exponent of the power below, which is even where the code is.
  const Term even = ~bit(first + bias, 0);
  Term is_up;
  switch (options.rounding) {
    case castor::Rounding::up: is_up = ~is_power; break;
    case castor::Rounding::down: is_up = terms.truth(false); break;
    case castor::Rounding::half_up: is_up = ~less_unsigned(digits, half); break;
    default: is_up = less_unsigned(half, digits) | (equal(digits, half) & ~even); break;
  }
  const Term exponent = first + extend_zero(is_up, exponent_width);
  const auto power = [&](int e) { return exponent_of(exponent, e); };
  // The range is that of the powers: with overflow = nan, the number itself must be inside.
  const bool outside_is_nan = options.overflow == Overflow::nan;
  const Term& ranged = outside_is_nan ? first : exponent;
  const Term is_low = less_signed(ranged, power(-bias));
  const Term exceeds = equal(first, power(bias)) & ~is_power;
  Term is_high = less_signed(power(bias), ranged);
  if (outside_is_nan) is_high = is_high | exceeds;
  const Term none = number.negative | (equal(number.significand, 0) & ~number.is_infinite);
  const auto code = [&](int value) { return terms.constant(8, static_cast<Bits>(value)); };
  Term result = truncate(exponent + bias, 8);
  result = if_then_else(is_low, code(outside_is_nan ? 255 : 0), result);
  result = if_then_else(is_high | number.is_infinite, code(outside_is_nan ? 255 : 254), result);
  result = if_then_else(none, code(outside_is_nan ? 255 : 0), result);
  return if_then_else(number.is_nan, code(255), result);
}

}  // namespace castor::prove
