// SPDX-License-Identifier: Apache-2.0
// ir/README.md, Element types: which number a code is.
#include <bit>
#include <vector>

#include "ir/types/nf4.hpp"
#include "tools/prove/spec/number.hpp"

namespace castor::prove {
namespace {

Term exponent_of(const Term& any, int value) {
  return any.terms().constant(exponent_width, static_cast<Bits>(static_cast<int64_t>(value)));
}

ExactNumber finite(const Term& negative, const Term& significand, const Term& exponent) {
  const Term no = negative.terms().truth(false);
  return {.is_nan = no,
          .is_infinite = no,
          .negative = negative,
          .significand = significand,
          .exponent = exponent,
          .payload = no};
}

ExactNumber of_integer(ElementType type, const Term& bits) {
  const Term no = bits.terms().truth(false);
  if (is_boolean(type)) return finite(no, not_equal(bits, like(bits, 0)), exponent_of(bits, 0));
  if (!is_signed_integer(type)) return finite(no, bits, exponent_of(bits, 0));
  const Term negative = bit(bits, bits.width() - 1);
  return finite(negative, if_then_else(negative, -bits, bits), exponent_of(bits, 0));
}

/// f8e8m0: powers of two; the largest code is NaN.
ExactNumber of_power(const Term& code) {
  const int bias = info(ElementType::f8e8m0).format.bias;
  const Term exponent = extend_zero(code, exponent_width) - static_cast<Bits>(bias);
  ExactNumber number = finite(code.terms().truth(false), code.terms().truth(true), exponent);
  number.is_nan = equal(code, 0xff);
  return number;
}

ExactNumber of_float(ElementType type, const Term& bits) {
  const castor::FloatFormat& format = info(type).format;
  const int mantissa = format.mantissa_bits;
  const Term field = extract(bits, mantissa, format.exponent_bits);
  const Term fraction = extract(bits, 0, mantissa);
  const Term is_normal = not_equal(field, like(field, 0));
  const Term wide_field = extend_zero(field, exponent_width);
  const Term effective = if_then_else(is_normal, wide_field, like(wide_field, 1));
  ExactNumber number = finite(bit(bits, bits.width() - 1), concat(is_normal, fraction),
                              effective - static_cast<Bits>(format.bias + mantissa));
  number.min_normal = 1 - format.bias;
  const Term ones = equal(field, ~Bits{0});
  const Term no_fraction = equal(fraction, 0);
  switch (format.specials) {
    case FloatSpecials::ieee:
      number.is_nan = ones & ~no_fraction;
      number.is_infinite = ones & no_fraction;
      number.payload = fraction;
      break;
    case FloatSpecials::nan_only: number.is_nan = ones & equal(fraction, ~Bits{0}); break;
    case FloatSpecials::fnuz: number.is_nan = equal(bits, sign_bit(bits.width())); break;
    case FloatSpecials::finite: break;
  }
  return number;
}

}  // namespace

Term nf4_value(const Term& code) {
  std::vector<uint64_t> values;
  for (const float value : nf4_values) values.push_back(std::bit_cast<uint32_t>(value));
  return code.terms().table(values, 32, code);
}

ExactNumber decoded(ElementType type, const Term& bits) {
  switch (kind_of(type)) {
    case ElementKind::boolean:
    case ElementKind::unsigned_integer:
    case ElementKind::signed_integer: return of_integer(type, bits);
    case ElementKind::power_of_two: return of_power(bits);
    case ElementKind::codebook: return of_float(ElementType::f32, nf4_value(bits));
    case ElementKind::floating: break;
  }
  return of_float(type, bits);
}

Term first_exponent(const ExactNumber& number) {
  const Term zeros = leading_zeros(resize_zero(number.significand, 64));
  return number.exponent + 63 - extend_zero(truncate(zeros, 7), exponent_width);
}

}  // namespace castor::prove
