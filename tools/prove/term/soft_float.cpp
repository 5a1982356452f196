// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/term/soft_float.hpp"

#include <algorithm>

namespace castor::prove::soft {
namespace {

enum class Class : uint8_t { zero, finite, infinite, nan };

/// significand * 2^exponent; `sticky` stands for a nonzero part below the significand's last bit.
struct Number {
  Class type = Class::zero;
  bool negative = false;
  Bits significand = 0;
  int exponent = 0;
  bool sticky = false;
};

Number unpack(FloatFormat format, Bits bits) {
  Number number;
  number.negative = (bits & format.sign()) != 0;
  const Bits magnitude = bits & ~format.sign();
  if (magnitude >= format.infinity()) {
    number.type = magnitude == format.infinity() ? Class::infinite : Class::nan;
    return number;
  }
  if (magnitude == 0) return number;
  number.type = Class::finite;
  const int field = static_cast<int>(magnitude >> format.fraction_bits());
  number.significand = magnitude & low_mask(format.fraction_bits());
  if (field != 0) number.significand |= Bits{1} << format.fraction_bits();
  number.exponent = format.min_quantum() + std::max(field, 1) - 1;
  return number;
}

/// Moves the significand's highest bit to bit `top`; only upward.
void normalise(Number& number, int top) {
  const int shift = top + 1 - bit_length(number.significand);
  number.significand <<= shift;
  number.exponent -= shift;
}

/// Whether the magnitude grows by one unit. `half` compares what is cut off with half a unit.
bool rounds_up(Rounding rounding, bool negative, bool odd, int half, bool inexact) {
  switch (rounding) {
    case Rounding::nearest_even: return half > 0 || (half == 0 && odd);
    case Rounding::nearest_away: return half >= 0;
    case Rounding::down: return negative && inexact;
    case Rounding::up: return !negative && inexact;
    case Rounding::toward_zero: return false;
  }
  return false;
}

/// The significand in units of 2^(exponent + shift), rounded; shift > 0.
Bits shifted_and_rounded(const Number& number, int shift, Rounding rounding) {
  const bool gone = shift > max_width;
  const Bits kept = shift >= max_width ? 0 : number.significand >> shift;
  const Bits cut = shift >= max_width ? number.significand : number.significand & low_mask(shift);
  const Bits half_unit = gone ? 0 : Bits{1} << (shift - 1);
  int half = cut < half_unit ? -1 : cut > half_unit || number.sticky ? 1 : 0;
  if (gone) half = -1;
  const bool inexact = cut != 0 || number.sticky;
  return kept + (rounds_up(rounding, number.negative, (kept & 1) != 0, half, inexact) ? 1 : 0);
}

Bits overflowed(FloatFormat format, Rounding rounding, bool negative) {
  const bool to_infinity =
      rounding == Rounding::nearest_even || rounding == Rounding::nearest_away ||
      (rounding == Rounding::up && !negative) || (rounding == Rounding::down && negative);
  return (negative ? format.sign() : 0) | (to_infinity ? format.infinity() : format.max_finite());
}

Bits pack(FloatFormat format, Rounding rounding, const Number& number) {
  const Bits sign = number.negative ? format.sign() : 0;
  if (number.type == Class::nan) return format.nan();
  if (number.type == Class::infinite) return sign | format.infinity();
  if (number.type == Class::zero) return sign;
  int quantum = std::max(number.exponent + bit_length(number.significand) - format.precision,
                         format.min_quantum());
  const int shift = quantum - number.exponent;
  Bits significand =
      shift > 0 ? shifted_and_rounded(number, shift, rounding) : number.significand << -shift;
  if (bit_length(significand) > format.precision) {
    significand >>= 1;
    ++quantum;
  }
  if (quantum > format.max_quantum()) return overflowed(format, rounding, number.negative);
  const Bits steps = static_cast<Bits>(quantum - format.min_quantum());
  return sign | ((steps << format.fraction_bits()) + significand);
}

Number not_a_number() { return {.type = Class::nan}; }

/// The exact sum of two numbers that are finite and not 0, but for `sticky`; zero where they
/// cancel.
Number finite_sum(Number a, Number b, Rounding rounding) {
  constexpr int top = 124;  // a carry and the sign of a difference stay inside
  normalise(a, top);
  normalise(b, top);
  if (a.exponent < b.exponent) std::swap(a, b);
  const int shift = a.exponent - b.exponent;
  const Bits cut = shift >= max_width ? b.significand : b.significand & low_mask(shift);
  const Bits aligned = shift >= max_width ? 0 : b.significand >> shift;
  a.sticky = cut != 0;
  if (a.negative == b.negative) {
    a.significand += aligned;
    return a;
  }
  if (a.significand == aligned && !a.sticky) {
    return {.type = Class::zero, .negative = rounding == Rounding::down};
  }
  if (a.significand < aligned) {  // equal exponents, so that nothing is cut off
    a.significand = aligned - a.significand;
    a.negative = b.negative;
  } else {
    a.significand -= aligned + (a.sticky ? 1 : 0);
  }
  return a;
}

Number sum(const Number& a, const Number& b, Rounding rounding) {
  if (a.type == Class::nan || b.type == Class::nan) return not_a_number();
  if (a.type == Class::infinite) {
    return b.type == Class::infinite && a.negative != b.negative ? not_a_number() : a;
  }
  if (b.type == Class::infinite) return b;
  if (a.type == Class::zero && b.type == Class::zero) {
    const bool negative = a.negative == b.negative ? a.negative : rounding == Rounding::down;
    return {.type = Class::zero, .negative = negative};
  }
  if (a.type == Class::zero) return b;
  if (b.type == Class::zero) return a;
  return finite_sum(a, b, rounding);
}

Number product(const Number& a, const Number& b) {
  if (a.type == Class::nan || b.type == Class::nan) return not_a_number();
  Number result{.type = Class::finite, .negative = a.negative != b.negative};
  const bool infinite = a.type == Class::infinite || b.type == Class::infinite;
  const bool zero = a.type == Class::zero || b.type == Class::zero;
  if (infinite && zero) return not_a_number();
  if (infinite || zero) {
    result.type = infinite ? Class::infinite : Class::zero;
    return result;
  }
  result.significand = a.significand * b.significand;
  result.exponent = a.exponent + b.exponent;
  return result;
}

Number quotient(Number a, Number b) {
  if (a.type == Class::nan || b.type == Class::nan) return not_a_number();
  if (a.type == b.type && a.type != Class::finite) return not_a_number();  // 0 / 0, inf / inf
  Number result{.type = Class::finite, .negative = a.negative != b.negative};
  if (a.type == Class::infinite || b.type == Class::zero) {
    result.type = Class::infinite;
  } else if (a.type == Class::zero || b.type == Class::infinite) {
    result.type = Class::zero;
  } else {
    normalise(a, 126);
    normalise(b, 52);
    result.significand = a.significand / b.significand;
    result.sticky = a.significand % b.significand != 0;
    result.exponent = a.exponent - b.exponent;
  }
  return result;
}

/// floor(sqrt(value)), bit by bit.
Bits integer_root(Bits value) {
  Bits root = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const Bits next = root | (Bits{1} << bit);
    if (next * next <= value) root = next;
  }
  return root;
}

}  // namespace

