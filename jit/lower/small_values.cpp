// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/small_values.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "jit/lower/convert.hpp"
#include "jit/lower/nf4.hpp"

namespace castor::jit {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The value of a code.
struct SmallValue {
  double value = 0;       ///< a number or an infinity
  bool negative = false;  ///< the sign, of zeros and NaNs as well
  bool is_nan = false;
  int payload = 0;  ///< of a NaN: the top two mantissa bits, the quiet bit set
};

/// x * 2^exponent for numbers that stay normal.
double scaled(double x, int exponent) { return std::ldexp(x, exponent); }

// ---- Values of codes.

SmallValue number(double value) { return {.value = value, .negative = std::signbit(value)}; }

SmallValue float_value(int code, const FloatFormat& format, int bits) {
  const int mantissa_bits = format.mantissa_bits;
  const bool negative = code >> (bits - 1) != 0;
  const int magnitude = code & ((1 << (bits - 1)) - 1);
  const int exponent = magnitude >> mantissa_bits;
  const int mantissa = magnitude & ((1 << mantissa_bits) - 1);
  const bool is_top = exponent == (1 << format.exponent_bits) - 1;
  const double sign = negative ? -1 : 1;
  switch (format.specials) {
    case FloatSpecials::ieee:
      if (is_top && mantissa == 0) return number(sign * infinity);
      if (is_top) return {.negative = negative, .is_nan = true, .payload = mantissa | 2};
      break;
    case FloatSpecials::nan_only:
      if (magnitude == (1 << (bits - 1)) - 1) {
        return {.negative = negative, .is_nan = true, .payload = 2};
      }
      break;
    case FloatSpecials::fnuz:
      if (negative && magnitude == 0) return {.negative = true, .is_nan = true, .payload = 2};
      break;
    case FloatSpecials::finite: break;
  }
  const int units = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  const int unit = std::max(exponent, 1) - format.bias - mantissa_bits;
  return number(sign * scaled(units, unit));
}

SmallValue integer_value(int code, ElementType type) {
  const int bits = bits_of(type);
  const bool negative = is_signed_integer(type) && code >> (bits - 1) != 0;
  return number(negative ? code - (1 << bits) : code);
}

/// The value of a code of a type of at most eight bits; bits above the type's are ignored.
SmallValue small_value(ElementType type, int code) {
  code &= (1 << bits_of(type)) - 1;
  switch (kind_of(type)) {
    case ElementKind::boolean: return number(code != 0);
    case ElementKind::unsigned_integer:
    case ElementKind::signed_integer: return integer_value(code, type);
    case ElementKind::floating: return float_value(code, info(type).format, bits_of(type));
    case ElementKind::power_of_two:
      return code == 255 ? SmallValue{.is_nan = true, .payload = 2} : number(scaled(1, code - 127));
    case ElementKind::codebook: return number(nf4_values[static_cast<size_t>(code)]);
  }
  return {};
}

// ---- Rounding a number to an integer.

double nearest_even(double x) {
  const double below = std::floor(x);
  const double fraction = x - below;
  const bool odd = std::fabs(below - 2 * std::floor(below / 2)) == 1;
  return below + (fraction > 0.5 || (fraction == 0.5 && odd) ? 1 : 0);
}

double rounded(double x, Rounding rounding) {
  switch (rounding) {
    case Rounding::by_type:
    case Rounding::toward_zero: return std::trunc(x);
    case Rounding::nearest_even: return nearest_even(x);
    case Rounding::nearest_away: return std::copysign(std::floor(std::fabs(x) + 0.5), x);
    case Rounding::down: return std::floor(x);
    case Rounding::up: return std::ceil(x);
    case Rounding::half_up: return std::floor(x + 0.5);
  }
  return x;
}

// ---- Codes of values.

int sign_bit(ElementType type) { return 1 << (bits_of(type) - 1); }

int largest_code(ElementType type) {
  const FloatFormat& format = info(type).format;
  const int all = sign_bit(type) - 1;
  switch (format.specials) {
    case FloatSpecials::ieee: return all - (1 << format.mantissa_bits);
    case FloatSpecials::nan_only: return all - 1;
    case FloatSpecials::fnuz:
    case FloatSpecials::finite: break;
  }
  return all;
}

int nan_code(const SmallValue& nan, ElementType type, const ConvertOptions& options) {
  const FloatFormat& format = info(type).format;
  const int sign = nan.negative ? sign_bit(type) : 0;
  switch (format.specials) {
    case FloatSpecials::ieee: {
      const int infinity_code = sign_bit(type) - (1 << format.mantissa_bits);
      return sign | infinity_code | nan.payload << (format.mantissa_bits - 2);
    }
    case FloatSpecials::nan_only: return sign | (sign_bit(type) - 1);
    case FloatSpecials::fnuz: return sign_bit(type);
    case FloatSpecials::finite: break;
  }
  return options.nan == NanMode::zero ? sign ^ sign_bit(type) : sign | (sign_bit(type) - 1);
}

int overflow_code(const SmallValue& source, ElementType type, const ConvertOptions& options) {
  const FloatFormat& format = info(type).format;
  const int sign = source.negative ? sign_bit(type) : 0;
  const bool is_infinity = std::isinf(source.value);
  const bool saturates = options.overflow == Overflow::saturate ||
                         (options.overflow == Overflow::saturate_finite && !is_infinity);
  if (saturates || format.specials == FloatSpecials::finite) return sign | largest_code(type);
  if (format.specials == FloatSpecials::ieee) return sign | (largest_code(type) + 1);
  return nan_code(source, type, options);
}

int float_code(const SmallValue& source, ElementType type, const ConvertOptions& options) {
  if (source.is_nan) return nan_code(source, type, options);
  const double magnitude = std::fabs(source.value);
  if (magnitude == infinity) return overflow_code(source, type, options);
  const FloatFormat& format = info(type).format;
  const int sign = source.negative ? sign_bit(type) : 0;
  int code = 0;
  if (magnitude != 0) {
    // The significand in units of the last place; subnormal numbers have those of the least normal
    // exponent. The hidden bit of a normal number adds one to the exponent.
    const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias);
    const double units = nearest_even(scaled(magnitude, format.mantissa_bits - exponent));
    code = static_cast<int>(units) + ((exponent + format.bias - 1) << format.mantissa_bits);
  }
  if (code > largest_code(type)) return overflow_code(source, type, options);
  return code == 0 && format.specials == FloatSpecials::fnuz ? 0 : sign | code;
}

