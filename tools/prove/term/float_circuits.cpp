// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/term/float_circuits.hpp"

#include <algorithm>
#include <array>

#include "tools/prove/term/float_terms.hpp"

namespace castor::prove {
namespace {

/// Exponents are signed numbers of that many bits.
constexpr int exponent_width = 16;

Term exponent_of(const Term& any, int value) {
  return any.terms().constant(exponent_width, static_cast<Bits>(static_cast<int64_t>(value)));
}

/// (-1)^negative * significand * 2^exponent, unless it is a NaN or infinite.
struct Parts {
  Term is_nan, is_infinite, negative;  ///< width 1
  Term significand;                    ///< as wide as the format's precision
  Term exponent;                       ///< that the significand's last bit has
};

Parts parts_of(FloatFormat format, const Term& a) {
  const int fraction_bits = format.fraction_bits();
  const Term fraction = extract(a, 0, fraction_bits);
  const Term field = extract(a, fraction_bits, format.exponent_bits);
  const Term is_normal = not_equal(field, like(field, 0));
  const Term wide = extend_zero(field, exponent_width);
  const Term effective = if_then_else(is_normal, wide, like(wide, 1));
  const Term is_special = equal(field, ~Bits{0});
  const Term has_fraction = not_equal(fraction, like(fraction, 0));
  return {.is_nan = is_special & has_fraction,
          .is_infinite = is_special & ~has_fraction,
          .negative = bit(a, format.width() - 1),
          .significand = concat(is_normal, fraction),
          .exponent = effective + static_cast<Bits>(format.min_quantum() - 1)};
}

/// A signed count as an unsigned one of `width` bits, at most `limit`; meaningless of negative
/// ones.
Term bounded_count(const Term& count, int limit, int width) {
  const Term most = like(count, static_cast<Bits>(limit));
  return resize_zero(min_unsigned(count, most), width);
}

/// significand / 2^count, rounded; the count is unsigned and less than 2^width - 1.
Term shifted_and_rounded(const Term& significand, const Term& count, Rounding rounding,
                         const Term& negative) {
  const Term kept = shift_right(significand, count);
  const Term cut = significand & (shift_left(like(count, 1), count) - 1);
  const Term inexact = not_equal(cut, like(cut, 0));
  const Term half = shift_left(like(cut, 1), count - 1);  // 0 where the count is 0
  Term grows = negative.terms().truth(false);
  switch (rounding) {
    case Rounding::nearest_even:
      grows = inexact & (less_unsigned(half, cut) | (equal(half, cut) & bit(kept, 0)));
      break;
    case Rounding::nearest_away: grows = inexact & ~less_unsigned(cut, half); break;
    case Rounding::down: grows = negative & inexact; break;
    case Rounding::up: grows = ~negative & inexact; break;
    case Rounding::toward_zero: break;
  }
  return kept + extend_zero(grows, kept.width());
}

Term with_sign(const Term& negative, const Term& magnitude) { return concat(negative, magnitude); }

/// The magnitude of a result that is too large.
Term overflowed(FloatFormat format, Rounding rounding, const Term& negative) {
  Terms& terms = negative.terms();
  const Term infinity = terms.constant(format.width() - 1, format.infinity());
  const Term largest = like(infinity, format.max_finite());
  switch (rounding) {
    case Rounding::nearest_even:
    case Rounding::nearest_away: return infinity;
    case Rounding::up: return if_then_else(negative, largest, infinity);
    case Rounding::down: return if_then_else(negative, infinity, largest);
    case Rounding::toward_zero: break;
  }
  return largest;
}

/// A finite number rounded to the format. The significand has any width; where its last bit stands
/// for lower ones as well, it has two bits more than the format at least.
Term packed(FloatFormat format, Rounding rounding, const Term& negative, const Term& significand,
            const Term& exponent) {
  const int given = significand.width();
  const int work = std::max({given, format.width(), exponent_width}) + 2;
  const Term zeros = resize_zero(leading_zeros(extend_zero(significand, work)), exponent_width);
  const Term first = exponent + static_cast<Bits>(work - 1) - zeros;
  const Term wanted = first - static_cast<Bits>(format.fraction_bits());
  const Term least = exponent_of(exponent, format.min_quantum());
  const Term quantum = max_signed(wanted, least);
  const Term shift = quantum - exponent;
  const Term wide = extend_zero(significand, work);
  const Term right =
      shifted_and_rounded(wide, bounded_count(shift, work, work), rounding, negative);
  const Term left = shift_left(wide, bounded_count(-shift, work, work));
  const Term units = if_then_else(less_signed(shift, 0), left, right);
  const Term steps = extend_zero(quantum - least, work);
  const Term code = shift_left(steps, format.fraction_bits()) + units;
  const Term too_large = less_signed(exponent_of(exponent, format.max_quantum()), quantum) |
                         ~less_unsigned(code, like(code, format.infinity()));
  const int bits = format.width() - 1;
  Term magnitude =
      if_then_else(too_large, overflowed(format, rounding, negative), truncate(code, bits));
  const Term is_zero = equal(significand, 0);
  magnitude = if_then_else(is_zero, like(magnitude, 0), magnitude);
  return with_sign(negative, magnitude);
}

/// `number` unless one of the conditions holds.
Term with_specials(FloatFormat format, const Term& is_nan, const Term& is_infinite,
                   const Term& negative, const Term& number) {
  const Term infinity =
      with_sign(negative, number.terms().constant(format.width() - 1, format.infinity()));
  const Term result = if_then_else(is_infinite, infinity, number);
  return if_then_else(is_nan, like(result, format.nan()), result);
}

Term converted(const FloatDetail& detail, const Term& a) {
  const Parts x = parts_of(detail.from, a);
  const Term number = packed(detail.format, detail.rounding, x.negative, x.significand, x.exponent);
  return with_specials(detail.format, x.is_nan, x.is_infinite, x.negative, number);
}

/// The bits of a magnitude, whose exponent's carry from the significand is the next exponent.
Term rounded(const FloatDetail& detail, const Term& a) {
  const FloatFormat format = detail.format;
  const Parts x = parts_of(format, a);
  const Term magnitude = truncate(a, format.width() - 1);
  const int bits = magnitude.width();
  const Term field =
      extend_zero(extract(a, format.fraction_bits(), format.exponent_bits), exponent_width);
  const auto bias = static_cast<Bits>(format.bias());
  const auto last = static_cast<Bits>(format.bias() + format.fraction_bits());
  const Term below_one = less_unsigned(field, bias);
  const Term is_integral = ~less_unsigned(field, last);
  // Between: 1 to fraction_bits bits are cut off. The last bit kept of a number from 1 to 2 is the
  // exponent's last, which is set as the significand's first is: the bias is odd.
  const Term count =
      if_then_else(below_one | is_integral, like(field, 1), like(field, last) - field);
  const Term cut = resize_zero(count, std::max(bits, exponent_width));
  const Term wide = extend_zero(magnitude, cut.width());
  const Term units = shifted_and_rounded(wide, cut, detail.rounding, x.negative);
  const Term between = truncate(shift_left(units, cut), bits);
  // Below one: a half is 2^-1, whose field is bias - 1.
  const Term one = like(magnitude, bias << format.fraction_bits());
  const Bits half = (bias - 1) << format.fraction_bits();
  Term grows = field.terms().truth(false);
  const Term is_zero = equal(magnitude, 0);
  switch (detail.rounding) {
    case Rounding::nearest_even: grows = less_unsigned(like(magnitude, half), magnitude); break;
    case Rounding::nearest_away: grows = ~less_unsigned(magnitude, half); break;
    case Rounding::down: grows = x.negative & ~is_zero; break;
    case Rounding::up: grows = ~x.negative & ~is_zero; break;
    case Rounding::toward_zero: break;
  }
  const Term small = if_then_else(grows, one, like(one, 0));
  Term result = if_then_else(below_one, small, if_then_else(is_integral, magnitude, between));
  result = with_sign(x.negative, result);
  return if_then_else(x.is_nan, like(result, format.nan()), result);
}

Term to_integer(const FloatDetail& detail, int width, bool is_signed, const Term& a) {
  const Parts x = parts_of(detail.format, a);
  const int precision = detail.format.precision;
  const int work = std::max({width, precision, exponent_width}) + 2;
  const Term significand = extend_zero(x.significand, work);
  const Term is_left = ~less_signed(x.exponent, 0);
  const Term right = shifted_and_rounded(significand, bounded_count(-x.exponent, work, work),
                                         detail.rounding, x.negative);
  const int room = work - precision;  // shifts to the left that lose nothing
  const Term left = shift_left(significand, bounded_count(x.exponent, room, work));
  const Term magnitude = if_then_else(is_left, left, right);
  const Term fits = ~is_left | less_signed(x.exponent, static_cast<Bits>(room + 1));
  const auto limit = [&](Bits value) { return like(magnitude, value); };
  const Term most =
      is_signed ? if_then_else(x.negative, limit(sign_bit(width)), limit(sign_bit(width) - 1))
                : if_then_else(x.negative, limit(0), limit(low_mask(width)));
  const Term inside = fits & at_most_unsigned(magnitude, most) & ~x.is_nan & ~x.is_infinite;
  const Term value = truncate(if_then_else(x.negative, -magnitude, magnitude), width);
  return if_then_else(inside, value, like(value, is_signed ? sign_bit(width) : low_mask(width)));
}

Term from_integer(const FloatDetail& detail, bool is_signed, const Term& a) {
  const Term negative = is_signed ? bit(a, a.width() - 1) : a.terms().truth(false);
  const Term magnitude = if_then_else(negative, -a, a);
  return packed(detail.format, detail.rounding, negative, magnitude, exponent_of(a, 0));
}

}  // namespace

Term written_out(const Node& node, std::span<const Term> v) {
  if (node.op < TermOp::float_add) return {};
  const FloatDetail detail = FloatDetail::unpacked(node.detail);
  switch (node.op) {
    case TermOp::float_round: return rounded(detail, v[0]);
    case TermOp::float_convert: return converted(detail, v[0]);
    case TermOp::float_to_signed: return to_integer(detail, node.width, true, v[0]);
    case TermOp::float_to_unsigned: return to_integer(detail, node.width, false, v[0]);
    case TermOp::signed_to_float: return from_integer(detail, true, v[0]);
    case TermOp::unsigned_to_float: return from_integer(detail, false, v[0]);
    default: return {};
  }
}

}  // namespace castor::prove
