// SPDX-License-Identifier: Apache-2.0
// Floats to floats.
#include <optional>

#include "jit/core/core_tuning.hpp"
#include "jit/lower/convert.hpp"
#include "jit/lower/encode_f16_lanes.hpp"
#include "jit/lower/nf4.hpp"
#include "jit/lower/small_float.hpp"
#include "jit/lower/threshold_table.hpp"

namespace castor::jit {

namespace {

/// f32 -> bf16, nearest even. NaNs would carry as numbers do; they are made quiet instead.
LaneTensor round_to_bf16(LaneBuilder& builder, LaneId value, bool may_be_nan) {
  LaneId rounded = builder.round_half_even(value, 16);
  if (may_be_nan) rounded = builder.quiet_nan(rounded, value);
  return LaneTensor::computed(builder, ElementType::bf16, {rounded, Narrowing::high_half});
}

/// The table by which a store encodes 16-bit floats, where the target can.
std::optional<ThresholdTable> threshold_table_for(const LaneBuilder& builder, ElementType from,
                                                  ElementType to, const ConvertOptions& options) {
  if (bits_of(to) > 8 || to == ElementType::nf4 || !builder.has_look_up(8)) return std::nullopt;
  return threshold_table(from, to, options);
}

/// 16-bit floats as a store encodes them by tables, where the target can.
std::optional<Storable> encode_by_tables(LaneBuilder& builder, LaneTensor& source, ElementType to,
                                         const ConvertOptions& options) {
  const ElementType from = source.element();
  if (to == ElementType::nf4 && builder.has_look_up(8)) {
    const bool is_f16 = from == ElementType::f16;
    return Storable{source.as_bits(), is_f16 ? Narrowing::f16_to_nf4 : Narrowing::bf16_to_nf4};
  }
  const auto table = threshold_table_for(builder, from, to, options);
  if (!table) return std::nullopt;
  return Storable{source.as_bits(), Narrowing::encode_16_bits, builder.add_threshold_table(*table)};
}

/// Whether stores round bf16 to f8e8m0.
bool rounds_to_power(const LaneBuilder& builder, ElementType to, const ConvertOptions& options) {
  return to == ElementType::f8e8m0 && builder.target().has_avx512() &&
         options.rounding == Rounding::by_type && options.overflow != Overflow::nan;
}

/// Whether stores round 16-bit floats to f4e2m1, which takes fewer steps than other ways where
/// permutations of two vectors are slow.
bool rounds_to_f4(const LaneBuilder& builder, ElementType to, const ConvertOptions& options) {
  return to == ElementType::f4e2m1 && builder.target().supports(Feature::avx512_vbmi) &&
         builder.target().tuning().conversion.avoids_two_source_permutes &&
         options.rounding == Rounding::by_type && options.nan == NanMode::by_type &&
         options.overflow != Overflow::saturate_finite;
}

}  // namespace

LaneTensor narrow_f32(LaneBuilder& builder, LaneId value, ElementType to,
                      const ConvertOptions& options, const std::optional<Integers>& integers) {
  if (options.overflow == Overflow::saturate_finite) {
    return narrow_f32(builder, clamp_finite_numbers(builder, value, to), to, {}, integers);
  }
  if (bits_of(to) <= 8) {
    if (to == ElementType::f8e8m0 && integers) {
      const LaneId codes = encode_power(builder, value, options, *integers);
      return LaneTensor::encoded(builder, to, {codes, Narrowing::truncate}, value, options);
    }
    if (const auto codes = encode_signed(builder, value, to, options, integers)) {
      return LaneTensor::encoded(builder, to, {*codes, Narrowing::signed_code}, value, options);
    }
    if (const auto codes = encode_magnitude(builder, value, to, options, integers)) {
      const bool has_signs = !integers || integers->is_signed;
      const Storable storable = {*codes, Narrowing::magnitude_code, -1,
                                 has_signs ? value : no_lane};
      return LaneTensor::encoded(builder, to, storable, value, options);
    }
    if (to == ElementType::nf4) {
      return LaneTensor::encoded(builder, to, encode_nf4_stored(builder, value), value, options);
    }
    if (to == ElementType::f8e5m2) {
      const LaneId halves = fold_to_f16(builder, value, options);
      return LaneTensor::encoded(builder, to, {halves, Narrowing::f16_to_e5m2}, value, options);
    }
    if (rounds_to_power(builder, to, options)) {
      const LaneId folded = builder.fold_to_high_half(value);
      return LaneTensor::encoded(builder, to, {folded, Narrowing::high_half_to_power}, value,
                                 options);
    }
    if (const auto table = threshold_table_for(builder, ElementType::bf16, to, options)) {
      const LaneId folded = builder.fold_to_high_half(value);
      const Storable storable = {folded, Narrowing::encode_high_half,
                                 builder.add_threshold_table(*table)};
      return LaneTensor::encoded(builder, to, storable, value, options);
    }
    const Storable codes = {encode_small(builder, value, to, options), Narrowing::fits_unsigned};
    return LaneTensor::encoded(builder, to, codes, value, options);
  }
  if (options.overflow == Overflow::saturate) value = clamp_to_finite(builder, value, to);
  switch (to) {
    case ElementType::f16:
      return LaneTensor::computed(builder, to, {builder.f32_to_f16(value), Narrowing::truncate});
    case ElementType::bf16: return round_to_bf16(builder, value, !integers);
    default: return LaneTensor::computed(builder, to, {value, Narrowing::truncate});
  }
}

/// What is below bf16's normal numbers becomes zero, whether the lower half counts or not.
std::optional<LaneTensor> encode_high_half(LaneBuilder& builder, LaneId value, ElementType to,
                                           const ConvertOptions& options) {
  const bool has_form = kind_of(to) == ElementKind::floating && bits_of(to) <= 8 &&
                        options.overflow != Overflow::saturate_finite;
  if (!has_form) return std::nullopt;
  const auto table = threshold_table_for(builder, ElementType::bf16, to, options);
  if (!table) return std::nullopt;
  const Storable storable = {value, Narrowing::encode_high_half,
                             builder.add_threshold_table(*table)};
  return LaneTensor::encoded(builder, to, storable, value, options);
}

LaneTensor convert_float_to_float(LaneBuilder& builder, LaneTensor& source, ElementType to,
                                  const ConvertOptions& options) {
  const ElementType from = source.element();
  const bool saturate = options.overflow == Overflow::saturate;
  const bool saturate_finite = options.overflow == Overflow::saturate_finite;
  if (to == ElementType::f64) {
    LaneId value = source.as_f64();
    if (saturate) value = clamp_to_finite(builder, value, to);
    return LaneTensor::computed(builder, to, {value, Narrowing::truncate});
  }
  if (from == ElementType::f64) {
    LaneId value = source.as_f64();
    if (saturate_finite) {  // before it becomes f32, where more numbers overflow
      value = clamp_finite_numbers(builder, value, to);
    }
    const bool by_f16_lanes = to == ElementType::f16 && builder.has_f16_lanes();
    if (to == ElementType::f32 || by_f16_lanes) {
      if (saturate) value = clamp_to_finite(builder, value, to);
      value = by_f16_lanes ? builder.f64_to_f16(value) : builder.f64_to_f32(value);
      return LaneTensor::computed(builder, to, {value, Narrowing::truncate});
    }
    // Formats with f32's exponents need its range; nf4 compares with f32 numbers.
    const bool has_wide_range = to == ElementType::bf16 || to == ElementType::f8e8m0;
    const LaneId prepared = to == ElementType::nf4 ? builder.f64_to_f32_up(value)
                            : has_wide_range       ? builder.f64_to_f32_odd(value)
                                                   : builder.f64_to_f32_odd_in_range(value);
    return narrow_f32(builder, prepared, to, saturate_finite ? ConvertOptions{} : options, {});
  }
  if (bits_of(from) == 16 && rounds_to_f4(builder, to, options)) {
    const bool is_f16 = from == ElementType::f16;
    const Storable codes = {source.as_bits(),
                            is_f16 ? Narrowing::f16_to_f4 : Narrowing::bf16_to_f4};
    return LaneTensor::encoded(builder, to, codes, source.as_f32(), options);
  }
  const bool is_fnuz = to == ElementType::f8e4m3fnuz || to == ElementType::f8e5m2fnuz;
  if (from == ElementType::bf16 && is_fnuz && !saturate && !saturate_finite &&
      builder.has_look_up(8)) {
    return LaneTensor::encoded(builder, to, {source.as_bits(), Narrowing::bf16_to_fnuz},
                               source.as_f32(), options);
  }
  if (encodes_in_f16_lanes(builder, from, to, options)) {
    const Storable codes = encode_in_f16_lanes(builder, source, to, options);
    return LaneTensor::encoded(builder, to, codes, source.as_f32(), options);
  }
  if (from == ElementType::f16 && to == ElementType::f8e5m2 && builder.has_f16_lanes() &&
      !saturate_finite) {
    LaneId halves = source.as_bits();
    if (saturate) halves = clamp_to_finite(builder, halves, to);
    return LaneTensor::encoded(builder, to, {builder.quiet(halves), Narrowing::f16_to_e5m2},
                               source.as_f32(), options);
  }
  if (from == ElementType::bf16 && to == ElementType::f8e5m2 && !saturate_finite &&
      builder.target().has_avx512() &&
      builder.target().tuning().conversion.avoids_two_source_permutes) {
    // f16 holds all numbers of bf16 from 2^-17 on; what is below rounds to zero.
    LaneId value = source.as_f32();
    if (saturate) value = clamp_to_finite(builder, value, to);
    return LaneTensor::encoded(
        builder, to, {builder.f32_to_f16(value, LaneRounding::toward_zero), Narrowing::f16_to_e5m2},
        value, options);
  }
  if (from == ElementType::f16 && to == ElementType::f8e5m2 && !saturate && !saturate_finite) {
    return LaneTensor::computed(builder, to,
                                {round_to_e5m2(builder, source.as_bits()), Narrowing::high_half});
  }
  const bool by_lanes = builder.target().has_avx512() && (!saturate || builder.has_f16_lanes());
  if (from == ElementType::f16 && to == ElementType::f8e5m2fnuz && !saturate_finite && by_lanes) {
    LaneId halves = source.as_bits();
    if (saturate) halves = clamp_to_finite(builder, halves, to);
    return LaneTensor::encoded(builder, to, {halves, Narrowing::f16_to_e5m2fnuz}, source.as_f32(),
                               options);
  }
  const bool to_nearest = options.rounding == Rounding::by_type;
  if (from == ElementType::f16 && to == ElementType::f8e8m0 && to_nearest &&
      builder.target().has_avx512()) {
    const LaneId value = source.as_f32();
    const LaneId codes = encode_power_of_f16(builder, value, options.overflow);
    return LaneTensor::encoded(builder, to, {codes, Narrowing::truncate}, value, options);
  }
  if (from == ElementType::bf16 && rounds_to_power(builder, to, options) && !saturate_finite) {
    const Storable storable = {source.as_bits(), Narrowing::bf16_to_power};
    return LaneTensor::encoded(builder, to, storable, source.as_f32(), options);
  }
  if (from == ElementType::f16 || from == ElementType::bf16) {
    if (const auto codes = encode_by_tables(builder, source, to, options)) {
      LaneId value = source.as_f32();
      if (!saturate_finite) return LaneTensor::encoded(builder, to, *codes, value, options);
      // Only the tables know the mode: what computes with the lanes rounds clamped numbers.
      value = clamp_finite_numbers(builder, value, to);
      return LaneTensor::encoded(builder, to, *codes, value, {});
    }
  }
  LaneId value = source.as_f32();
  const bool has_words = bits_of(from) == 16 && source.natural_bits() == 16;
  if (to == ElementType::nf4 && has_words && !builder.target().has_avx512()) {
    const Storable codes = {encode_nf4_of_words(builder, source.as_bits(), from),
                            Narrowing::fits_unsigned};
    return LaneTensor::encoded(builder, to, codes, value, options);
  }
  if (from == ElementType::bf16 && to == ElementType::f32) {
    // x + -0 is x, and a signalling NaN made quiet.
    value = builder.float_add(value, builder.float_constant(LaneType::f32, -0.0));
  }
  return narrow_f32(builder, value, to, options, {});
}

}  // namespace castor::jit