Bits add(FloatFormat format, Rounding rounding, Bits a, Bits b) {
  return pack(format, rounding, sum(unpack(format, a), unpack(format, b), rounding));
}

Bits mul(FloatFormat format, Rounding rounding, Bits a, Bits b) {
  return pack(format, rounding, product(unpack(format, a), unpack(format, b)));
}

Bits div(FloatFormat format, Rounding rounding, Bits a, Bits b) {
  return pack(format, rounding, quotient(unpack(format, a), unpack(format, b)));
}

Bits sqrt(FloatFormat format, Rounding rounding, Bits a) {
  Number number = unpack(format, a);
  if (number.type == Class::zero || number.type == Class::nan) {
    return pack(format, rounding, number);
  }
  if (number.negative) return format.nan();
  if (number.type == Class::infinite) return format.infinity();
  normalise(number, 124);
  if (number.exponent % 2 != 0) {
    number.significand <<= 1;
    --number.exponent;
  }
  const Bits root = integer_root(number.significand);
  number.sticky = root * root != number.significand;
  number.significand = root;
  number.exponent /= 2;
  return pack(format, rounding, number);
}

Bits fma(FloatFormat format, Rounding rounding, Bits a, Bits b, Bits c) {
  const Number exact = product(unpack(format, a), unpack(format, b));
  return pack(format, rounding, sum(exact, unpack(format, c), rounding));
}

Bits remainder(FloatFormat format, Bits a, Bits b) {
  Number x = unpack(format, a);
  const Number y = unpack(format, b);
  if (x.type == Class::nan || y.type == Class::nan || x.type == Class::infinite ||
      y.type == Class::zero) {
    return format.nan();
  }
  if (x.type == Class::zero || y.type == Class::infinite) return a;
  if (x.exponent < y.exponent) {  // y's unit becomes x's, unless y is the larger anyway
    const int shift = y.exponent - x.exponent;
    if (shift >= 64) return a;
    x.significand %= y.significand << shift;
  } else {
    x.significand %= y.significand;
    for (; x.exponent > y.exponent; --x.exponent) {
      x.significand = (x.significand << 1) % y.significand;
    }
  }
  if (x.significand == 0) x.type = Class::zero;
  return pack(format, Rounding::nearest_even, x);
}

Bits round(FloatFormat format, Rounding rounding, Bits a) {
  Number number = unpack(format, a);
  if (number.type != Class::finite || number.exponent >= 0) return pack(format, rounding, number);
  number.significand = shifted_and_rounded(number, -number.exponent, rounding);
  number.exponent = 0;
  if (number.significand == 0) number.type = Class::zero;
  return pack(format, rounding, number);
}

Bits convert(FloatFormat from, FloatFormat to, Rounding rounding, Bits a) {
  return pack(to, rounding, unpack(from, a));
}

Bits to_integer(FloatFormat format, Rounding rounding, int width, bool is_signed, Bits a) {
  const Bits indefinite = is_signed ? sign_bit(width) : low_mask(width);
  Number number = unpack(format, round(format, rounding, a));
  if (number.type == Class::zero) return 0;
  if (number.type != Class::finite) return indefinite;
  if (bit_length(number.significand) + number.exponent > width) return indefinite;
  const Bits magnitude = number.exponent >= 0 ? number.significand << number.exponent
                                              : number.significand >> -number.exponent;
  const Bits limit = !is_signed        ? (number.negative ? 0 : low_mask(width))
                     : number.negative ? sign_bit(width)
                                       : sign_bit(width) - 1;
  if (magnitude > limit) return indefinite;
  return (number.negative ? -magnitude : magnitude) & low_mask(width);
}

Bits from_integer(FloatFormat format, Rounding rounding, int width, bool is_signed, Bits a) {
  Number number{.type = a == 0 ? Class::zero : Class::finite};
  number.negative = is_signed && is_negative(a, width);
  number.significand = number.negative ? -sign_extended(a, width) : a;
  return pack(format, rounding, number);
}

}  // namespace castor::prove::soft
