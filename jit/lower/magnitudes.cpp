// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/magnitudes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "ir/types/element_type.hpp"

namespace castor::jit {

namespace {

constexpr double unknown = std::numeric_limits<double>::infinity();

/// The largest magnitude of a type.
double bound_of_type(ElementType type) {
  if (is_boolean(type)) return 1;
  if (!is_integer(type)) return unknown;
  return std::max(static_cast<double>(integer_max(type)), -static_cast<double>(integer_min(type)));
}

/// Whether a constant takes little time to read.
bool is_short(const Operation& constant) {
  constexpr size_t max_bytes = size_t{1} << 16;
  return constant.data->bytes.size() <= max_bytes;
}

/// The least and the largest magnitude in a constant.
struct Extremes {
  double least = unknown;
  double largest = 0;
};

Extremes extremes_of_f32(std::span<const std::byte> bytes) {
  uint32_t least = ~uint32_t{0};
  uint32_t largest = 0;  // floats without a sign are in the order of their bits, NaNs last
  for (size_t at = 0; at + sizeof(uint32_t) <= bytes.size(); at += sizeof(uint32_t)) {
    uint32_t bits;
    std::memcpy(&bits, bytes.data() + at, sizeof bits);
    least = std::min(least, bits & 0x7fffffff);
    largest = std::max(largest, bits & 0x7fffffff);
  }
  const auto magnitude = std::bit_cast<float>(largest);
  if (bytes.empty() || !std::isfinite(magnitude)) return {.least = 0, .largest = unknown};
  return {.least = std::bit_cast<float>(least), .largest = magnitude};
}

double largest_of_i32(std::span<const std::byte> bytes) {
  double largest = 0;
  for (size_t at = 0; at + sizeof(int32_t) <= bytes.size(); at += sizeof(int32_t)) {
    int32_t number;
    std::memcpy(&number, bytes.data() + at, sizeof number);
    largest = std::max(largest, std::abs(static_cast<double>(number)));
  }
  return largest;
}

/// The largest magnitude in a short constant of f32 or i32, else of its type.
double bound_of_constant(const Operation& constant, ElementType type) {
  if (!is_short(constant)) return bound_of_type(type);
  if (type == ElementType::f32) return extremes_of_f32(constant.data->bytes).largest;
  if (type == ElementType::i32) return largest_of_i32(constant.data->bytes);
  return bound_of_type(type);
}

/// A bound of sums of products of 8-bit integers less their zero points.
double bound_of_convolution(const Function& function, const Operation& operation) {
  constexpr double max_difference = 255;
  double bound = max_difference * max_difference;
  const Shape& weights = function.type_of(operation.operands[1]).shape;
  for (size_t axis = 1; axis < weights.size(); ++axis) {
    if (!weights[axis].is_fixed()) return unknown;
    bound *= static_cast<double>(weights[axis].extent);
  }
  return bound;
}

/// A bound of a matrix product's sums.
double bound_of_matmul(const Function& function, const Operation& operation) {
  constexpr double max_difference = 255;
  const Dim& depth = function.type_of(operation.operands[0]).shape.back();
  if (!depth.is_fixed()) return unknown;
  return max_difference * max_difference * static_cast<double>(depth.extent);
}

/// The magnitude of an attribute that is a number, or what it is where it is absent.
double bound_of_attribute(const Operation& operation, std::string_view name, double absent) {
  const std::optional<double> number = find_number(operation.attributes, name);
  if (!number) return absent;
  return std::isnan(*number) ? unknown : std::abs(*number);
}

/// A bound of what was computed as `number`, perhaps rounded down: f64 has all integers up to 2^53.
double rounded_up(double number) {
  return number > 0x1p53 ? std::nextafter(number, unknown) : number;
}

double product(double a, double b) {
  return std::isfinite(a) && std::isfinite(b) ? rounded_up(a * b) : unknown;
}

/// A bound of numbers over those of at least some magnitude.
double quotient(double number, double least) {
  return std::isfinite(number) && least > 0 ? number / least : unknown;
}

/// The bound after one rounding to f32 or f64 in any mode, subnormal numbers included; unknown
/// where that may be infinite.
double rounded(double bound) {
  constexpr double more = 1 + 0x1p-20;
  const double above = bound * more + std::numeric_limits<float>::denorm_min();
  return above < std::numeric_limits<float>::max() ? above : unknown;
}

}  // namespace

Magnitudes::Magnitudes(const Function& function)
    : bounds_(function.values.size(), unknown), least_(function.values.size(), 0) {
  for (ValueId parameter : function.parameters) {
    bounds_[parameter] = bound_of_type(function.type_of(parameter).element);
  }
  for (const Operation& operation : function.operations) {
    for (ValueId result : operation.results) {
      bounds_[result] = bound_of_type(function.type_of(result).element);
    }
    const ValueId first = operation.results.front();
    if (operation.results.size() == 1) {
      bounds_[first] = std::min(bounds_[first], bound_of_result(function, operation));
    }
    const bool is_f32 = function.type_of(first).element == ElementType::f32;
    if (operation.op == OpKind::constant && is_f32 && is_short(operation)) {
      least_[first] = extremes_of_f32(operation.data->bytes).least;
    }
  }
}

double Magnitudes::bound_of_result(const Function& function, const Operation& operation) const {
  const ElementType type = function.type_of(operation.results.front()).element;
  if (operation.op == OpKind::constant) return bound_of_constant(operation, type);
  if (operation.op == OpKind::conv_integer) return bound_of_convolution(function, operation);
  if (operation.op == OpKind::matmul_integer) return bound_of_matmul(function, operation);
  if (is_signed_integer(type)) return bound_of_signed(function, operation);
  // Unsigned integers may wrap; floats of fewer bits may become infinite at less.
  const bool is_known = type == ElementType::f32 || type == ElementType::f64;
  return is_known ? rounded(bound_of_float(operation)) : unknown;
}

/// A bound of signed integers; what is above the type's largest number may wrap to any.
double Magnitudes::bound_of_signed(const Function& function, const Operation& operation) const {
  const auto operand = [&](size_t index) { return bound(operation.operands[index]); };
  const ElementType from = function.type_of(operation.operands[0]).element;
  const ElementType type = function.type_of(operation.results[0]).element;
  const auto unless_wrapped = [&](double number) {
    return number <= static_cast<double>(integer_max(type)) ? number : unknown;
  };
  switch (operation.op) {
    case OpKind::convert: return is_integer(from) ? unless_wrapped(operand(0)) : unknown;
    case OpKind::broadcast:
    case OpKind::reshape:
    case OpKind::relu: return operand(0);
    case OpKind::add:
    case OpKind::sub: return unless_wrapped(rounded_up(operand(0) + operand(1)));
    case OpKind::mul: return unless_wrapped(product(operand(0), operand(1)));
    case OpKind::min:
    case OpKind::max: return std::max(operand(0), operand(1));
    case OpKind::clamp:
      return std::ceil(std::max(bound_of_attribute(operation, "lo", unknown),
                                bound_of_attribute(operation, "hi", unknown)));
    case OpKind::select: return std::max(operand(1), operand(2));
    default: return unknown;
  }
}

/// A bound of a result of f32 or f64 before it is rounded.
double Magnitudes::bound_of_float(const Operation& operation) const {
  const auto operand = [&](size_t index) { return bound(operation.operands[index]); };
  switch (operation.op) {
    case OpKind::convert:
    case OpKind::broadcast:
    case OpKind::reshape:
    case OpKind::abs:
    case OpKind::neg:
    case OpKind::relu: return operand(0);
    case OpKind::floor:
    case OpKind::ceil:
    case OpKind::trunc:
    case OpKind::round_even: return operand(0) + 1;
    case OpKind::add:
    case OpKind::sub: return operand(0) + operand(1);
    case OpKind::mul: return product(operand(0), operand(1));
    case OpKind::div: return quotient(operand(0), least_[operation.operands[1]]);
    case OpKind::min:
    case OpKind::max: return std::max(operand(0), operand(1));
    case OpKind::prelu: return std::max(operand(0), product(operand(0), operand(1)));
    case OpKind::clamp:
      return std::max({operand(0), bound_of_attribute(operation, "lo", 0),
                       bound_of_attribute(operation, "hi", 0)});
    case OpKind::select: return std::max(operand(1), operand(2));
    default: return unknown;
  }
}

}  // namespace castor::jit
