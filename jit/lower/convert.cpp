// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/convert.hpp"

#include <algorithm>
#include <cmath>

#include "jit/lower/integer_tables.hpp"
#include "jit/lower/small_values.hpp"

namespace castor::jit {

namespace {

/// From byte to byte, where neither bits nor integers are just copied or clamped.
bool is_best_by_table(ElementType from, ElementType to) {
  return from != to && bits_of(from) <= 8 && bits_of(to) <= 8 && (!is_whole(from) || !is_whole(to));
}

/// Sixteens of entries that differ from the ones before.
int differing_sixteens(const ByteTable& table) {
  int count = 1;
  for (auto at = table.entries.begin() + 16; at < table.entries.begin() + (1 << table.index_bits);
       at += 16) {
    count += std::equal(at, at + 16, at - 16) ? 0 : 1;
  }
  return count;
}

/// Whether the conversion is looked up. A table of several sixteens is many instructions, which
/// take less time than arithmetic only where lanes are no wider than bytes already, where a test of
/// bits would not do, and, with AVX-512, not where the source are integers and the table is long.
bool is_looked_up(const LaneBuilder& builder, const LaneTensor& source, ElementType to,
                  const ByteTable& table) {
  if (builder.has_look_up(table.index_bits)) return true;
  if (source.natural_bits() != 8 || is_boolean(to)) return false;
  // u8 to f8e4m3 has 16: by the table it reaches 0.14 of a copy, by arithmetic 0.23 (Zen 4).
  constexpr int few = 12;
  const bool has_arithmetic = builder.target().has_avx512() && is_whole(source.element());
  return !has_arithmetic || differing_sixteens(table) <= few;
}

LaneTensor convert_by_table(LaneBuilder& builder, LaneTensor& source, ElementType to,
                            const ByteTable& table) {
  return LaneTensor::computed(builder, to,
                              {builder.look_up(source.as_bits(), table), Narrowing::fits_unsigned});
}

/// Floats of so few bits that a byte holds whatever integer they become: looked up as bytes, which
/// are then extended. Nothing for other types, and where looking up is not the fastest way.
std::optional<LaneTensor> convert_through_bytes(LaneBuilder& builder, LaneTensor& source,
                                                ElementType to, const ConvertOptions& options) {
  const ElementType from = source.element();
  const bool is_small = kind_of(from) == ElementKind::codebook ||
                        (is_float(from) && is_sub_byte(from));  // at most 28, without infinities
  if (!is_small || !is_integer(to) || bits_of(to) <= 8) return std::nullopt;
  if (source.natural_bits() != 8) return std::nullopt;  // computed: its numbers are at hand
  // Sixteen entries of 32 bits fill a register, and are looked up at once.
  const bool has_wide_look_up = builder.target().has_avx512() && has_f32_table(from);
  if (has_wide_look_up && bits_of(to) == 32) return std::nullopt;
  const bool has_no_negative = !is_signed_integer(to) && options.overflow != Overflow::wrap;
  const ElementType byte = has_no_negative ? ElementType::u8 : ElementType::i8;
  const std::optional<ByteTable> table = conversion_table(from, byte, options);
  if (!is_looked_up(builder, source, byte, *table)) return std::nullopt;
  LaneTensor bytes = convert_by_table(builder, source, byte, *table);
  return convert_integer_to_integer(builder, bytes, to, {});
}

}  // namespace

LaneTensor lower_convert(LaneBuilder& builder, LaneTensor& source, ElementType to,
                         const ConvertOptions& options) {
  const ElementType from = source.element();
  // A clamp before a table of 16 entries costs more than one step in a larger table, and less than
  // four.
  const bool is_one_step =
      is_sub_byte(from) && builder.has_look_up(conversion_table_bits(bits_of(from)));
  if (!is_one_step) {
    const auto codes = convert_integer_by_table(builder, source, to, options);
    if (codes) return *codes;
  }
  if (is_best_by_table(from, to)) {
    const std::optional<ByteTable> table = conversion_table(from, to, options);
    if (is_looked_up(builder, source, to, *table)) {
      return convert_by_table(builder, source, to, *table);
    }
  }
  if (from == to) return convert_same_type(builder, source, options);
  if (is_boolean(to)) return convert_to_boolean(builder, source);
  if (const auto extended = convert_through_bytes(builder, source, to, options)) return *extended;
  if (!is_whole(from)) {
    return !is_whole(to) ? convert_float_to_float(builder, source, to, options)
                         : convert_float_to_integer(builder, source, to, options);
  }
  return !is_whole(to) ? convert_integer_to_float(builder, source, to, options)
                       : convert_integer_to_integer(builder, source, to, options);
}

namespace {

/// Lanes that are zero exactly where the element is.
LaneId zero_test(LaneBuilder& builder, LaneTensor& source) {
  const ElementType from = source.element();
  if (is_whole(from)) return source.as_integer(source.natural_bits());
  const LaneId bits = source.as_bits();
  const auto constant = [&](uint64_t value) {
    return builder.constant(integer_lane(lane_bits_of(from)), value);
  };
  switch (kind_of(from)) {
    case ElementKind::codebook: return builder.bit_xor(bits, constant(7));
    case ElementKind::power_of_two: return builder.bit_or(bits, constant(1));  // there is no zero
    default: break;
  }
  if (info(from).format.specials == FloatSpecials::fnuz) return bits;  // one zero
  // Both zeros become 0 without the sign; a NaN does not.
  const uint64_t sign_bit = uint64_t{1} << (bits_of(from) - 1);
  return is_sub_byte(from) ? builder.bit_and(bits, constant(sign_bit - 1))
                           : builder.add(bits, bits);  // shifts the sign out of the lane
}

}  // namespace

LaneTensor convert_to_boolean(LaneBuilder& builder, LaneTensor& source) {
  const LaneId lanes = zero_test(builder, source);
  return LaneTensor::computed(builder, ElementType::boolean,
                              {builder.is_nonzero(lanes), Narrowing::fits_unsigned});
}

LaneTensor convert_same_type(LaneBuilder& builder, LaneTensor& source,
                             const ConvertOptions& options) {
  const ElementType type = source.element();
  if (is_boolean(type)) {
    return LaneTensor::computed(builder, type, {source.as_integer(8), Narrowing::fits_unsigned});
  }
  if (!has_infinities(type) || options.overflow != Overflow::saturate) return source;
  // The bits of infinity less one are those of the largest finite number.
  const LaneType lane = integer_lane(bits_of(type));
  const uint64_t magnitude_mask = (uint64_t{1} << (bits_of(type) - 1)) - 1;
  const uint64_t infinity =
      magnitude_mask & ~((uint64_t{1} << info(type).format.mantissa_bits) - 1);
  const LaneId bits = source.as_bits();
  const LaneId is_infinite =
      builder.equal(builder.bit_and(bits, builder.constant(lane, magnitude_mask)),
                    builder.constant(lane, infinity));
  const LaneId below = builder.sub(bits, builder.constant(lane, 1));
  return LaneTensor::computed(builder, type,
                              {builder.select(is_infinite, below, bits), Narrowing::truncate});
}

double largest_finite(ElementType type) {
  const FloatFormat& format = info(type).format;
  // Infinities and NaNs take the top exponent, or NaN alone the top code, or neither.
  const bool no_top_exponent = format.specials == FloatSpecials::ieee;
  const bool no_top_code = format.specials == FloatSpecials::nan_only;
  const int exponent = (1 << format.exponent_bits) - (no_top_exponent ? 2 : 1) - format.bias;
  const double last_place = std::ldexp(1.0, -format.mantissa_bits);
  return std::ldexp(2.0 - last_place * (no_top_code ? 2 : 1), exponent);
}

LaneId clamp_to_finite(LaneBuilder& builder, LaneId value, ElementType to) {
  const LaneType lane = float_lane(bits_of(builder.type_of(value)));
  const double limit = largest_finite(to);
  const LaneId below = builder.float_min(builder.float_constant(lane, limit), value);
  return builder.float_max(builder.float_constant(lane, -limit), below);
}

LaneId clamp_finite_numbers(LaneBuilder& builder, LaneId value, ElementType to) {
  const LaneType lane = builder.type_of(value);
  const LaneType bits = integer_lane(bits_of(lane));
  const uint64_t magnitude_mask = (uint64_t{1} << (bits_of(lane) - 1)) - 1;
  const uint64_t infinity = bits_of(lane) == 32 ? uint64_t{0xff} << 23 : uint64_t{0x7ff} << 52;
  const LaneId magnitude = builder.bit_and(value, builder.constant(bits, magnitude_mask));
  const LaneId is_infinite = builder.equal(magnitude, builder.constant(bits, infinity));
  return builder.select(is_infinite, value, clamp_to_finite(builder, value, to));
}

}  // namespace castor::jit
