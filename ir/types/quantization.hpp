// SPDX-License-Identifier: Apache-2.0
// Quantized tensors: integers that stand for real numbers by scale, fractional bits, zero point.
// Source: embARC MLI 2.0, data formats and data conversion group.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/export.hpp"
#include "ir/types/element_type.hpp"

namespace castor {

/// In table order; the value of a container's integer x is (x - zero_point) * scale / 2^frac.
enum class QuantizedFormat : uint8_t {
  fx8,   ///< fixed point: scale 1, zero point 0
  fx16,  ///< as fx8, 16 bits
  sa8,   ///< signed asymmetric
  sa32,  ///< as sa8, 32 bits
};

/// One row of the table of quantized formats.
struct QuantizedInfo {
  QuantizedFormat format;
  std::string_view name;
  ElementType container;
  bool is_asymmetric;  ///< has scale and zero point, and may be quantized along an axis
};
inline constexpr std::array<QuantizedInfo, 4> quantized_table = {{
    {QuantizedFormat::fx8, "fx8", ElementType::i8, false},
    {QuantizedFormat::fx16, "fx16", ElementType::i16, false},
    {QuantizedFormat::sa8, "sa8", ElementType::i8, true},
    {QuantizedFormat::sa32, "sa32", ElementType::i32, true},
}};
constexpr const QuantizedInfo& info(QuantizedFormat format) {
  return quantized_table[static_cast<size_t>(format)];
}
/// Whether a number that came from outside is one of the enumeration.
constexpr bool is_quantized_format(QuantizedFormat format) {
  return static_cast<size_t>(format) < quantized_table.size();
}
CASTOR_API std::optional<QuantizedFormat> quantized_format_named(std::string_view name);

/// A parameter of each slice, or nothing where it is given at run time.
using QuantizationParameter = std::optional<std::vector<int32_t>>;

/// How the integers of a tensor stand for real numbers. A slice is the whole tensor, or one index
/// of the axis; each parameter has one entry for each slice.
struct Quantization {
  static constexpr int per_tensor = -1;

  QuantizedFormat format = QuantizedFormat::fx8;
  int axis = per_tensor;               ///< axis of the slices; asymmetric formats only
  QuantizationParameter scale{};       ///< 1 to 32767; asymmetric formats only
  QuantizationParameter frac{};        ///< fractional bits, -128 to 127
  QuantizationParameter zero_point{};  ///< -32768 to 32767; asymmetric formats only

  bool is_per_axis() const { return axis != per_tensor; }
  friend bool operator==(const Quantization&, const Quantization&) = default;
};

/// One of a quantization's parameters: its name and range, and the type that it has at run time.
struct QuantizationRule {
  std::string_view name;
  QuantizationParameter Quantization::*parameter;
  int32_t min;
  int32_t max;
  ElementType element;
  bool asymmetric_only;
};
inline constexpr std::array<QuantizationRule, 3> quantization_rules = {{
    {"scale", &Quantization::scale, 1, 32767, ElementType::i16, true},
    {"frac", &Quantization::frac, -128, 127, ElementType::i8, false},
    {"zero_point", &Quantization::zero_point, -32768, 32767, ElementType::i16, true},
}};

/// How results are computed.
enum class RequantizeArithmetic : uint8_t {
  exact,   ///< the specification's formula on real numbers, rounded once, then saturated
  embarc,  ///< bit for bit what the embARC MLI library computes on a device
};

/// How results between two integers are rounded; to f32, it is always to the nearest, ties to even.
enum class RequantizeRounding : uint8_t {
  half_up,       ///< floor(v + 1/2): the library's variant `up`
  nearest_even,  ///< ties to even: the library's variant `convergent`
};

struct RequantizeOptions {
  RequantizeArithmetic arithmetic = RequantizeArithmetic::exact;
  RequantizeRounding rounding = RequantizeRounding::half_up;
  friend bool operator==(const RequantizeOptions&, const RequantizeOptions&) = default;
};

/// "sa8<axis = 1, scale = [3, 4], frac = [7, 8], zero_point = ?>", as the text form has it.
CASTOR_API std::string to_string(const Quantization& quantization);

}  // namespace castor
