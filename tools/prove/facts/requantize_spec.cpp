// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/facts/requantize_spec.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "tools/prove/term/float_terms.hpp"
#include "tools/prove/term/soft_float.hpp"

namespace castor::prove {

using jit::RequantizeForm;
using jit::SliceParameters;

namespace {

constexpr int wide = 64;

int bits_of_container(ElementType element) { return castor::bits_of(element); }

/// Redundant sign bits of a number that is not negative, in a type of `bits` bits.
int norm(int64_t number, int bits) {
  return bits - 1 - static_cast<int>(std::bit_width(static_cast<uint64_t>(number)));
}

Term number(Terms& terms, int width, int64_t value) {
  const Bits bits = sign_extended(static_cast<uint64_t>(value), wide);
  return terms.constant(width, bits & low_mask(width));
}

/// Beyond these, values saturate or are below a quarter, whatever the difference and the scales.
constexpr int max_exponent = 48;
constexpr int min_exponent = -50;

/// y is between the bounds that T = 2 top + bottom gives with B = 2 bottom: y' B <= T < (y' + 1) B
/// says that y' = floor(top / bottom + 1/2); ties to even decide where T is a multiple of B.
Term is_rounded(const RequantizeForm& form, const Term& top, const Term& bottom, const Term& y,
                const Term& to_zero_point) {
  const int width = top.width();
  const Term t = top + top + bottom;
  const Term b = bottom + bottom;
  const Term above_zero = extend_sign(y, width) - to_zero_point;
  const Term low = above_zero * b;
  const Term high = low + b;
  Term from_below = at_most_signed(low, t);
  Term from_above = less_signed(t, high);
  if (!form.rounds_half_up()) {
    const Term even = ~bit(y, 0);
    from_below = less_signed(low, t) | (equal(low, t) & even);
    from_above = from_above | (equal(high, t) & even);
  }
  const int bits = y.width();
  const Term is_min = equal(y, sign_bit(bits));
  const Term is_max = equal(y, sign_bit(bits) - 1);
  return (from_below | is_min) & (from_above | is_max);
}

/// NaN gives the zero point; infinities saturate; other numbers are significand * 2^exponent.
Term is_exact_result_of_float(const RequantizeForm& form, const Term& x, const Term& y,
                              const SliceParameters& slice) {
  constexpr int width = 128;
  constexpr int least = -42;  // 2^24 * 2^-42 is below a quarter
  constexpr int most = 26;    // 2^23 * 2^26 / 2^15 is beyond 32 bits
  Terms& terms = x.terms();
  const Term field = extract(x, 23, 8);
  const Term is_subnormal = equal(field, 0);
  const Term fraction = extend_zero(extract(x, 0, 23), width);
  const Term significand = if_then_else(is_subnormal, fraction, fraction | (Bits{1} << 23));
  const Term exponent = extend_zero(if_then_else(is_subnormal, like(field, 1), field), 32) +
                        number(terms, 32, slice.to_frac - 150);
  const Term bounded =
      min_signed(max_signed(exponent, number(terms, 32, least)), number(terms, 32, most));
  const Term count = extend_zero(bounded - number(terms, 32, least), width);
  const Term magnitude = shift_left(significand, count);
  const Term top = if_then_else(bit(x, 31), -magnitude, magnitude);
  const Term bottom = shift_left(number(terms, width, slice.to_scale), -least);
  const Term finite = is_rounded(form, top, bottom, y, number(terms, width, slice.to_zero_point));
  const int bits = y.width();
  const Term end = if_then_else(bit(x, 31), like(y, sign_bit(bits)), like(y, sign_bit(bits) - 1));
  const Term zero = truncate(saturated(number(terms, wide, slice.to_zero_point), bits), bits);
  const Term other = if_then_else(is_nan(f32_format, x), equal(y, zero), equal(y, end));
  return if_then_else(equal(field, 255), other, finite);
}

/// (x - zp) s * 2^-n, which f64 holds, rounded once.
Term exact_float(const Term& x, const SliceParameters& slice) {
  Terms& terms = x.terms();
  const Term difference = extend_sign(x, wide) - number(terms, wide, slice.from_zero_point);
  const Term product = difference * number(terms, wide, slice.from_scale);
  const Term whole = signed_to_float(f64_format, Rounding::nearest_even, product);
  const auto power = static_cast<Bits>(1023 - slice.from_frac) << 52;
  const Term value =
      float_mul(f64_format, Rounding::nearest_even, whole, terms.constant(64, power));
  return float_convert(f64_format, f32_format, Rounding::nearest_even, value);
}

Term min_of(const Term& count, int64_t most) {
  return min_signed(count, number(count.terms(), wide, most));
}

/// norm32 of a term of 64 bits that a signed number of 32 bits is in.
Term norm32(const Term& d) {
  const Term low = truncate(d, 32);
  const Term positive = if_then_else(bit(low, 31), ~low, low);
  return extend_zero(leading_zeros(positive), wide) - 1;
}

/// Where a product is shifted before 32 bits of 64 are kept.
Term product_of_64_bits(const Term& d, const Term& scale, const Term& shift, bool half_up) {
  const Term u = norm32(d);
  const Term v = norm32(scale);
  const Term moved = shift_left(d, u);
  const Term kept = shift_right_signed(moved * shift_left(scale, v), 32);
  return library_shifted(kept, min_of(shift, 63) + v + u - 32, half_up);
}

Bits float_of(int32_t integer) {
  return soft::from_integer(f32_format, Rounding::nearest_even, 32, true,
                            static_cast<uint32_t>(integer));
}

/// number * 2^exponent rounded once: the number is a positive float with few bits.
uint32_t scaled(Bits f32, int exponent) {
  const Bits f64 = soft::convert(f32_format, f64_format, Rounding::nearest_even, f32);
  const auto power = static_cast<Bits>(1023 + exponent) << 52;
  const Bits product = soft::mul(f64_format, Rounding::nearest_even, f64, power);
  return static_cast<uint32_t>(
      soft::convert(f64_format, f32_format, Rounding::nearest_even, product));
}

}  // namespace

Term saturated(const Term& number, int bits) {
  const Term max = like(number, low_mask(bits - 1));
  return max_signed(min_signed(number, max), ~max);
}

// `up` adds half, and may saturate; `convergent` rounds to nearest, ties to even.
Term library_shifted(const Term& x, const Term& count, bool half_up) {
  constexpr int bits = 32;
  const Term one = like(x, 1);
  const Term left_count = -count;
  const Term end = if_then_else(less_signed(x, 0), -like(x, Bits{1} << 31), like(x, low_mask(31)));
  const Term far_left = if_then_else(equal(x, 0), x, end);
  const Term near_left = saturated(shift_left(x, left_count & 31), bits);
  const Term left = if_then_else(less_signed(like(x, bits - 1), left_count), far_left, near_left);
  const Term near = count & 31;  // where it is used, the count itself
  const Term half = shift_left(one, (near - 1) & 63);
  Term right;
  if (half_up) {
    right = shift_right_signed(saturated(x + half, bits), near);
  } else {
    const Term below = shift_right_signed(x, near);
    const Term fraction = x - shift_left(below, near);
    const Term up = less_unsigned(half, fraction) | (equal(fraction, half) & bit(below, 0));
    right = below + extend_zero(up, wide);
  }
  right = if_then_else(less_signed(like(x, bits - 1), count), like(x, 0), right);
  right = if_then_else(equal(count, 0), x, right);
  return if_then_else(less_signed(count, 0), left, right);
}

Term rounded_quotient(const Term& dividend, const Term& shift, bool half_up) {
  constexpr int width = 128;
  const Term all = extend_sign(dividend, width);
  const Term count = extend_sign(shift, width);
  const Term left = shift_left(all, min_signed(-count, like(count, 64)));
  const Term half = shift_left(like(all, 1), (count - 1) & 63);
  const Term below = shift_right_signed(all, count & 63);
  Term right = shift_right_signed(all + half, count & 63);
  if (!half_up) {
    const Term fraction = all - shift_left(below, count & 63);
    const Term up = less_unsigned(half, fraction) | (equal(fraction, half) & bit(below, 0));
    right = below + extend_zero(up, width);
  }
  const Term is_right = less_signed(like(count, 0), count);
  return truncate(saturated(if_then_else(is_right, right, left), 32), 64);
}

LibraryMultiplier library_multiplier(int32_t from_scale, int32_t to_scale, bool half_up) {
  const int p = norm(from_scale, 32) - norm(to_scale, 16);
  const int64_t q = (int64_t{from_scale} << p) / to_scale;
  const int t = 16 - norm(q, 32);
  int64_t scale = q;
  if (t < 0) scale = q << -t;
  if (t > 0) {
    const int64_t half = int64_t{1} << (t - 1);
    const int64_t below = q >> t;
    const int64_t fraction = q - (below << t);
    const bool up = fraction > half || (fraction == half && below % 2 != 0);
    scale = half_up ? (q + half) >> t : below + (up ? 1 : 0);
  }
  return {static_cast<int32_t>(std::min<int64_t>(scale, 32767)), p - t};
}

int exact_width(const RequantizeForm& form, int exponent) {
  const int e = std::clamp(exponent, min_exponent, max_exponent);
  const int difference = std::max(bits_of_container(form.from_element()), 16) + 1;
  const int result = std::max(bits_of_container(form.to_element()), 16) + 2;
  const int top = difference + 15 + std::max(e, 0) + 1;
  const int bottom = 15 + std::max(-e, 0) + 1;
  return std::max(top + 2, result + bottom + 1);
}

Term is_exact_result(const RequantizeForm& form, const Term& x, const Term& y,
                     const SliceTerms& slice, int width) {
  const int e = std::clamp(slice.exponent, min_exponent, max_exponent);
  const auto in = [width](const Term& a) {
    return a.width() < width ? extend_sign(a, width) : truncate(a, width);
  };
  const Term top = (in(x)-in(slice.from_zero_point)) * in(slice.from_scale);
  return is_rounded(form, shift_left(top, std::max(e, 0)),
                    shift_left(in(slice.to_scale), std::max(-e, 0)), y, in(slice.to_zero_point));
}

Term library_product(const RequantizeForm& form, const Term& d, const Term& scale,
                     const Term& shift) {
  const bool half_up = form.rounds_half_up();
  if (form.has_32_bits()) return product_of_64_bits(d, scale, shift, half_up);
  return library_shifted(d * scale, min_of(shift, 31), half_up);
}

Term library_result(const RequantizeForm& form, const Term& x, const Term& scale, const Term& shift,
                    const Term& from_zero_point, const Term& to_zero_point) {
  const Term d = saturated(extend_sign(x, wide) - from_zero_point, form.has_32_bits() ? 32 : 16);
  const Term sum = saturated(library_product(form, d, scale, shift) + to_zero_point, 32);
  const int bits = bits_of_container(form.to_element());
  return truncate(saturated(sum, bits), bits);
}

Term library_from_float(const RequantizeForm& form, const Term& x, const Term& factor,
                        const Term& to_zero_point) {
  constexpr FloatFormat f = f32_format;
  constexpr Rounding nearest = Rounding::nearest_even;
  const Term is_positive = ~bit(x, 31) & not_equal(x, like(x, 0));
  const Term half = if_then_else(is_positive, like(x, 0x3f000000), like(x, 0xbf000000));
  const Term sum = float_add(f, nearest, float_mul(f, nearest, x, factor), half);
  const Term whole = float_to_signed(f, Rounding::toward_zero, 32, sum);
  const Term is_above = float_at_most(f, like(x, 0x4f000000), sum);
  Term value = if_then_else(is_above, like(x, low_mask(31)), whole);
  value = if_then_else(is_nan(f, sum), like(x, 0), value);
  const Term result = saturated(extend_sign(value, wide) + to_zero_point, 32);
  const int bits = bits_of_container(form.to_element());
  return truncate(saturated(result, bits), bits);
}

Term library_to_float(const Term& x, const Term& factor, const Term& from_zero_point) {
  const Term difference = saturated(extend_sign(x, wide) - from_zero_point, 32);
  const Term value = signed_to_float(f32_format, Rounding::nearest_even, truncate(difference, 32));
  return x86::mul(f32_format, Rounding::nearest_even, value, factor);
}

uint32_t library_factor_from_float(int32_t to_scale, int32_t to_frac) {
  const Bits one = float_of(1);
  return scaled(soft::div(f32_format, Rounding::nearest_even, one, float_of(to_scale)), to_frac);
}

uint32_t library_factor_to_float(int32_t from_scale, int32_t from_frac) {
  return scaled(float_of(from_scale), -from_frac);
}

Term is_specified_result(const RequantizeForm& form, const Term& x, const Term& y,
                         const SliceParameters& slice) {
  Terms& terms = x.terms();
  const auto constant = [&](int64_t value) { return number(terms, wide, value); };
  if (form.is_exact()) {
    if (!form.from) return is_exact_result_of_float(form, x, y, slice);
    if (!form.to) return equal(y, exact_float(x, slice));
    const int exponent = slice.to_frac - slice.from_frac;
    return is_exact_result(form, x, y,
                           {.from_scale = constant(slice.from_scale),
                            .from_zero_point = constant(slice.from_zero_point),
                            .to_scale = constant(slice.to_scale),
                            .to_zero_point = constant(slice.to_zero_point),
                            .exponent = exponent},
                           exact_width(form, exponent));
  }
  if (!form.from) {
    const uint32_t factor = library_factor_from_float(slice.to_scale, slice.to_frac);
    return equal(
        y, library_from_float(form, x, terms.constant(32, factor), constant(slice.to_zero_point)));
  }
  if (!form.to) {
    const uint32_t factor = library_factor_to_float(slice.from_scale, slice.from_frac);
    return equal(y,
                 library_to_float(x, terms.constant(32, factor), constant(slice.from_zero_point)));
  }
  const auto [scale, shift] =
      library_multiplier(slice.from_scale, slice.to_scale, form.rounds_half_up());
  const int whole_shift = shift + slice.from_frac - slice.to_frac;
  return equal(y, library_result(form, x, constant(scale), constant(whole_shift),
                                 constant(slice.from_zero_point), constant(slice.to_zero_point)));
}

}  // namespace castor::prove
