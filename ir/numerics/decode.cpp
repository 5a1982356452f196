// SPDX-License-Identifier: Apache-2.0
// Decoding: from the raw bits of one element to an exact number.
#include <bit>
#include <cassert>

#include "ir/numerics/exact.hpp"
#include "ir/numerics/format.hpp"
#include "ir/numerics/unpacked.hpp"
#include "ir/types/nf4.hpp"

namespace castor::numerics {

namespace {

// ir/README.md, Convert: boolean reads as 0 or 1; any nonzero byte is 1.
Unpacked decode_boolean(uint64_t bits) { return exact_number(false, (bits & low_bits(8)) != 0, 0); }

// Unsigned binary, or two's complement, of any width from 1 to 64 bits.
Unpacked decode_integer(uint64_t bits, ElementType type) {
  const int width = bits_of(type);
  assert(width >= 1 && width <= 64);
  const uint64_t value = bits & low_bits(width);
  const bool negative = is_signed_integer(type) && (value >> (width - 1)) != 0;
  const uint64_t magnitude = negative ? (0 - value) & low_bits(width) : value;
  return exact_number(negative, magnitude, 0);
}

/// Whether a code (without its sign) is a NaN; fnuz has its NaN at the code of -0 instead.
bool is_nan(uint64_t code, bool negative, const FloatFormat& format) {
  switch (format.specials) {
    case FloatSpecials::ieee:  // IEEE 754-2019, 3.4 a
      return code > top_exponent(format);
    case FloatSpecials::nan_only:  // OCP OFP8, table 1
      return code == sign_bit(format) - 1;
    case FloatSpecials::fnuz:  // ONNX, float8: one NaN, no -0
      return negative && code == 0;
    case FloatSpecials::finite:  // OCP MX, table 4
      return false;
  }
  return false;
}

bool is_infinity(uint64_t code, const FloatFormat& format) {  // IEEE 754-2019, 3.4 b
  return format.specials == FloatSpecials::ieee && code == top_exponent(format);
}

Unpacked decode_float(uint64_t bits, const FloatFormat& format) {
  // 1. Fields: sign, biased exponent, mantissa (IEEE 754-2019, 3.4).
  const int mantissa_bits = format.mantissa_bits;
  const bool negative = (bits & sign_bit(format)) != 0;
  const uint64_t code = bits & (sign_bit(format) - 1);
  const uint64_t mantissa = code & low_bits(mantissa_bits);
  const int biased_exponent = static_cast<int>(code >> mantissa_bits);

  // 2. NaN. Its payload is the mantissa; formats with one NaN have payload 0
  //    (ir/README.md, Convert).
  if (is_nan(code, negative, format)) {
    const bool has_payload = format.specials == FloatSpecials::ieee;
    return {.kind = NumberClass::nan,
            .negative = negative,
            .significand = has_payload ? mantissa << (63 - mantissa_bits) : 0};
  }

  // 3. Infinity.
  if (is_infinity(code, format)) return {.kind = NumberClass::infinity, .negative = negative};

  // 4. Zero and subnormal numbers: 0.m * 2^emin (IEEE 754-2019, 3.4 d and e).
  if (biased_exponent == 0) {
    return exact_number(negative, mantissa, smallest_exponent(format) - mantissa_bits);
  }

  // 5. Normal numbers: 1.m * 2^(e - bias) (IEEE 754-2019, 3.4 c).
  const uint64_t hidden_bit = uint64_t{1} << mantissa_bits;
  return exact_number(negative, hidden_bit | mantissa,
                      biased_exponent - format.bias - mantissa_bits);
}

// OCP MX, table 7: 2^(code - 127), and one NaN; no zero, no sign, no infinity.
Unpacked decode_power_of_two(uint64_t bits, const FloatFormat& format) {
  const uint64_t code = bits & low_bits(format.exponent_bits);
  if (code == low_bits(format.exponent_bits)) return {.kind = NumberClass::nan};
  return exact_number(false, 1, static_cast<int>(code) - format.bias);
}

Unpacked decode_nf4(uint64_t bits) {
  return decode_float(std::bit_cast<uint32_t>(nf4_values[bits & low_bits(4)]),
                      info(ElementType::f32).format);
}

}  // namespace

Unpacked decode(uint64_t bits, ElementType type) {
  switch (kind_of(type)) {
    case ElementKind::boolean: return decode_boolean(bits);
    case ElementKind::unsigned_integer:
    case ElementKind::signed_integer: return decode_integer(bits, type);
    case ElementKind::floating: return decode_float(bits, info(type).format);
    case ElementKind::power_of_two: return decode_power_of_two(bits, info(type).format);
    case ElementKind::codebook: return decode_nf4(bits);
  }
  assert(!"every element type has a kind");
  return {};
}

}  // namespace castor::numerics
