// SPDX-License-Identifier: Apache-2.0
// Ops on floats: decode, operate exactly, round once.
#include "ir/numerics/float_ops.hpp"

#include "ir/numerics/arithmetic.hpp"
#include "ir/numerics/compare.hpp"
#include "ir/numerics/format.hpp"
#include "ir/numerics/unpacked.hpp"

namespace castor::numerics::float_ops {

namespace {

bool is_nan(const Unpacked& number) { return number.kind == NumberClass::nan; }
bool is_zero(const Unpacked& number) { return number.kind == NumberClass::zero; }

/// One rounding, and a quiet NaN, as by `convert` with default options.
uint64_t rounded(const Unpacked& number, ElementType type) {
  return encode(number, type, type, {});
}

/// NaN of the first NaN operand, or else the exact result, rounded.
template <class Exact>
uint64_t unary(uint64_t x, ElementType type, Exact exact) {
  const Unpacked number = decode(x, type);
  return rounded(is_nan(number) ? number : exact(number), type);
}

template <class Exact>
uint64_t binary(uint64_t a, uint64_t b, ElementType type, Exact exact) {
  const Unpacked first = decode(a, type);
  const Unpacked second = decode(b, type);
  if (is_nan(first)) return rounded(first, type);
  if (is_nan(second)) return rounded(second, type);
  return rounded(exact(first, second), type);
}

/// The order of min and max: that of the numbers, and -0 below +0.
bool is_below(const Unpacked& a, const Unpacked& b) {
  if (is_zero(a) && is_zero(b)) return a.negative && !b.negative;
  return is_greater(b, a);
}

uint64_t rounded_integral(uint64_t x, ElementType type, Rounding rounding) {
  return unary(x, type, [&](const Unpacked& number) { return integral(number, rounding); });
}

uint64_t sign_bit_of(ElementType type) { return sign_bit(info(type).format); }

/// Whether the code is 0 or NaN of an fnuz format: sign and magnitude do not apply.
bool has_no_sign(uint64_t bits, ElementType type) {
  return info(type).format.specials == FloatSpecials::fnuz && (bits & ~sign_bit_of(type)) == 0;
}

}  // namespace

uint64_t add(uint64_t a, uint64_t b, ElementType type) { return binary(a, b, type, sum); }

uint64_t sub(uint64_t a, uint64_t b, ElementType type) {
  return binary(a, b, type, [](const Unpacked& first, const Unpacked& second) {
    return sum(first, negated(second));
  });
}

uint64_t mul(uint64_t a, uint64_t b, ElementType type) { return binary(a, b, type, product); }

uint64_t div(uint64_t a, uint64_t b, ElementType type) { return binary(a, b, type, quotient); }

uint64_t floor_div(uint64_t a, uint64_t b, ElementType type) {
  return floor(div(a, b, type), type);
}

uint64_t mod(uint64_t a, uint64_t b, ElementType type) { return binary(a, b, type, remainder); }

uint64_t floor_mod(uint64_t a, uint64_t b, ElementType type) {
  return binary(a, b, type, [](const Unpacked& first, const Unpacked& second) {
    Unpacked modulus = remainder(first, second);
    if (is_nan(modulus)) return modulus;
    if (is_zero(modulus)) {
      modulus.negative = second.negative;
      return modulus;
    }
    // A remainder is exact in the type, so that this sum is rounded once too.
    return modulus.negative == second.negative ? modulus : sum(modulus, second);
  });
}

uint64_t min(uint64_t a, uint64_t b, ElementType type) {
  return binary(a, b, type, [](const Unpacked& first, const Unpacked& second) {
    return is_below(second, first) ? second : first;
  });
}

uint64_t max(uint64_t a, uint64_t b, ElementType type) {
  return binary(a, b, type, [](const Unpacked& first, const Unpacked& second) {
    return is_below(first, second) ? second : first;
  });
}

uint64_t squared_difference(uint64_t a, uint64_t b, ElementType type) {
  const uint64_t difference = sub(a, b, type);
  return mul(difference, difference, type);
}

uint64_t prelu(uint64_t x, uint64_t slope, ElementType type) {
  const Unpacked number = decode(x, type);
  if (is_nan(number) || is_zero(number) || !number.negative) return rounded(number, type);
  return mul(x, slope, type);
}

uint64_t abs(uint64_t x, ElementType type) {
  return has_no_sign(x, type) ? x : x & ~sign_bit_of(type);
}

uint64_t neg(uint64_t x, ElementType type) {
  return has_no_sign(x, type) ? x : x ^ sign_bit_of(type);
}

uint64_t sign(uint64_t x, ElementType type) {
  return unary(x, type, [](const Unpacked& number) -> Unpacked {
    if (is_zero(number)) return {.kind = NumberClass::zero};
    return {
        .kind = NumberClass::finite, .negative = number.negative, .significand = uint64_t{1} << 63};
  });
}

uint64_t relu(uint64_t x, ElementType type) { return max(x, 0, type); }

uint64_t sqrt(uint64_t x, ElementType type) { return unary(x, type, square_root); }

uint64_t floor(uint64_t x, ElementType type) { return rounded_integral(x, type, Rounding::down); }

uint64_t ceil(uint64_t x, ElementType type) { return rounded_integral(x, type, Rounding::up); }

uint64_t trunc(uint64_t x, ElementType type) {
  return rounded_integral(x, type, Rounding::toward_zero);
}

uint64_t round_even(uint64_t x, ElementType type) {
  return rounded_integral(x, type, Rounding::nearest_even);
}

}  // namespace castor::numerics::float_ops