int integer_code(const SmallValue& source, ElementType from, ElementType to,
                 const ConvertOptions& options) {
  if (source.is_nan) return 0;
  const bool from_float = !is_whole(from);
  const bool wraps =
      from_float ? options.overflow == Overflow::wrap : options.overflow != Overflow::saturate;
  const double value =
      std::isinf(source.value) ? source.value : rounded(source.value, options.rounding);
  if (wraps) return std::fabs(value) < 0x1p63 ? static_cast<int>(static_cast<int64_t>(value)) : 0;
  const auto smallest = static_cast<double>(integer_min(to));
  const auto largest = static_cast<double>(integer_max(to));
  return static_cast<int>(std::fmin(std::fmax(value, smallest), largest));
}

int power_code(const SmallValue& source, const ConvertOptions& options) {
  constexpr int nan = 255;
  constexpr int largest = 254;
  if (source.is_nan) return nan;
  const double value = source.value;
  const bool outside = value < 0x1p-127 || value > 0x1p127;
  if (outside && options.overflow == Overflow::nan) return nan;
  if (value < 0x1p-127) return 0;
  if (value > 0x1p127) return largest;
  const int code = std::ilogb(value) + 127;
  const double fraction = scaled(value, 127 - code);  // from 1 to below 2
  switch (options.rounding) {
    case Rounding::up: return code + (fraction > 1 ? 1 : 0);
    case Rounding::down: return code;
    case Rounding::half_up: return code + (fraction >= 1.5 ? 1 : 0);
    default: return code + (fraction > 1.5 || (fraction == 1.5 && code % 2 == 1) ? 1 : 0);
  }
}

