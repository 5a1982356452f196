// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/term/native_floats.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <vector>

#include "tools/prove/term/soft_float.hpp"

namespace castor::prove {
namespace {

using Lanes = Batch::Lanes;

uint64_t bits_of_float(float value) {
  return value != value ? static_cast<uint64_t>(f32_format.nan()) : std::bit_cast<uint32_t>(value);
}
uint64_t bits_of_float(double value) {
  return value != value ? static_cast<uint64_t>(f64_format.nan()) : std::bit_cast<uint64_t>(value);
}

/// f16 numbers, all of which a double holds.
double f16_value(uint64_t bits) {
  static const std::vector<double> values = [] {
    std::vector<double> all;
    for (Bits number = 0; number < 0x10000; ++number) {
      const Bits wide = soft::convert(f16_format, f64_format, Rounding::nearest_even, number);
      all.push_back(std::bit_cast<double>(static_cast<uint64_t>(wide)));
    }
    return all;
  }();
  return values[bits];
}

/// The nearest number of a format, ties to even. A double is rounded to a multiple of the unit of
/// the last place by adding and subtracting 1.5 * 2^52 such units.
template <FloatFormat format>
uint64_t nearest(double value) {
  constexpr int double_bias = f64_format.bias();
  constexpr int double_fraction = f64_format.fraction_bits();
  constexpr int min_exponent = 1 - format.bias();
  constexpr int fraction = format.fraction_bits();
  if (value != value) return static_cast<uint64_t>(format.nan());
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint64_t sign = bits >> 63 << (format.width() - 1);
  const int own_exponent = static_cast<int>(bits >> double_fraction & 0x7ff) - double_bias;
  const int exponent = std::max(own_exponent, min_exponent);
  if (exponent > format.bias()) return sign | static_cast<uint64_t>(format.infinity());
  const auto power = [](int of_two) {
    return std::bit_cast<double>(static_cast<uint64_t>(of_two + double_bias) << double_fraction);
  };
  const double shift = 1.5 * power(exponent - fraction + double_fraction);
  const double rounded = std::fabs(value) + shift - shift;
  // A unit more may carry into the exponent, and to infinity, as codes do.
  const auto units = static_cast<uint64_t>(rounded * power(fraction - exponent));
  return sign | ((static_cast<uint64_t>(exponent - min_exponent) << fraction) + units);
}

/// Floats of one format as a C++ type.
template <class Float>
struct Native;
template <>
struct Native<float> {
  static float value(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
  static uint64_t bits(double value) { return bits_of_float(static_cast<float>(value)); }
};
template <>
struct Native<double> {
  static double value(uint64_t bits) { return std::bit_cast<double>(bits); }
  static uint64_t bits(double value) { return bits_of_float(value); }
};
/// f16 as doubles: sums and products of two are exact, and quotients and roots rounded to 53 bits
/// round to 11 as they would at once, since 53 is at least 2 * 11 + 2.
struct Half {
  static double value(uint64_t bits) { return f16_value(bits); }
  static uint64_t bits(double value) { return nearest<f16_format>(value); }
};
/// bf16 as floats: for conversions alone.
struct Brain {
  static float value(uint64_t bits) { return Native<float>::value(bits << 16); }
  static uint64_t bits(double value) { return nearest<bf16_format>(value); }
};

/// Arithmetic to nearest even, which this process's own is.
template <class Format>
bool computed_natively(const Node& node, Lanes& to, const std::array<const Lanes*, 3>& v) {
  const auto value = [&](size_t k, size_t i) { return Format::value((*v[k])[i]); };
  switch (node.op) {
    case TermOp::float_add:
      for_lanes(to, 64, [&](size_t i) { return Format::bits(value(0, i) + value(1, i)); });
      return true;
    case TermOp::float_mul:
      for_lanes(to, 64, [&](size_t i) { return Format::bits(value(0, i) * value(1, i)); });
      return true;
    case TermOp::float_div:
      for_lanes(to, 64, [&](size_t i) { return Format::bits(value(0, i) / value(1, i)); });
      return true;
    case TermOp::float_sqrt:
      for_lanes(to, 64, [&](size_t i) { return Format::bits(std::sqrt(value(0, i))); });
      return true;
    case TermOp::float_fma:
      if constexpr (std::is_same_v<Format, Half>) return false;
      for_lanes(to, 64, [&](size_t i) {
        return Format::bits(std::fma(value(0, i), value(1, i), value(2, i)));
      });
      return true;
    case TermOp::float_remainder:
      for_lanes(to, 64,
                [&](size_t i) { return Format::bits(std::fmod(value(0, i), value(1, i))); });
      return true;
    default: return false;
  }
}

/// A conversion between two formats, to nearest even.
bool converted_natively(const FloatDetail& detail, Lanes& to, const Lanes& from) {
  const auto convert = [&](auto source, auto target) {
    for_lanes(to, 64,
              [&](size_t i) { return decltype(target)::bits(decltype(source)::value(from[i])); });
    return true;
  };
  const auto to_any = [&](auto source) {
    if (detail.format == f16_format) return convert(source, Half());
    if (detail.format == bf16_format) return convert(source, Brain());
    if (detail.format == f32_format) return convert(source, Native<float>());
    if (detail.format == f64_format) return convert(source, Native<double>());
    return false;
  };
  if (detail.from == f16_format) return to_any(Half());
  if (detail.from == bf16_format) return to_any(Brain());
  if (detail.from == f32_format) return to_any(Native<float>());
  return detail.from == f64_format && to_any(Native<double>());
}

/// An integer to f32 or f64, to nearest even.
bool converted_from_integer(const Node& node, int width, const FloatDetail& detail, Lanes& to,
                            const Lanes& from) {
  const bool is_signed = node.op == TermOp::signed_to_float;
  const auto convert = [&](auto zero) {
    using Float = decltype(zero);
    for_lanes(to, 64, [&](size_t i) {
      const int shift = 64 - width;
      const auto number = static_cast<int64_t>(from[i] << shift) >> shift;
      return bits_of_float(is_signed ? static_cast<Float>(number) : static_cast<Float>(from[i]));
    });
    return true;
  };
  if (detail.format == f32_format) return convert(0.0f);
  return detail.format == f64_format && convert(0.0);
}

/// Rounds a double to an integral value.
double (*rounding_function(Rounding rounding))(double) {
  switch (rounding) {
    case Rounding::nearest_even: return std::nearbyint;
    case Rounding::down: return std::floor;
    case Rounding::up: return std::ceil;
    case Rounding::toward_zero: return std::trunc;
    case Rounding::nearest_away: return std::round;
  }
  return nullptr;
}

/// Rounding to an integral value, which doubles do for all formats.
bool rounded_natively(const FloatDetail& detail, Lanes& to, const Lanes& from) {
  double (*const round)(double) = rounding_function(detail.rounding);
  const auto compute = [&](auto format) {
    for_lanes(to, 64, [&](size_t i) {
      using Float = decltype(decltype(format)::value(0));
      return decltype(format)::bits(static_cast<Float>(round(decltype(format)::value(from[i]))));
    });
    return true;
  };
  if (detail.format == f16_format) return compute(Half());
  if (detail.format == f32_format) return compute(Native<float>());
  return detail.format == f64_format && compute(Native<double>());
}

/// An integer of at most 32 bits, as x86 converts: out of range and of NaN the sign bit alone where
/// signed, else all ones.
bool converted_to_integer(const Node& node, const FloatDetail& detail, Lanes& to,
                          const Lanes& from) {
  constexpr int max_bits = 32;
  if (node.width > max_bits) return false;
  double (*const round)(double) = rounding_function(detail.rounding);
  const bool is_signed = node.op == TermOp::float_to_signed;
  const double limit = std::ldexp(1.0, is_signed ? node.width - 1 : node.width);
  const double least = is_signed ? -limit : 0;
  const uint64_t invalid = is_signed ? uint64_t{1} << (node.width - 1) : mask_of(node.width);
  const auto compute = [&](auto format) {
    for_lanes(to, node.width, [&](size_t i) {
      const double value = round(decltype(format)::value(from[i]));
      const bool is_valid = value >= least && value < limit;
      return is_valid ? static_cast<uint64_t>(static_cast<int64_t>(value)) : invalid;
    });
    return true;
  };
  if (detail.format == f16_format) return compute(Half());
  if (detail.format == f32_format) return compute(Native<float>());
  return detail.format == f64_format && compute(Native<double>());
}

}  // namespace

bool compute_natively(const Node& node, int operand_width, Lanes& to,
                      const std::array<const Lanes*, 3>& v) {
  const FloatDetail detail = FloatDetail::unpacked(node.detail);
  const bool is_nearest = detail.rounding == Rounding::nearest_even;
  switch (node.op) {
    case TermOp::float_round: return rounded_natively(detail, to, *v[0]);
    case TermOp::float_to_signed:
    case TermOp::float_to_unsigned: return converted_to_integer(node, detail, to, *v[0]);
    case TermOp::float_convert: return is_nearest && converted_natively(detail, to, *v[0]);
    case TermOp::signed_to_float:
    case TermOp::unsigned_to_float:
      return is_nearest && converted_from_integer(node, operand_width, detail, to, *v[0]);
    default: break;
  }
  if (!is_nearest && node.op != TermOp::float_remainder) return false;
  if (detail.format == f16_format) return computed_natively<Half>(node, to, v);
  if (detail.format == f32_format) return computed_natively<Native<float>>(node, to, v);
  return detail.format == f64_format && computed_natively<Native<double>>(node, to, v);
}

}  // namespace castor::prove
