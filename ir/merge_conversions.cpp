// SPDX-License-Identifier: Apache-2.0
// Merging two conversions: a table of rules, each of which keeps every bit (DESIGN.md, Numerics).
#include "ir/merge_conversions.hpp"

#include <algorithm>

namespace castor {

namespace {

using MaybeOptions = std::optional<ConvertOptions>;
__extension__ using Wide = __int128;

bool is_whole(ElementType type) { return is_integer(type) || is_boolean(type); }
bool has_infinities(ElementType type) {
  return is_float(type) && info(type).format.specials == FloatSpecials::ieee;
}
bool saturates(const ConvertOptions& options) { return options.overflow == Overflow::saturate; }
bool is_default(const ConvertOptions& options) { return options.overflow == Overflow::by_type; }

// ---- Ranges of integers.

struct Range {
  Wide low;
  Wide high;
  bool contains(const Range& other) const { return low <= other.low && other.high <= high; }
};

constexpr Wide beyond_all = Wide{1} << 100;
constexpr Range everything = {-beyond_all, beyond_all};

Range range_of(ElementType type) { return {integer_min(type), integer_max(type)}; }

Range clamped(const Range& range, const Range& limits) {
  return {std::clamp(range.low, limits.low, limits.high),
          std::clamp(range.high, limits.low, limits.high)};
}

Wide power_of_two(int exponent) { return exponent < 100 ? Wide{1} << exponent : beyond_all; }

/// The largest finite number of a format with infinities, cut off at 2^100.
Wide largest_finite(const FloatFormat& format) {
  return power_of_two(format.bias + 1) -
         (format.bias < 99 ? power_of_two(format.bias) >> format.mantissa_bits : 0);
}

Range finite_range(ElementType type) {
  const Wide largest = largest_finite(info(type).format);
  return {-largest, largest};
}

/// Integers that a format holds one and all: those of at most mantissa_bits + 1 bits.
Range whole_numbers(const FloatFormat& format) {
  const Wide limit = std::min(power_of_two(format.mantissa_bits + 1), largest_finite(format));
  return {-limit, limit};
}

/// From its ends on, inclusive, every number is the same after conversion to the format: overflow
/// to infinity, or to the largest finite number, begins half a last place above that.
Range settled_outside(const FloatFormat& format) {
  if (format.bias >= 99) return everything;
  const Wide half_place = power_of_two(format.bias) >> (format.mantissa_bits + 1);
  const Wide limit = largest_finite(format) + std::max<Wide>(half_place, 1);
  return {-limit, limit};
}

// ---- Facts about one conversion.

/// Whether a format holds every number of another.
bool holds(const FloatFormat& wide, const FloatFormat& narrow) {
  return wide.mantissa_bits >= narrow.mantissa_bits && wide.bias >= narrow.bias;
}

/// Exponent of the smallest subnormal number.
int least_exponent(const FloatFormat& format) { return 1 - format.bias - format.mantissa_bits; }

bool keeps_nonzero(ElementType from, ElementType to, const ConvertOptions& options) {
  if (is_boolean(from) || is_boolean(to)) return true;
  if (is_float(from)) {
    return is_float(to) && least_exponent(info(from).format) >= least_exponent(info(to).format);
  }
  if (is_float(to)) return true;
  if (saturates(options)) return is_unsigned_integer(from) || is_signed_integer(to);
  return bits_of(from) <= bits_of(to);
}

/// The values that a conversion from integers or boolean leaves as they are; beyond them it is
/// monotone. Nothing if it is neither.
std::optional<Range> range_kept(ElementType from, ElementType to, const ConvertOptions& options) {
  if (is_float(to)) return whole_numbers(info(to).format);
  if (range_of(to).contains(range_of(from))) return range_of(from);
  if (is_integer(to) && saturates(options)) return range_of(to);
  return std::nullopt;
}

/// The values outside of which a conversion of whole numbers gives one result on each side.
Range range_told_apart(ElementType from, ElementType to, const ConvertOptions& options,
                       const Range& values) {
  if (is_float(to)) return settled_outside(info(to).format);
  const bool clamps = is_float(from) ? options.overflow != Overflow::wrap
                                     : saturates(options) || range_of(to).contains(values);
  return clamps ? range_of(to) : everything;
}

/// Whether infinity and the largest finite number of `from` convert alike.
bool infinity_is_largest(ElementType from, ElementType to, const ConvertOptions& options) {
  const FloatFormat& format = info(from).format;
  if (is_float(to)) return !holds(info(to).format, format) && info(to).format.bias <= format.bias;
  if (is_boolean(to)) return true;
  const Wide largest = largest_finite(format);
  return options.overflow == Overflow::wrap ? largest >= power_of_two(64)
                                            : largest >= range_of(to).high;
}

/// Whether float -> integer with overflow = wrap sees the same values fit with either destination:
/// u64 takes those that fit u64, any other type those that fit i64.
bool same_values_fit(ElementType from, ElementType middle, ElementType to) {
  const FloatFormat& format = info(from).format;
  if ((middle == ElementType::u64) == (to == ElementType::u64)) return true;
  if (largest_finite(format) < power_of_two(63)) return true;
  // From 2^63 on, values are multiples of 2^(63 - mantissa_bits): their low bits are 0 anyhow.
  return middle == ElementType::u64 && 63 - format.mantissa_bits >= bits_of(to);
}

/// Whether float -> unsigned -> narrower unsigned wraps nothing but infinity, all ones to all ones.
bool only_infinity_wraps(const ConversionPair& pair) {
  return is_unsigned_integer(pair.middle) && is_unsigned_integer(pair.to) &&
         finite_range(pair.from).high <= range_of(pair.to).high;
}

// ---- The rules. Each gives the merged options, or nothing where it does not apply.

MaybeOptions boolean_asks_for_nonzero(const ConversionPair& pair) {
  if (!is_boolean(pair.to) || !keeps_nonzero(pair.from, pair.middle, pair.first)) return {};
  return ConvertOptions{};
}

MaybeOptions saturation_comes_later(const ConversionPair& pair) {
  if (pair.middle != pair.to || !is_float(pair.to) || !saturates(pair.second)) return {};
  return ConvertOptions{.overflow = Overflow::saturate};
}

MaybeOptions lost_integers_settle(const ConversionPair& pair) {
  if (!is_whole(pair.from) || is_boolean(pair.to)) return {};
  const Range values = range_of(pair.from);
  const std::optional<Range> kept = range_kept(pair.from, pair.middle, pair.first);
  if (!kept) return {};
  const Range told_apart =
      range_told_apart(pair.middle, pair.to, pair.second, clamped(values, *kept));
  if (values.low < kept->low && told_apart.low < kept->low) return {};
  if (values.high > kept->high && told_apart.high > kept->high) return {};
  if (is_float(pair.to)) return ConvertOptions{.overflow = pair.second.overflow};
  const bool clamps = told_apart.high != everything.high && !range_of(pair.to).contains(values);
  return ConvertOptions{.overflow = clamps ? Overflow::saturate : Overflow::by_type};
}

MaybeOptions integers_wrap_twice(const ConversionPair& pair) {
  if (!is_integer(pair.from) || !is_integer(pair.middle) || !is_integer(pair.to)) return {};
  if (!is_default(pair.first) || !is_default(pair.second)) return {};
  if (bits_of(pair.to) > bits_of(pair.middle)) return {};
  return ConvertOptions{};
}

MaybeOptions float_is_widened_first(const ConversionPair& pair) {
  if (!is_float(pair.from) || !is_float(pair.middle) || pair.from == pair.to) return {};
  if (!holds(info(pair.middle).format, info(pair.from).format)) return {};
  if (saturates(pair.first) && !infinity_is_largest(pair.middle, pair.to, pair.second)) return {};
  return pair.second;
}

MaybeOptions float_is_clamped_twice(const ConversionPair& pair) {
  if (!is_float(pair.from) || !is_integer(pair.middle) || !is_integer(pair.to)) return {};
  if (pair.first.overflow == Overflow::wrap) return {};
  if (!range_of(pair.middle).contains(range_of(pair.to))) return {};
  if (!saturates(pair.second) && !only_infinity_wraps(pair)) return {};
  return ConvertOptions{.rounding = pair.first.rounding};
}

MaybeOptions float_wraps_twice(const ConversionPair& pair) {
  if (!is_float(pair.from) || !is_integer(pair.middle) || !is_integer(pair.to)) return {};
  if (pair.first.overflow != Overflow::wrap) return {};
  const bool fits_middle = range_of(pair.middle).contains(finite_range(pair.from));
  const bool fits_to = range_of(pair.to).contains(finite_range(pair.from));
  if (!fits_middle && bits_of(pair.to) > bits_of(pair.middle)) return {};
  if (saturates(pair.second) && !(fits_middle && fits_to)) return {};
  if (!same_values_fit(pair.from, pair.middle, pair.to)) return {};
  return pair.first;
}

/// First match wins.
constexpr MaybeOptions (*rules[])(const ConversionPair&) = {
    // -> boolean: the first conversion tells zero from nonzero.
    boolean_asks_for_nonzero,
    // A -> B -> B, saturate: saturating at once clamps the same overflows and infinities.
    saturation_comes_later,
    // Integer or boolean A: what the first conversion alters lies, on each side, where the second
    // gives one result. With a middle type that holds all of A nothing is altered; float to
    // integer saturates by default, so the merged integer to integer says saturate.
    lost_integers_settle,
    // Integers modulo 2^N, then modulo a power of two that divides 2^N.
    integers_wrap_twice,
    // Float A -> wider B -> C: nothing is lost but the signalling of NaNs, which any C but A loses
    // too; and infinities under saturate, where C does not tell them from the largest number.
    float_is_widened_first,
    // Rounding, then clamping to a range and to one inside it.
    float_is_clamped_twice,
    // Rounding, then low bits of low bits.
    float_wraps_twice,
};

/// The rules know integers, boolean, and floats with infinities and NaN payloads.
bool is_covered(ElementType type) { return is_whole(type) || has_infinities(type); }

}  // namespace

bool copies_bits(ElementType type, const ConvertOptions& options, bool normalised) {
  if (is_boolean(type)) return normalised;
  return !(is_float(type) && saturates(options) && has_infinities(type));
}

std::optional<ConvertOptions> merge_conversions(const ConversionPair& pair) {
  if (!is_covered(pair.from) || !is_covered(pair.middle) || !is_covered(pair.to)) return {};
  for (const auto& rule : rules) {
    if (const MaybeOptions merged = rule(pair)) {
      return canonical_options(pair.from, pair.to, *merged);
    }
  }
  return {};
}

}  // namespace castor