int code_of(const SmallValue& source, ElementType from, ElementType to,
            const ConvertOptions& options) {
  switch (kind_of(to)) {
    case ElementKind::boolean: return source.is_nan || source.value != 0;
    case ElementKind::unsigned_integer:
    case ElementKind::signed_integer: return integer_code(source, from, to, options);
    case ElementKind::floating: return float_code(source, to, options);
    case ElementKind::power_of_two: return power_code(source, options);
    case ElementKind::codebook: return source.is_nan ? 0 : nf4_code(source.value);
  }
  return 0;
}

/// T -> T copies bits, but for boolean and, under saturate, infinities.
int same_type_code(int code, ElementType type, const ConvertOptions& options) {
  if (is_boolean(type)) return code != 0;
  const SmallValue source = small_value(type, code);
  const bool clamps = is_float(type) && options.overflow == Overflow::saturate;
  return clamps && std::isinf(source.value) ? float_code(source, type, options) : code;
}

}  // namespace

std::optional<ByteTable> conversion_table(ElementType from, ElementType to,
                                          const ConvertOptions& options) {
  if (bits_of(from) > 8 || bits_of(to) > 16) return std::nullopt;
  ByteTable table;
  table.index_bits = conversion_table_bits(bits_of(from));
  const int mask = (1 << bits_of(to)) - 1;
  for (size_t i = 0; i < size_t{1} << table.index_bits; ++i) {
    const int code = static_cast<int>(i) & ((1 << bits_of(from)) - 1);
    const int converted = from == to ? same_type_code(code, from, options)
                                     : code_of(small_value(from, code), from, to, options);
    table.entries[i] = static_cast<uint16_t>(converted & mask);
  }
  return table;
}

int code_of_integer(int64_t value, ElementType to, const ConvertOptions& options) {
  const SmallValue number_of_value = number(static_cast<double>(value));
  return code_of(number_of_value, ElementType::i64, to, options) & ((1 << bits_of(to)) - 1);
}

int converted_code(int bits, ElementType from, ElementType to, const ConvertOptions& options) {
  const FloatFormat& format = info(from).format;
  SmallValue value = float_value(bits, format, 16);
  if (value.is_nan) value.payload = (value.payload >> (format.mantissa_bits - 2) & 3) | 2;
  return code_of(value, from, to, options) & ((1 << bits_of(to)) - 1);
}

std::optional<StoreTable> store_table(ElementType from, ElementType to,
                                      const ConvertOptions& options, bool looks_up_f32) {
  if (bits_of(from) > 8) return std::nullopt;
  if (bits_of(to) == 16) {
    if (is_whole(from) && is_integer(to)) return std::nullopt;  // an extension
    return StoreTable{*conversion_table(from, to, options), Narrowing::look_up_16};
  }
  // Numbers that fit i16 but not i8, which has shorter ways.
  const bool is_within_i16 = kind_of(from) == ElementKind::floating && !has_infinities(from) &&
                             largest_finite(from) > 127 && largest_finite(from) < 32768;
  if (is_integer(to) && bits_of(to) >= 32 && is_within_i16) {
    const bool is_cut = is_signed_integer(to) || options.overflow == Overflow::wrap;
    return StoreTable{
        *conversion_table(from, is_cut ? ElementType::i16 : ElementType::u16, options),
        Narrowing::look_up_i16};
  }
  // Every float of 4 to 8 bits is a bf16, the upper half of f32, but for an infinity that
  // saturates; numbers of nf4 are none.
  const bool is_looked_up =
      looks_up_f32 ? has_f32_table(from) : kind_of(from) == ElementKind::codebook;
  const bool is_small_float = !is_whole(from) && !is_looked_up;
  if (to != ElementType::f32 || !is_small_float || options.overflow == Overflow::saturate) {
    return std::nullopt;
  }
  return StoreTable{*conversion_table(from, ElementType::bf16, {}), Narrowing::look_up_upper_16};
}

I32Table f32_table(ElementType type) {
  I32Table table;
  for (size_t i = 0; i < size_t{1} << table.index_bits; ++i) {
    table.entries[i] =
        std::bit_cast<uint32_t>(static_cast<float>(small_value(type, static_cast<int>(i)).value));
  }
  return table;
}

}  // namespace castor::jit
