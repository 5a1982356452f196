// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/spec/convert.hpp"

#include <algorithm>

#include "tools/prove/spec/number.hpp"

namespace castor::prove {
namespace {

bool saturates(const ConvertOptions& options) {
  return options.overflow == Overflow::saturate || options.overflow == Overflow::saturate_finite;
}

/// Bits are copied; boolean becomes 0 or 1; saturate clamps infinities.
Term same_type(const Term& bits, ElementType type, const ConvertOptions& options) {
  if (is_boolean(type)) return extend_zero(not_equal(bits, like(bits, 0)), bits.width());
  if (!has_infinities(type) || options.overflow != Overflow::saturate) return bits;
  return if_then_else(decoded(type, bits).is_infinite, bits - 1, bits);
}

Term to_boolean(const ExactNumber& number) {
  const Term is_true = not_equal(number.significand, like(number.significand, 0)) | number.is_nan |
                       number.is_infinite;
  return extend_zero(is_true, 8);
}

/// Modulo 2^N, or clamped.
Term integer_to_integer(const ExactNumber& number, ElementType to, const ConvertOptions& options) {
  const int bits = bits_of(to);
  const Term magnitude =
      extend_zero(number.significand, std::max(number.significand.width(), bits) + 1);
  const Term value = if_then_else(number.negative, -magnitude, magnitude);
  if (!saturates(options)) return truncate(value, bits);
  const auto limit = [&](uint64_t positive) { return like(magnitude, positive); };
  const Term largest = limit(integer_max(to));
  const Term least = limit(-static_cast<uint64_t>(integer_min(to)));  // its magnitude
  const Term bounded = if_then_else(number.negative, min_unsigned(magnitude, least),
                                    min_unsigned(magnitude, largest));
  return truncate(if_then_else(number.negative, -bounded, bounded), bits);
}

/// Rounded, then clamped, or the low bits of what fits i64 (of u64: or u64); NaN gives 0.
Term float_to_integer(const ExactNumber& number, ElementType to, const ConvertOptions& options) {
  constexpr int width = 64;  // what fits neither u64 nor i64 is out of every range
  const RoundedMagnitude rounded = rounded_to_integer(number, options.rounding, width);
  const Term fits = rounded.fits & ~number.is_infinite;
  const Term& magnitude = rounded.magnitude;
  const bool wraps = options.overflow == Overflow::wrap;
  const auto limit = [&](uint64_t value) { return like(magnitude, value); };
  constexpr uint64_t i64_magnitude = uint64_t{1} << 63;
  const uint64_t positive = !wraps                   ? integer_max(to)
                            : to == ElementType::u64 ? ~uint64_t{0}
                                                     : i64_magnitude - 1;
  const uint64_t negative = wraps ? i64_magnitude : -static_cast<uint64_t>(integer_min(to));
  const Term bound = if_then_else(number.negative, limit(negative), limit(positive));
  const Term inside = fits & at_most_unsigned(magnitude, bound);
  const Term outside = wraps ? limit(0) : bound;
  const Term chosen = if_then_else(inside, magnitude, outside);
  const Term value = truncate(if_then_else(number.negative, -chosen, chosen), bits_of(to));
  return if_then_else(number.is_nan, like(value, 0), value);
}

}  // namespace

Term specified_conversion(const Term& bits, ElementType from, ElementType to,
                          const ConvertOptions& options) {
  if (from == to) return same_type(bits, from, options);
  const ExactNumber number = decoded(from, bits);
  if (is_boolean(to)) return to_boolean(number);
  if (!is_whole(to)) return encoded(number, to, options);
  return is_whole(from) ? integer_to_integer(number, to, options)
                        : float_to_integer(number, to, options);
}

}  // namespace castor::prove
