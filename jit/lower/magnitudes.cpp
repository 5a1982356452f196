// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/magnitudes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

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

/// The largest magnitude in a constant, if it is f32 and takes little time to read, else of its
/// type.
double bound_of_constant(const Operation& constant, ElementType type) {
  constexpr size_t max_bytes = size_t{1} << 16;
  const std::vector<std::byte>& bytes = constant.data->bytes;
  if (type != ElementType::f32 || bytes.size() > max_bytes) return bound_of_type(type);
  uint32_t max = 0;  // floats without a sign are in the order of their bits, NaNs last
  for (size_t at = 0; at + sizeof(uint32_t) <= bytes.size(); at += sizeof(uint32_t)) {
    uint32_t bits;
    std::memcpy(&bits, bytes.data() + at, sizeof bits);
    max = std::max(max, bits & 0x7fffffff);
  }
  const auto magnitude = std::bit_cast<float>(max);
  return std::isfinite(magnitude) ? static_cast<double>(magnitude) : unknown;
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

double bound_of_attribute(const Operation& operation, std::string_view name) {
  const AttributeValue* attribute = find(operation.attributes, name);
  if (attribute == nullptr) return 0;
  const auto* integer = std::get_if<int64_t>(&attribute->value);
  const double number =
      integer ? static_cast<double>(*integer) : std::get<double>(attribute->value);
  return std::isnan(number) ? unknown : std::abs(number);
}

double product(double a, double b) {
  return std::isfinite(a) && std::isfinite(b) ? a * b : unknown;
}

/// The bound after one rounding to f32 or f64 in any mode, subnormal numbers included; unknown
/// where that may be infinite.
double rounded(double bound) {
  constexpr double more = 1 + 0x1p-20;
  const double above = bound * more + std::numeric_limits<float>::denorm_min();
  return above < std::numeric_limits<float>::max() ? above : unknown;
}

}  // namespace

Magnitudes::Magnitudes(const Function& function) : bounds_(function.values.size(), unknown) {
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
  }
}

double Magnitudes::bound_of_result(const Function& function, const Operation& operation) const {
  const ElementType type = function.type_of(operation.results.front()).element;
  if (operation.op == OpKind::constant) return bound_of_constant(operation, type);
  if (operation.op == OpKind::conv_integer) return bound_of_convolution(function, operation);
  if (operation.op == OpKind::matmul_integer) return bound_of_matmul(function, operation);
  // Other integers may wrap; floats of fewer bits may become infinite at less.
  const bool is_known = type == ElementType::f32 || type == ElementType::f64;
  return is_known ? rounded(bound_of_float(operation)) : unknown;
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
    case OpKind::min:
    case OpKind::max: return std::max(operand(0), operand(1));
    case OpKind::prelu: return std::max(operand(0), product(operand(0), operand(1)));
    case OpKind::clamp:
      return std::max(
          {operand(0), bound_of_attribute(operation, "lo"), bound_of_attribute(operation, "hi")});
    case OpKind::select: return std::max(operand(1), operand(2));
    default: return unknown;
  }
}

}  // namespace castor::jit
