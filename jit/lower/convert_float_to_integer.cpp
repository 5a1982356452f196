// SPDX-License-Identifier: Apache-2.0
// Floats to integers: rounded by mode; out of range saturated (NaN -> 0) or wrapped.
#include <algorithm>

#include "jit/core/core_tuning.hpp"
#include "jit/lower/class_table.hpp"
#include "jit/lower/convert.hpp"
#include "jit/lower/float_to_integer.hpp"

namespace castor::jit {

LaneId first_above(LaneBuilder& builder, LaneType lane, ElementType to) {
  const int value_bits = bits_of(to) - (is_signed_integer(to) ? 1 : 0);
  return builder.float_constant(
      lane, value_bits == 64 ? 0x1p64 : static_cast<double>(uint64_t{1} << value_bits));
}

LaneId is_in_wrap_range(LaneBuilder& builder, LaneId integral_value, ElementType to) {
  const LaneType lane = float_lane(bits_of(builder.type_of(integral_value)));
  const double above = to == ElementType::u64 ? 0x1p64 : 0x1p63;
  return builder.mask_and(
      builder.compare(FloatPredicate::greater_equal, integral_value,
                      builder.float_constant(lane, -0x1p63)),
      builder.compare(FloatPredicate::less, integral_value, builder.float_constant(lane, above)));
}

namespace {

/// Half away from zero: truncate(x + copysign(h, x)) with h the number before one half, which no
/// sum below the next integer reaches from below a half, nor misses from one half up.
LaneId add_half_away(LaneBuilder& builder, LaneId value) {
  const int bits = bits_of(builder.type_of(value));
  const LaneType integer = integer_lane(bits);
  const LaneId sign = builder.constant(integer, uint64_t{1} << (bits - 1));
  const LaneId half = builder.float_constant(float_lane(bits), 0.5);
  const LaneId almost_half = builder.sub(half, builder.constant(integer, 1));
  return builder.float_add(value, builder.bit_or(builder.bit_and(value, sign), almost_half));
}

/// floor(x + 1/2): the distance x - floor(x) compares with one half as the exact distance does.
LaneId round_half_up(LaneBuilder& builder, LaneId value) {
  const LaneType lane = float_lane(bits_of(builder.type_of(value)));
  const LaneId floor = builder.round(value, LaneRounding::down);
  const LaneId distance = builder.float_sub(value, floor);
  const LaneId goes_up =
      builder.compare(FloatPredicate::greater_equal, distance, builder.float_constant(lane, 0.5));
  const LaneId above = builder.float_add(floor, builder.float_constant(lane, 1.0));
  return builder.select(goes_up, above, floor);
}

Rounded apply_rounding(LaneBuilder& builder, LaneId value, Rounding rounding) {
  switch (rounding) {
    case Rounding::by_type:
    case Rounding::toward_zero: return {value, LaneRounding::toward_zero};
    case Rounding::nearest_even: return {value, LaneRounding::nearest_even};
    case Rounding::down: return {value, LaneRounding::down};
    case Rounding::up: return {value, LaneRounding::up};
    case Rounding::nearest_away: return {add_half_away(builder, value), LaneRounding::toward_zero};
    case Rounding::half_up: return {round_half_up(builder, value), LaneRounding::toward_zero};
  }
  return {value, LaneRounding::toward_zero};
}

/// Whether the float lane represents every limit of the integer type, so that clamping before the
/// conversion gives the limit itself.
bool limits_are_exact(LaneType lane, ElementType to) { return bits_of(to) <= bits_of(lane) / 2; }

/// The integer lanes that floats become before a narrowing to elements of at most half a float's
/// bits.
int converted_bits(LaneType lane) { return std::min(bits_of(lane), 32); }

LaneId ordered(LaneBuilder& builder, LaneId value) {
  return builder.compare(FloatPredicate::ordered, value, value);
}

/// 0 where a float is no number; `is_number` is absent where all are.
LaneId zero_nan(LaneBuilder& builder, LaneId is_number, LaneId value) {
  if (is_number == no_lane) return value;
  return builder.zero_unless(builder.mask_resize(is_number, bits_of(builder.type_of(value))),
                             value);
}

/// The lesser of a number that is not negative and floats that are numbers. As integers, floats
/// that are not negative compare as they do as numbers, and negative ones are negative: conversions
/// and the minimum of floats share Zen 4's pipes.
LaneId bounded_above(LaneBuilder& builder, LaneId limit, LaneId value) {
  const bool is_wide = bits_of(builder.type_of(value)) == 64;
  return is_wide && builder.target().tuning().conversion.avoids_wide_extremes
             ? builder.float_min(limit, value)
             : builder.min_signed(limit, value);
}

/// At most 16 bits, and i32 from f64: clamped above in float; below, the conversion's own result
/// (the smallest integer) saturates.
LaneTensor saturate_to_signed(LaneBuilder& builder, LaneId value, ElementType to, Rounded rounded,
                              bool may_be_nan) {
  const LaneType lane = float_lane(bits_of(builder.type_of(value)));
  const Narrowing narrowing =
      bits_of(to) == 32 ? Narrowing::truncate : Narrowing::saturate_to_signed;
  const LaneId limit = builder.float_constant(lane, static_cast<double>(integer_max(to)));
  const LaneId is_number = may_be_nan ? ordered(builder, value) : no_lane;
  if (!builder.has_wide_conversions()) {
    // NaN becomes zero before the lanes get narrower: masks do so by several instructions.
    const LaneId number = zero_nan(builder, is_number, rounded.value);
    const LaneId below = builder.float_min(limit, number);
    return LaneTensor::computed(
        builder, to, {builder.float_to_signed(below, 32, rounded.left_to_do), narrowing});
  }
  const LaneId below = bounded_above(builder, limit, rounded.value);
  const int bits = converted_bits(lane);
  const LaneId integer = builder.float_to_signed(below, bits, rounded.left_to_do);
  return LaneTensor::computed(builder, to, {zero_nan(builder, is_number, integer), narrowing});
}

/// To at most 16 bits from f16, whose numbers all fit 32: only NaN and +infinity need care.
LaneTensor saturate_small_f16(LaneBuilder& builder, ElementType to, Rounded rounded) {
  const LaneId bounded =
      builder.bound_specials(rounded.value, static_cast<double>(integer_max(to)));
  return LaneTensor::computed(
      builder, to,
      {builder.float_to_signed(bounded, 32, rounded.left_to_do),
       is_signed_integer(to) ? Narrowing::saturate_to_signed : Narrowing::saturate_to_unsigned});
}

/// To at most 16 bits from f64, by masks: what is above the range is replaced in the narrower
/// lanes, below, NaN included, the conversion's own result (the smallest integer) saturates to 0. A
/// comparison into a mask shares fewer pipes with conversions and packs than a minimum of floats
/// does on Zen 4.
LaneTensor saturate_f64_to_small_unsigned(LaneBuilder& builder, ElementType to, Rounded rounded) {
  const LaneId is_above = builder.compare(FloatPredicate::greater_equal, rounded.value,
                                          first_above(builder, LaneType::f64, to));
  const LaneId integer = builder.float_to_signed(rounded.value, 32, rounded.left_to_do);
  const LaneId largest = builder.constant(LaneType::i32, integer_max(to));
  return LaneTensor::computed(builder, to,
                              {builder.select(builder.mask_resize(is_above, 32), largest, integer),
                               Narrowing::saturate_to_unsigned});
}

/// At most 16 bits: clamped above in float; below, NaN included, the conversion's own result (the
/// smallest integer) saturates to 0.
LaneTensor saturate_to_small_unsigned(LaneBuilder& builder, ElementType to, LaneType lane,
                                      Rounded rounded, bool may_be_nan) {
  const bool has_masks = builder.has_wide_conversions();
  if (lane == LaneType::f64 && may_be_nan && has_masks) {
    return saturate_f64_to_small_unsigned(builder, to, rounded);
  }
  const LaneId limit = builder.float_constant(lane, static_cast<double>(integer_max(to)));
  const LaneId below = !may_be_nan && has_masks ? bounded_above(builder, limit, rounded.value)
                                                : builder.float_min(limit, rounded.value);
  return LaneTensor::computed(
      builder, to,
      {builder.float_to_signed(below, converted_bits(lane), rounded.left_to_do),
       Narrowing::saturate_to_unsigned});
}

/// Integers from what is converted to i32 without bounds and tests for NaN. Wide unsigned ones have
/// negative numbers made 0 before, narrow ones when they are stored.
LaneTensor convert_within_i32(LaneBuilder& builder, ElementType to, Overflow overflow,
                              Rounded rounded) {
  const bool is_wide = bits_of(to) >= 32;
  const bool wraps = overflow == Overflow::wrap;
  LaneId value = rounded.value;
  if (is_wide && !wraps && !is_signed_integer(to)) {
    const LaneType lane = float_lane(bits_of(builder.type_of(value)));
    value = builder.float_max(value, builder.float_constant(lane, 0.0));
  }
  const LaneId integer = builder.float_to_signed(value, 32, rounded.left_to_do);
  const Narrowing saturating =
      is_signed_integer(to) ? Narrowing::saturate_to_signed : Narrowing::saturate_to_unsigned;
  return LaneTensor::computed(builder, to,
                              {is_wide ? builder.extend_sign(integer, bits_of(to)) : integer,
                               wraps || is_wide ? Narrowing::truncate : saturating});
}

/// i32 from f32, i64: the conversion's own out-of-range result is the smallest integer, right
/// below the range; above the range it is replaced by the largest.
LaneTensor saturate_to_wide_signed(LaneBuilder& builder, LaneId value, ElementType to,
                                   Rounded rounded) {
  const int bits = bits_of(to);
  const LaneType lane = float_lane(bits_of(builder.type_of(value)));
  const LaneId is_above =
      builder.compare(FloatPredicate::greater_equal, value, first_above(builder, lane, to));
  const LaneId integer =
      builder.zero_unless(builder.mask_resize(ordered(builder, value), bits),
                          builder.float_to_signed(rounded.value, bits, rounded.left_to_do));
  if (!builder.has_wide_conversions()) {
    // Too big a number became the smallest integer; the complement of that is the largest.
    return LaneTensor::computed(builder, to,
                                {builder.bit_xor(integer, is_above), Narrowing::truncate});
  }
  const LaneId largest = builder.constant(integer_lane(bits), integer_max(to));
  return LaneTensor::computed(
      builder, to,
      {builder.select(builder.mask_resize(is_above, bits), largest, integer), Narrowing::truncate});
}

/// u32, u64 by instruction: max turns NaN and negative numbers into 0, and the out-of-range result
/// is the largest integer. Rounding up to 0 from below needs no care: max comes after it.
LaneTensor saturate_to_wide_unsigned(LaneBuilder& builder, ElementType to, LaneType lane,
                                     Rounded rounded) {
  const LaneId positive = builder.float_max(rounded.value, builder.float_constant(lane, 0.0));
  return LaneTensor::computed(
      builder, to,
      {builder.float_to_unsigned(positive, bits_of(to), rounded.left_to_do), Narrowing::truncate});
}

LaneTensor saturate(LaneBuilder& builder, LaneId value, const LaneTensor& source, ElementType to,
                    Rounded rounded) {
  const ElementType from = source.element();
  const LaneType lane = float_lane(bits_of(builder.type_of(value)));
  const bool is_signed = is_signed_integer(to);
  const bool wide = builder.has_wide_conversions();
  const bool is_f16 = from == ElementType::f16 && lane == LaneType::f32;
  if (is_f16 && bits_of(to) <= 16 && wide) return saturate_small_f16(builder, to, rounded);
  if (is_f16 && bits_of(to) >= 32 && !is_signed && !wide) {
    return saturate_f16_to_unsigned_avx2(builder, to, rounded);
  }
  if (is_f16 && bits_of(to) == 64 && !wide) {
    return saturate_f16_to_i64_avx2(builder, value, rounded);
  }
  if (is_signed && limits_are_exact(lane, to)) {
    return saturate_to_signed(builder, value, to, rounded, source.may_be_nan());
  }
  if (!is_signed && bits_of(to) <= 16 && limits_are_exact(lane, to)) {
    return saturate_to_small_unsigned(builder, to, lane, rounded, source.may_be_nan());
  }
  if (is_signed && (wide || bits_of(to) == 32)) {
    return saturate_to_wide_signed(builder, value, to, rounded);
  }
  if (wide) return saturate_to_wide_unsigned(builder, to, lane, rounded);
  if (to == ElementType::u32) {
    return lane == LaneType::f32 ? saturate_f32_to_u32_avx2(builder, rounded)
                                 : saturate_f64_to_u32_avx2(builder, rounded);
  }
  return is_signed ? saturate_to_i64_avx2(builder, lane, rounded)
                   : saturate_to_u64_avx2(builder, lane, rounded);
}

/// Whether every number of a type is in i32's range.
bool fits_32_bits(ElementType type) {
  return kind_of(type) == ElementKind::codebook ||
         (is_float(type) && largest_finite(type) < 0x1p31);
}

LaneTensor wrap(LaneBuilder& builder, ElementType to, Rounded rounded) {
  if (!builder.has_wide_conversions()) return wrap_avx2(builder, to, rounded);
  LaneId bits = builder.float_to_signed(rounded.value, 64, rounded.left_to_do);
  if (bits_of(to) == 64) {
    // Out of range gives 1 << 63, whose low bits are 0 only for narrower destinations.
    const LaneType lane = float_lane(bits_of(builder.type_of(rounded.value)));
    const LaneId in_range = builder.mask_resize(is_in_wrap_range(builder, rounded.value, to), 64);
    if (to == ElementType::u64) {
      const LaneId is_big = builder.compare(FloatPredicate::greater_equal, rounded.value,
                                            builder.float_constant(lane, 0x1p63));
      bits = builder.select(builder.mask_resize(is_big, 64),
                            builder.float_to_unsigned(rounded.value, 64, rounded.left_to_do), bits);
    }
    bits = builder.zero_unless(in_range, bits);
  }
  return LaneTensor::computed(builder, to, {bits, Narrowing::truncate});
}

/// Whether the conversion to i32 is all that there is to do but for resizing, and a maximum.
bool is_within_i32(const LaneBuilder& builder, const LaneTensor& source, ElementType to,
                   bool wraps) {
  const int bits = bits_of(to);
  // What infinities and NaNs become, the smallest i32, has low bits of 0.
  if (wraps && bits <= 16 && fits_32_bits(source.element())) return true;
  const bool is_cut = bits == 32 && (wraps || is_signed_integer(to));
  return source.fits_i32() && (bits <= 16 || is_cut || !builder.has_wide_conversions());
}

/// Floats of 8 bits whose NaNs became 0, as their integers are, while they are codes: without masks
/// that is fewer instructions than a test of f32. Nothing for types that have infinities or no NaN.
std::optional<LaneTensor> codes_of_numbers(LaneBuilder& builder, LaneTensor& source) {
  const ElementType from = source.element();
  const bool has_codes = is_float(from) && bits_of(from) == 8 && source.natural_bits() == 8;
  if (!has_codes || builder.has_wide_conversions() || !source.may_be_nan()) return std::nullopt;
  const auto constant = [&](uint64_t code) { return builder.constant(LaneType::i8, code); };
  const LaneId codes = source.as_bits();
  LaneId is_number = no_lane;
  switch (info(from).format.specials) {
    case FloatSpecials::nan_only:
      is_number = builder.greater_signed(constant(0x7f), builder.bit_and(codes, constant(0x7f)));
      break;
    case FloatSpecials::fnuz: is_number = builder.greater_signed(codes, constant(0x80)); break;
    default: return std::nullopt;
  }
  LaneTensor numbers = LaneTensor::computed(
      builder, from, {builder.zero_unless(is_number, codes), Narrowing::truncate});
  numbers.holds_no_nan().holds_numbers_up_to(largest_finite(from));
  return numbers;
}

/// 16-bit floats that a store encodes by table, where the target and the conversion can; f16 lanes
/// are converted by fewer instructions.
std::optional<LaneTensor> encode_by_class(LaneBuilder& builder, LaneTensor& source, ElementType to,
                                          const ConvertOptions& options) {
  const ElementType from = source.element();
  const bool has_words =
      from == ElementType::bf16 || (from == ElementType::f16 && !builder.has_f16_lanes());
  if (!has_words || source.natural_bits() != 16 || !builder.has_look_up(7)) return std::nullopt;
  const auto table = class_table(from, to, options);
  if (!table) return std::nullopt;
  const Storable storable = {source.as_bits(), Narrowing::encode_by_class,
                             builder.add_class_table(*table)};
  return LaneTensor::encoded(builder, to, storable, source.as_f32(), options);
}

}  // namespace

LaneTensor convert_float_to_integer(LaneBuilder& builder, LaneTensor& source, ElementType to,
                                    const ConvertOptions& options) {
  if (const auto codes = encode_by_class(builder, source, to, options)) return *codes;
  if (auto numbers = codes_of_numbers(builder, source)) {
    return convert_float_to_integer(builder, *numbers, to, options);
  }
  const bool wraps = options.overflow == Overflow::wrap;
  const bool in_f16_lanes = source.element() == ElementType::f16 && builder.has_f16_lanes();
  // To integers of f16's width more lanes are converted at once.
  const bool has_i16_lanes = in_f16_lanes && !wraps && bits_of(to) <= 16;
  if (is_within_i32(builder, source, to, wraps) && !has_i16_lanes) {
    const bool is_f64 = source.element() == ElementType::f64;
    const LaneId number = is_f64         ? source.as_f64()
                          : in_f16_lanes ? source.as_bits()
                                         : source.as_f32();
    return convert_within_i32(builder, to, options.overflow,
                              apply_rounding(builder, number, options.rounding));
  }
  const bool through_f64 =
      source.element() == ElementType::f64 || (wraps && !builder.has_wide_conversions());
  // What is wrapped is compared with bounds that f16 does not have.
  const LaneId value = through_f64              ? source.as_f64()
                       : in_f16_lanes && !wraps ? source.as_bits()
                                                : source.as_f32();
  const Rounded rounded = apply_rounding(builder, value, options.rounding);
  return wraps ? wrap(builder, to, rounded) : saturate(builder, value, source, to, rounded);
}

/// As integers, positive floats are above all negative ones where they have signs, and below where
/// they have not: each bound is one minimum.
std::optional<LaneTensor> convert_float_to_range(LaneBuilder& builder, LaneTensor& source,
                                                 const SmallRange& range, const RangeSlack& slack,
                                                 Rounding rounding) {
  const bool in_f32 = source.element() != ElementType::f64 &&
                      !(source.element() == ElementType::f16 && builder.has_f16_lanes());
  if (!in_f32 || !builder.has_wide_conversions() || range.lo >= 0 || range.hi < 0) {
    return std::nullopt;
  }
  const LaneId value = source.as_f32();
  const Rounded rounded = apply_rounding(builder, value, rounding);
  LaneId bounded = rounded.value;
  const bool is_bounded = source.holds_at_most(std::min(-range.lo, range.hi)) ||
                          (slack.may_be_beyond && source.fits_i32());
  if (!is_bounded) {
    const auto bound = [&](int32_t number) {
      return builder.float_constant(LaneType::f32, number);
    };
    bounded = builder.min_signed(bound(range.hi), bounded);
    if (!slack.may_be_least) bounded = builder.min_unsigned(bound(range.lo), bounded);
  }
  const bool may_be_nan = source.may_be_nan() && !source.fits_i32();
  const LaneId is_number = may_be_nan ? ordered(builder, value) : no_lane;
  const LaneId integer = builder.float_to_signed(bounded, 32, rounded.left_to_do);
  return LaneTensor::computed(
             builder, ElementType::i32,
             {.lanes = zero_nan(builder, is_number, integer), .narrowing = Narrowing::truncate})
      .holds_range(range);
}

}  // namespace castor::jit
