// SPDX-License-Identifier: Apache-2.0
#include "ir/numerics/requantize.hpp"

#include <bit>

#include "ir/numerics/requantize_embarc.hpp"
#include "ir/numerics/scalar.hpp"
#include "ir/numerics/unpacked.hpp"

namespace castor::numerics {

namespace {

__extension__ using Wide = __int128;

ElementType container_of(const SliceQuantization& side) {
  return side.format ? info(*side.format).container : ElementType::f32;
}

int64_t floor_quotient(Wide a, Wide b) {
  const Wide quotient = a / b;
  return static_cast<int64_t>(a % b < 0 ? quotient - 1 : quotient);
}

/// round(numerator * 2^exponent / denominator + addend), saturated to the container.
/// |numerator| < 2^48, 0 < denominator < 2^15.
uint64_t rounded_ratio(int64_t numerator, int exponent, int32_t denominator, int32_t addend,
                       RequantizeRounding rounding, ElementType container) {
  // 2^63 / 2^15 is beyond every container; below 2^-64 the sign is all that counts.
  constexpr int far_up = 63;
  constexpr int far_down = -64;
  exponent = std::min(far_up, std::max(far_down, exponent));
  const Wide top = Wide{numerator} * (Wide{1} << std::max(exponent, 0));
  const Wide bottom = Wide{denominator} * (Wide{1} << std::max(-exponent, 0));
  // 2 * top is at most 2^112: what is beyond 2^40 whole parts saturates.
  const Wide max = bottom * (Wide{1} << 40);
  const Wide bounded = top > max ? max : top < -max ? -max : top;
  const int64_t below = floor_quotient(bounded, bottom);
  const Wide twice_remainder = 2 * (bounded - Wide{below} * bottom);
  const int64_t value = below + addend;
  const bool is_tie = twice_remainder == bottom;
  const bool up =
      is_tie ? rounding == RequantizeRounding::half_up || value % 2 != 0 : twice_remainder > bottom;
  return saturated(value + (up ? 1 : 0), container);
}

uint64_t exact_from_f32(uint64_t bits, const SliceQuantization& to, RequantizeRounding rounding) {
  const ElementType container = container_of(to);
  const Unpacked x = decode(bits, ElementType::f32);
  const int64_t sign = x.negative ? -1 : 1;
  switch (x.kind) {
    case NumberClass::zero:
    case NumberClass::nan: return saturated(to.zero_point, container);
    case NumberClass::infinity: return saturated(sign * (int64_t{1} << 40), container);
    case NumberClass::finite: break;
  }
  // 24 bits of significand: 2^63 is the weight of bit 63.
  const auto significand = static_cast<int64_t>(x.significand >> 40);
  return rounded_ratio(sign * significand, x.exponent - 23 + to.frac, to.scale, to.zero_point,
                       rounding, container);
}

uint64_t exact_to_f32(int64_t x, const SliceQuantization& from) {
  const int64_t value = (x - from.zero_point) * from.scale;
  if (value == 0) return 0;
  const uint64_t magnitude = static_cast<uint64_t>(value < 0 ? -value : value);
  const int zeros = std::countl_zero(magnitude);
  const Unpacked number = {.kind = NumberClass::finite,
                           .negative = value < 0,
                           .significand = magnitude << zeros,
                           .exponent = 63 - zeros - from.frac};
  return encode(number, ElementType::f64, ElementType::f32, {});
}

uint64_t exact(uint64_t bits, const SliceQuantization& from, const SliceQuantization& to,
               RequantizeRounding rounding) {
  if (!from.format) return exact_from_f32(bits, to, rounding);
  const int64_t x = signed_of(bits, container_of(from));
  if (!to.format) return exact_to_f32(x, from);
  return rounded_ratio((x - from.zero_point) * from.scale, to.frac - from.frac, to.scale,
                       to.zero_point, rounding, container_of(to));
}

}  // namespace

int64_t signed_of(uint64_t bits, ElementType container) {
  const int unused = 64 - bits_of(container);
  return static_cast<int64_t>(bits << unused) >> unused;
}

uint64_t saturated(int64_t value, ElementType container) {
  const auto max = static_cast<int64_t>(integer_max(container));
  const int64_t clamped = std::min(max, std::max(integer_min(container), value));
  return static_cast<uint64_t>(clamped) & (~uint64_t{0} >> (64 - bits_of(container)));
}

uint64_t requantize(uint64_t bits, const SliceQuantization& from, const SliceQuantization& to,
                    const RequantizeOptions& options) {
  if (!from.format && !to.format) return bits;
  if (options.arithmetic == RequantizeArithmetic::exact) {
    return exact(bits, from, to, options.rounding);
  }
  if (!from.format) return embarc_from_f32(bits, to);
  const int64_t x = signed_of(bits, container_of(from));
  if (!to.format) return embarc_to_f32(x, from);
  return embarc_integer(x, from, to, options.rounding);
}

}  // namespace castor::numerics
