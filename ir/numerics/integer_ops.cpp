// SPDX-License-Identifier: Apache-2.0
// Ops on integers: the exact result of their values, modulo 2^N.
#include "ir/numerics/integer_ops.hpp"

#include <algorithm>

#include "ir/numerics/format.hpp"

namespace castor::numerics::integer_ops {

namespace {

/// Holds every value of every integer type, signed, and every quotient and remainder.
__extension__ using Integer = __int128;

/// The number that the bits stand for.
Integer value_of(uint64_t bits, ElementType type) {
  const uint64_t word = bits & low_bits(bits_of(type));
  if (is_boolean(type)) return word != 0;
  if (is_signed_integer(type) && word > integer_max(type)) {
    return Integer{word} - (Integer{1} << bits_of(type));
  }
  return Integer{word};
}

/// The value modulo 2^N.
uint64_t wrapped(Integer value, ElementType type) {
  return static_cast<uint64_t>(value) & low_bits(bits_of(type));
}

/// The bits of a whole type with boolean read as 0 or 1.
uint64_t normalised(uint64_t bits, ElementType type) {
  return static_cast<uint64_t>(value_of(bits, type)) &
         low_bits(is_boolean(type) ? 1 : bits_of(type));
}

}  // namespace

uint64_t add(uint64_t a, uint64_t b, ElementType type) {
  return wrapped(value_of(a, type) + value_of(b, type), type);
}

uint64_t sub(uint64_t a, uint64_t b, ElementType type) {
  return wrapped(value_of(a, type) - value_of(b, type), type);
}

uint64_t mul(uint64_t a, uint64_t b, ElementType type) {
  return (a * b) & low_bits(bits_of(type));  // the low bits of a product need only low bits
}

uint64_t div(uint64_t a, uint64_t b, ElementType type) {
  const Integer divisor = value_of(b, type);
  return divisor == 0 ? 0 : wrapped(value_of(a, type) / divisor, type);
}

uint64_t floor_div(uint64_t a, uint64_t b, ElementType type) {
  const Integer dividend = value_of(a, type);
  const Integer divisor = value_of(b, type);
  if (divisor == 0) return 0;
  const bool below = dividend % divisor != 0 && (dividend < 0) != (divisor < 0);
  return wrapped(dividend / divisor - (below ? 1 : 0), type);
}

uint64_t mod(uint64_t a, uint64_t b, ElementType type) {
  const Integer divisor = value_of(b, type);
  return divisor == 0 ? 0 : wrapped(value_of(a, type) % divisor, type);
}

uint64_t floor_mod(uint64_t a, uint64_t b, ElementType type) {
  const Integer divisor = value_of(b, type);
  if (divisor == 0) return 0;
  const Integer modulus = value_of(a, type) % divisor;
  const bool other_sign = modulus != 0 && (modulus < 0) != (divisor < 0);
  return wrapped(other_sign ? modulus + divisor : modulus, type);
}

uint64_t min(uint64_t a, uint64_t b, ElementType type) {
  return wrapped(std::min(value_of(a, type), value_of(b, type)), type);
}

uint64_t max(uint64_t a, uint64_t b, ElementType type) {
  return wrapped(std::max(value_of(a, type), value_of(b, type)), type);
}

uint64_t squared_difference(uint64_t a, uint64_t b, ElementType type) {
  const uint64_t difference = sub(a, b, type);
  return mul(difference, difference, type);
}

uint64_t prelu(uint64_t x, uint64_t slope, ElementType type) {
  return value_of(x, type) < 0 ? mul(x, slope, type) : identity(x, type);
}

uint64_t abs(uint64_t x, ElementType type) {
  return value_of(x, type) < 0 ? neg(x, type) : identity(x, type);
}

uint64_t neg(uint64_t x, ElementType type) { return wrapped(-value_of(x, type), type); }

uint64_t sign(uint64_t x, ElementType type) {
  const Integer value = value_of(x, type);
  return wrapped(value > 0 ? 1 : value < 0 ? -1 : 0, type);
}

uint64_t relu(uint64_t x, ElementType type) { return max(x, 0, type); }

uint64_t identity(uint64_t x, ElementType type) { return x & low_bits(bits_of(type)); }

uint64_t bitwise_and(uint64_t a, uint64_t b, ElementType type) {
  return normalised(a, type) & normalised(b, type);
}

uint64_t bitwise_or(uint64_t a, uint64_t b, ElementType type) {
  return normalised(a, type) | normalised(b, type);
}

uint64_t bitwise_xor(uint64_t a, uint64_t b, ElementType type) {
  return normalised(a, type) ^ normalised(b, type);
}

uint64_t bitwise_not(uint64_t x, ElementType type) {
  return normalised(x, type) ^ low_bits(is_boolean(type) ? 1 : bits_of(type));
}

uint64_t shift_left(uint64_t x, uint64_t count, ElementType type) {
  const uint64_t distance = count & low_bits(bits_of(type));
  if (distance >= static_cast<uint64_t>(bits_of(type))) return 0;
  return (x << distance) & low_bits(bits_of(type));
}

uint64_t shift_right(uint64_t x, uint64_t count, ElementType type) {
  const uint64_t distance = count & low_bits(bits_of(type));
  const auto max = static_cast<uint64_t>(bits_of(type));
  return wrapped(value_of(x, type) >> std::min(distance, max), type);
}

}  // namespace castor::numerics::integer_ops
