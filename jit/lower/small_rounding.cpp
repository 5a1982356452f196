// SPDX-License-Identifier: Apache-2.0
// Rounding f32 lanes to floats of at most eight bits without a detour through codes: what the next
// operation of a function computes with.
#include <cmath>

#include "jit/lower/convert.hpp"
#include "jit/lower/f32_lanes.hpp"
#include "jit/lower/small_float.hpp"

namespace castor::jit {

namespace {

/// The magnitude to nearest even; from the limit on, and of NaN, the limit. Adding a power of two
/// whose last place is the format's rounds, and subtracting it is exact.
LaneId rounded_size(LaneBuilder& builder, LaneId value, ElementType to) {
  const FloatFormat& format = info(to).format;
  const auto number = [&](double x) { return builder.float_constant(LaneType::f32, x); };
  const LaneId size =
      builder.min_unsigned(builder.magnitude(value), number(magnitude_limit(to, {})));
  const LaneId normal = builder.max_unsigned(size, number(std::ldexp(1.0, 1 - format.bias)));
  const LaneId exponent = builder.bit_and(normal, i32_constant(builder, f32_infinity));
  const uint64_t distance = static_cast<uint64_t>(23 - format.mantissa_bits) << 23;
  const LaneId power = builder.add(exponent, i32_constant(builder, distance));
  return builder.float_sub(builder.float_add(size, power), power);
}

LaneId copy_sign(LaneBuilder& builder, LaneId value, LaneId size) {
  return builder.merge_bits(f32_sign, value, size);
}

/// NaNs keep the top bits of their payload.
LaneId select_nans(LaneBuilder& builder, LaneId rounded, LaneId value, const FloatFormat& format) {
  const uint64_t kept = ~uint64_t{0} << (23 - format.mantissa_bits);
  const LaneId quiet = builder.bit_or(value, i32_constant(builder, f32_quiet_nan));
  const LaneId nan = builder.bit_and(quiet, i32_constant(builder, kept));
  return builder.select(nan_mask(builder, value), nan, rounded);
}

/// Zero has no sign, and the one NaN has.
LaneId without_negative_zero(LaneBuilder& builder, LaneId value, LaneId size, LaneId is_beyond) {
  const LaneId number = builder.select(builder.is_set(size), copy_sign(builder, value, size), size);
  return builder.select(is_beyond, i32_constant(builder, f32_quiet_nan | f32_sign), number);
}

}  // namespace

LaneId round_to_small(LaneBuilder& builder, LaneId value, ElementType to) {
  const FloatFormat& format = info(to).format;
  const LaneId size = rounded_size(builder, value, to);
  if (format.specials == FloatSpecials::finite) return copy_sign(builder, value, size);
  const LaneId is_beyond =
      builder.greater_signed(size, builder.float_constant(LaneType::f32, largest_finite(to)));
  if (format.specials == FloatSpecials::fnuz) {
    return without_negative_zero(builder, value, size, is_beyond);
  }
  const bool has_infinity = format.specials == FloatSpecials::ieee;
  const LaneId beyond = i32_constant(builder, has_infinity ? f32_infinity : f32_quiet_nan);
  const LaneId rounded = copy_sign(builder, value, builder.select(is_beyond, beyond, size));
  return has_infinity ? select_nans(builder, rounded, value, format) : rounded;
}

}  // namespace castor::jit
