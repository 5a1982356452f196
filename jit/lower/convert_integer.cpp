// SPDX-License-Identifier: Apache-2.0
// Integers (and booleans) to integers and to floats.
#include <algorithm>
#include <cmath>

#include "jit/lower/convert.hpp"
#include "jit/lower/encode_f16_lanes.hpp"
#include "jit/lower/integer_tables.hpp"

namespace castor::jit {

namespace {

/// Clamps lanes that hold `from` exactly to the values that `to` has as well.
LaneId clamp_to_range(LaneBuilder& builder, LaneId lanes, ElementType from, ElementType to) {
  const LaneType type = integer_lane(bits_of(builder.type_of(lanes)));
  if (integer_min(from) < integer_min(to)) {
    lanes =
        builder.max_signed(lanes, builder.constant(type, static_cast<uint64_t>(integer_min(to))));
  }
  if (integer_max(from) > integer_max(to)) {
    const LaneId limit = builder.constant(type, integer_max(to));
    lanes = is_signed_integer(from) ? builder.min_signed(lanes, limit)
                                    : builder.min_unsigned(lanes, limit);
  }
  return lanes;
}

/// Whether a pack instruction clamps lanes of that width to the element on its own.
bool pack_clamps(int lane_bits, ElementType from, ElementType to) {
  return is_signed_integer(from) && lane_bits <= 32 && lane_bits_of(to) < lane_bits;
}

/// Whether a float has no number of magnitude 2^24 or more: f32 has all integers up to there, and
/// larger ones overflow however they were rounded to f32.
bool overflows_where_f32_is_inexact(ElementType to) {
  return kind_of(to) == ElementKind::floating && largest_finite(to) < 0x1p24;
}

}  // namespace

LaneTensor convert_integer_to_integer(LaneBuilder& builder, LaneTensor& source, ElementType to,
                                      const ConvertOptions& options) {
  const ElementType from = source.element();
  const bool saturate = options.overflow == Overflow::saturate;
  if (saturate) {
    const int lane_bits = std::max(source.natural_bits(), lane_bits_of(from));
    LaneId lanes = source.as_integer(lane_bits);
    if (pack_clamps(lane_bits, from, to)) {
      return LaneTensor::computed(builder, to,
                                  {lanes, is_signed_integer(to) ? Narrowing::saturate_to_signed
                                                                : Narrowing::saturate_to_unsigned});
    }
    lanes = clamp_to_range(builder, lanes, from, to);
    if (lane_bits_of(to) > lane_bits) {
      lanes = is_signed_integer(from) ? builder.extend_sign(lanes, bits_of(to))
                                      : builder.extend_zero(lanes, bits_of(to));
    }
    return LaneTensor::computed(
        builder, to,
        {lanes, is_signed_integer(to) ? Narrowing::fits_signed : Narrowing::fits_unsigned});
  }
  if (lane_bits_of(to) > lane_bits_of(from)) {
    return LaneTensor::computed(builder, to, {source.as_integer(bits_of(to)), Narrowing::truncate});
  }
  // Wrapping keeps low bits, which any representation of the source at least as wide has.
  return LaneTensor::computed(
      builder, to,
      {source.as_integer(std::max(source.natural_bits(), lane_bits_of(from))),
       Narrowing::truncate});
}

namespace {

/// An integer in float lanes as far as options saturate: its infinities are overflow, so both
/// kinds of saturation are one.
LaneId saturated(LaneBuilder& builder, LaneId value, ElementType to,
                 const ConvertOptions& options) {
  const bool saturates =
      options.overflow == Overflow::saturate || options.overflow == Overflow::saturate_finite;
  return saturates ? clamp_to_finite(builder, value, to) : value;
}

/// By one instruction, which rounds once.
LaneTensor convert_to_f16_lanes(LaneBuilder& builder, LaneTensor& source,
                                const ConvertOptions& options) {
  const ElementType from = source.element();
  const int bits = std::max(16, is_boolean(from) ? 1 : bits_of(from));
  const bool is_signed = bits_of(from) < bits || is_signed_integer(from);
  LaneId value = builder.integer_to_float(source.as_integer(bits), is_signed, LaneType::f16);
  value = saturated(builder, value, ElementType::f16, options);
  return LaneTensor::computed(builder, ElementType::f16, {value, Narrowing::truncate});
}

/// f8e5m2 or f8e5m2fnuz of 16-bit integers in 16-bit lanes: f16 has eight bits more than they, so
/// that rounding to odd and once more is rounding once.
LaneTensor convert_to_e5m2(LaneBuilder& builder, LaneTensor& source, LaneId exact, ElementType to,
                           const ConvertOptions& options) {
  const bool is_signed = is_signed_integer(source.element());
  LaneId value = builder.integer_to_float_odd(source.as_integer(16), is_signed, LaneType::f16);
  value = saturated(builder, value, to, options);
  if (to == ElementType::f8e5m2) {
    return LaneTensor::encoded(builder, to, {value, Narrowing::f16_to_e5m2}, exact, options);
  }
  // The exponent field of fnuz is one more, but zero's. No integer is subnormal, and what is too
  // large is carried to the code of NaN. Narrowing::f16_to_e5m2fnuz, which knows subnormal numbers
  // too, takes 1.3 times as long (Convert/i16/f8e5m2fnuz/256KiB).
  const LaneId unit = builder.constant(LaneType::i16, 1 << 10);
  const LaneId rebased = builder.add(value, builder.min_unsigned(value, unit));
  const Storable codes = {builder.round_half_even(rebased, 8), Narrowing::high_half};
  return LaneTensor::encoded(builder, to, codes, exact, options);
}

}  // namespace

LaneTensor convert_integer_to_float(LaneBuilder& builder, LaneTensor& source, ElementType to,
                                    const ConvertOptions& options) {
  const ElementType from = source.element();
  const bool is_signed = is_signed_integer(from);
  const int significant_bits = is_boolean(from) ? 1 : bits_of(from);
  const Integers integers = {std::ldexp(1.0, significant_bits - (is_signed ? 1 : 0)), is_signed};
  if (to == ElementType::f64 || to == ElementType::f32) {
    const LaneType lane = float_lane(bits_of(to));
    // Below 32 bits every value is a positive or negative i32.
    const LaneId value =
        significant_bits < 32
            ? builder.integer_to_float(source.as_integer(32), true, lane)
            : builder.integer_to_float(source.as_integer(significant_bits), is_signed, lane);
    return LaneTensor::computed(builder, to, {value, Narrowing::truncate});
  }
  const bool by_f16_lanes = to == ElementType::f16 && builder.has_f16_lanes();
  if (significant_bits <= 16) {
    const LaneId exact = builder.integer_to_float(source.as_integer(32), true, LaneType::f32);
    const bool by_upper_half = to == ElementType::bf16 && significant_bits <= 8;
    if (encodes_in_f16_lanes(builder, from, to, options)) {
      const Storable codes = encode_in_f16_lanes(builder, source, to, options);
      return LaneTensor::encoded(builder, to, codes, exact, options);
    }
    const bool is_e5m2 = to == ElementType::f8e5m2 || to == ElementType::f8e5m2fnuz;
    if (is_e5m2 && significant_bits == 16 && builder.has_f16_lanes()) {
      return convert_to_e5m2(builder, source, exact, to, options);
    }
    if (const auto codes = convert_i16_by_table(builder, source, to, options)) return *codes;
    LaneTensor result = by_f16_lanes ? convert_to_f16_lanes(builder, source, options)
                        : by_upper_half
                            ? LaneTensor::computed(builder, to, {exact, Narrowing::high_half})
                            : narrow_f32(builder, exact, to, options, integers);
    const int64_t max = int64_t{1} << significant_bits;
    if (is_float(to) && max <= exact_integers(to)) result.holds_integer(exact, max);
    return result;
  }
  if (by_f16_lanes) return convert_to_f16_lanes(builder, source, options);
  const LaneId integer = source.as_integer(significant_bits);
  if (overflows_where_f32_is_inexact(to)) {
    const LaneId value =
        builder.has_wide_conversions() || significant_bits == 32
            ? builder.integer_to_float(integer, is_signed, LaneType::f32)
            : builder.f64_to_f32(builder.integer_to_float(integer, is_signed, LaneType::f64));
    return narrow_f32(builder, value, to, options, integers);
  }
  if (to == ElementType::bf16 && significant_bits == 64 && !builder.has_wide_conversions()) {
    const LaneId value = builder.i64_to_bf16_in_f32(integer, is_signed);
    return LaneTensor::computed(builder, to, {value, Narrowing::high_half});
  }
  return narrow_f32(builder, builder.integer_to_f32_odd(integer, is_signed), to, options, integers);
}

}  // namespace castor::jit
