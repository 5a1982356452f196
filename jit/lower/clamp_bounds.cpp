// SPDX-License-Identifier: Apache-2.0
// The bounds of `clamp`, numbers of any size, in the type that is clamped.
#include <algorithm>
#include <cmath>
#include <limits>

#include "jit/lower/convert.hpp"
#include "jit/lower/elementwise_families.hpp"

namespace castor::jit {

namespace {

int64_t saturated(int64_t value, ElementType type) {
  if (value < integer_min(type)) return integer_min(type);
  const uint64_t max = integer_max(type);
  return value > 0 && static_cast<uint64_t>(value) > max ? static_cast<int64_t>(max) : value;
}

/// An integral number as the type's bits, sign-extended.
uint64_t saturated(double value, ElementType type) {
  if (value <= static_cast<double>(integer_min(type))) {
    return static_cast<uint64_t>(integer_min(type));
  }
  if (value >= static_cast<double>(integer_max(type))) return integer_max(type);
  return value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value))
                   : static_cast<uint64_t>(value);
}

/// Rounded to odd where it is not exact: rounding once more, to a shorter format, is then rounding
/// the integer itself.
double odd_double(int64_t value) {
  constexpr uint64_t dropped = 0x7ff;
  uint64_t magnitude =
      value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  if (magnitude >> 53 != 0 && (magnitude & dropped) != 0) {
    magnitude = (magnitude & ~dropped) | (dropped + 1);
  }
  const auto exact = static_cast<double>(magnitude);
  return value < 0 ? -exact : exact;
}

/// To nearest even; beyond the largest number infinity, or where there is none, that number.
double nearest(double value, ElementType type) {
  if (value == 0) return value;
  const FloatFormat& format = info(type).format;
  double rounded = value;
  if (std::isfinite(value)) {
    const int last_place = std::max(std::ilogb(value), 1 - format.bias) - format.mantissa_bits;
    rounded = std::ldexp(std::nearbyint(std::ldexp(value, -last_place)), last_place);
  }
  const double largest = largest_finite(type);
  if (std::abs(rounded) <= largest) return rounded;
  const double beyond = has_infinities(type) ? std::numeric_limits<double>::infinity() : largest;
  return std::copysign(beyond, value);
}

}  // namespace

std::optional<uint64_t> integer_bound(const Elementwise& op, std::string_view name) {
  const AttributeValue* attribute = find(op.operation.attributes, name);
  if (attribute == nullptr) return std::nullopt;
  if (const auto* integer = std::get_if<int64_t>(&attribute->value)) {
    return static_cast<uint64_t>(saturated(*integer, op.type));
  }
  const double number = std::get<double>(attribute->value);
  return saturated(name == "lo" ? std::ceil(number) : std::floor(number), op.type);
}

std::optional<double> float_bound(const Elementwise& op, std::string_view name) {
  const AttributeValue* attribute = find(op.operation.attributes, name);
  if (attribute == nullptr) return std::nullopt;
  const auto* integer = std::get_if<int64_t>(&attribute->value);
  if (op.type == ElementType::f64) {
    return integer ? static_cast<double>(*integer) : std::get<double>(attribute->value);
  }
  return nearest(integer ? odd_double(*integer) : std::get<double>(attribute->value), op.type);
}

}  // namespace castor::jit
