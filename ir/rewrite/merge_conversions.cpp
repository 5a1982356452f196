// SPDX-License-Identifier: Apache-2.0
// Merging two conversions: a table of rules, each of which keeps every bit (ir/README.md, Convert).
#include "ir/rewrite/merge_conversions.hpp"

#include <algorithm>

#include "ir/numerics/format.hpp"
#include "ir/numerics/unpacked.hpp"

namespace castor {

namespace {

using MaybeOptions = std::optional<ConvertOptions>;
__extension__ using Wide = __int128;
using numerics::decode;
using numerics::encode;
using numerics::NumberClass;
using numerics::Unpacked;

bool saturates(const ConvertOptions& options) { return options.overflow == Overflow::saturate; }
bool is_default(const ConvertOptions& options) { return options.overflow == Overflow::by_type; }

// ---- Ranges of integers.

struct Range {
  Wide low;
  Wide high;
  bool contains(const Range& other) const { return low <= other.low && other.high <= high; }
  friend bool operator==(const Range&, const Range&) = default;
};

constexpr Wide beyond_all = Wide{1} << 100;
constexpr Range everything = {-beyond_all, beyond_all};

Range range_of(ElementType type) { return {integer_min(type), integer_max(type)}; }

Range clamped(const Range& range, const Range& limits) {
  return {std::clamp(range.low, limits.low, limits.high),
          std::clamp(range.high, limits.low, limits.high)};
}

Wide power_of_two(int exponent) { return exponent < 100 ? Wide{1} << exponent : beyond_all; }

/// A number's magnitude without its fraction, cut off at 2^100.
Wide whole_part(const Unpacked& number) {
  if (number.kind == NumberClass::zero || number.exponent < 0) return 0;
  if (number.exponent >= 100) return beyond_all;
  const Wide significand = number.significand;
  return number.exponent < 63 ? significand >> (63 - number.exponent)
                              : significand << (number.exponent - 63);
}

/// The same rounded up: what the magnitude rounds to at most.
Wide rounded_up(const Unpacked& number) {
  const bool is_whole_number =
      number.kind == NumberClass::zero ||
      (number.exponent >= 0 &&
       (number.exponent >= 63 || number.significand << (number.exponent + 1) == 0));
  return whole_part(number) + (is_whole_number ? 0 : 1);
}

/// The largest finite number of a type that is not whole; 7.5 in f6e2m3, in others a whole number.
Unpacked largest_finite(ElementType type) {
  constexpr ConvertOptions saturate = {.overflow = Overflow::saturate};
  constexpr Unpacked infinity = {.kind = NumberClass::infinity};
  return decode(encode(infinity, ElementType::f64, type, saturate), type);
}

/// What the finite numbers of a type that is not whole can round to; f8e8m0 has none below 0.
Range finite_range(ElementType type) {
  const Wide largest = rounded_up(largest_finite(type));
  return {type == ElementType::f8e8m0 ? 0 : -largest, largest};
}

/// The finite range, or everything where the type has infinities: they are beyond all.
Range range_with_infinities(ElementType type) {
  return has_infinities(type) ? everything : finite_range(type);
}

/// Whole numbers that a type holds one and all: of a float, those of at most mantissa_bits + 1
/// bits; of nf4, -1, 0 and 1; of f8e8m0 nothing that begins with 0.
std::optional<Range> whole_numbers(ElementType type) {
  if (type == ElementType::f8e8m0) return std::nullopt;
  const Wide digits = is_float(type) ? power_of_two(info(type).format.mantissa_bits + 1) : 1;
  const Wide limit = std::min(digits, whole_part(largest_finite(type)));
  return Range{-limit, limit};
}

/// The range from whose ends on, inclusive, every whole number is the same after conversion to the
/// type: overflow, to infinity, NaN or the largest finite number, begins half a last place above
/// that, or, if the tie goes down, just above it. f8e8m0 tells no numbers up to 0 apart.
Range settled_outside(ElementType type) {
  if (type == ElementType::f8e8m0) return {0, beyond_all};
  const Wide largest = whole_part(largest_finite(type));
  if (!is_float(type) || largest == beyond_all) return {-largest, largest};
  const Wide half_unit =
      power_of_two(largest_finite(type).exponent) >> (info(type).format.mantissa_bits + 1);
  const Wide limit = largest + std::max<Wide>(half_unit, 1) +
                     (info(type).format.specials == FloatSpecials::nan_only);
  return {-limit, limit};
}

// ---- Facts about one conversion.

/// Exponent of the smallest number above 0, rounded down; of types that are not whole.
int min_exponent(ElementType type) {
  switch (kind_of(type)) {
    case ElementKind::power_of_two: return -info(type).format.bias;
    case ElementKind::codebook: return -4;  // 0.0795...
    default: return 1 - info(type).format.bias - info(type).format.mantissa_bits;
  }
}

/// Significant bits after the first.
int fraction_bits(ElementType type) {
  return kind_of(type) == ElementKind::codebook ? 23 : info(type).format.mantissa_bits;
}

/// Whether a type that is not whole keeps every number of another, -0, infinities and NaNs (but
/// for their signalling) included.
bool holds(ElementType wide, ElementType narrow) {
  if (wide == narrow) return true;
  const bool has_negative_zero =
      is_float(wide) && info(wide).format.specials != FloatSpecials::fnuz;
  const bool has_specials =
      has_infinities(wide) || (has_negative_zero && !has_infinities(narrow) && !has_nans(narrow));
  if (!has_specials || narrow == ElementType::nf4) {
    return has_specials && fraction_bits(wide) >= fraction_bits(narrow);
  }
  return fraction_bits(wide) >= fraction_bits(narrow) &&
         min_exponent(wide) <= min_exponent(narrow) &&
         largest_finite(wide).exponent >= largest_finite(narrow).exponent;
}

bool keeps_nonzero(ElementType from, ElementType to, const ConvertOptions& options) {
  if (to == ElementType::f8e8m0) return from == to;  // which has no zero
  if (is_boolean(from) || is_boolean(to)) return true;
  if (is_whole(from)) {
    if (!is_whole(to)) return true;
    if (saturates(options)) return is_unsigned_integer(from) || is_signed_integer(to);
    return bits_of(from) <= bits_of(to);
  }
  if (is_whole(to)) return false;
  const bool nan_is_zero = options.nan == NanMode::zero && has_nans(from);
  const int min = to == ElementType::nf4 ? -1 : min_exponent(to);  // 0.0397... becomes 0
  return !nan_is_zero && min_exponent(from) >= min;
}

/// The values that a conversion from integers or boolean leaves as they are; beyond them it is
/// monotone. Nothing if it is neither.
std::optional<Range> range_kept(ElementType from, ElementType to, const ConvertOptions& options) {
  if (!is_whole(to)) {
    const bool overflows_to_nan =
        has_nans(to) && !has_infinities(to) && options.overflow != Overflow::saturate;
    if (overflows_to_nan && !finite_range(to).contains(range_of(from))) return std::nullopt;
    return whole_numbers(to);
  }
  if (range_of(to).contains(range_of(from))) return range_of(from);
  if (is_integer(to) && saturates(options)) return range_of(to);
  return std::nullopt;
}

/// The values outside of which a conversion of whole numbers gives one result on each side.
Range range_told_apart(ElementType from, ElementType to, const ConvertOptions& options,
                       const Range& values) {
  if (!is_whole(to)) return settled_outside(to);
  const bool clamps = !is_whole(from) ? options.overflow != Overflow::wrap
                                      : saturates(options) || range_of(to).contains(values);
  return clamps ? range_of(to) : everything;
}

/// Whether infinities and the largest finite numbers of `from` convert alike.
bool infinity_is_largest(ElementType from, ElementType to, const ConvertOptions& options) {
  const auto alike = [&](bool negative) {
    Unpacked largest = largest_finite(from);
    largest.negative = negative;
    const Unpacked infinity = {.kind = NumberClass::infinity, .negative = negative};
    return encode(infinity, from, to, options) == encode(largest, from, to, options);
  };
  return alike(false) && alike(true);
}

/// Whether float -> integer with overflow = wrap sees the same values fit with either destination:
/// u64 takes those that fit u64, any other type those that fit i64.
bool same_values_fit(ElementType from, ElementType middle, ElementType to) {
  if ((middle == ElementType::u64) == (to == ElementType::u64)) return true;
  if (finite_range(from).high < power_of_two(63)) return true;
  // From 2^63 on, values are multiples of 2^(63 - mantissa_bits): their low bits are 0 anyhow.
  return middle == ElementType::u64 && 63 - fraction_bits(from) >= bits_of(to);
}

/// Whether float -> unsigned -> narrower unsigned wraps nothing but infinity, all ones to all ones.
bool only_infinity_wraps(const ConversionPair& pair) {
  return is_unsigned_integer(pair.middle) && is_unsigned_integer(pair.to) &&
         bits_of(pair.to) <= bits_of(pair.middle) &&
         finite_range(pair.from).high <= range_of(pair.to).high;
}

// ---- The rules. Each gives the merged options, or nothing where it does not apply.

MaybeOptions boolean_asks_for_nonzero(const ConversionPair& pair) {
  if (!is_boolean(pair.to) || !keeps_nonzero(pair.from, pair.middle, pair.first)) return {};
  return ConvertOptions{};
}

MaybeOptions saturation_comes_later(const ConversionPair& pair) {
  if (pair.middle != pair.to || !has_infinities(pair.to) || !saturates(pair.second)) return {};
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
  if (!is_whole(pair.to)) return pair.second;
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
  if (is_whole(pair.from) || is_whole(pair.middle)) return {};
  if (!holds(pair.middle, pair.from)) return {};
  if (pair.from == pair.to) return has_infinities(pair.from) ? MaybeOptions() : ConvertOptions{};
  if (has_infinities(pair.from) && saturates(pair.first) &&
      !infinity_is_largest(pair.middle, pair.to, pair.second)) {
    // There are no infinities left that saturate_finite could keep.
    const bool saturates_all = pair.second.overflow == Overflow::saturate_finite;
    return saturates_all ? MaybeOptions({.overflow = Overflow::saturate}) : MaybeOptions();
  }
  return pair.second;
}

MaybeOptions float_is_clamped_twice(const ConversionPair& pair) {
  if (is_whole(pair.from) || !is_integer(pair.middle) || !is_integer(pair.to)) return {};
  const Range values = range_with_infinities(pair.from);
  const Range middle = range_of(pair.middle);
  const Range to = range_of(pair.to);
  if (pair.first.overflow == Overflow::wrap && !middle.contains(values)) return {};
  const Range image = clamped(values, middle);
  const bool second_clamps = saturates(pair.second) || to.contains(image);
  const bool clamps_alike = second_clamps && clamped(image, to) == clamped(values, to);
  if (!clamps_alike && !only_infinity_wraps(pair)) return {};
  return ConvertOptions{.rounding = pair.first.rounding};
}

MaybeOptions float_wraps_twice(const ConversionPair& pair) {
  if (is_whole(pair.from) || !is_integer(pair.middle) || !is_integer(pair.to)) return {};
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
    // Integer or boolean A: what the first conversion alters is, on each side, where the second
    // gives one result. With a middle type that holds all of A nothing is altered; float to
    // integer saturates by default, so the merged integer to integer says saturate.
    lost_integers_settle,
    // Integers modulo 2^N, then modulo a power of two that divides 2^N.
    integers_wrap_twice,
    // Float, f8e8m0 or nf4 A -> wider B -> C: nothing is lost but the signalling of NaNs, which any
    // C but A loses too; and infinities under saturate, where C does not tell them from the largest
    // number. Back to an A without them: the bits.
    float_is_widened_first,
    // Rounding, then clamping to a range and to one inside it.
    float_is_clamped_twice,
    // Rounding, then low bits of low bits.
    float_wraps_twice,
};

}  // namespace

bool copies_bits(ElementType type, const ConvertOptions& options, bool normalised) {
  if (is_boolean(type)) return normalised;
  return !(saturates(options) && has_infinities(type));
}

std::optional<ConvertOptions> merge_conversions(const ConversionPair& pair) {
  ConversionPair plain = pair;
  plain.first = canonical_options(pair.from, pair.middle, pair.first);
  plain.second = canonical_options(pair.middle, pair.to, pair.second);
  for (const auto& rule : rules) {
    if (const MaybeOptions merged = rule(plain)) {
      return canonical_options(pair.from, pair.to, *merged);
    }
  }
  return {};
}

}  // namespace castor
