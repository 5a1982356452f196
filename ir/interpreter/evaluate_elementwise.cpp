// SPDX-License-Identifier: Apache-2.0
// Elementwise ops with a rule of their own.
#include <bit>
#include <optional>

#include "ir/interpreter/evaluators.hpp"
#include "ir/numerics/float_ops.hpp"
#include "ir/numerics/integer_ops.hpp"
#include "ir/numerics/scalar.hpp"

namespace castor {

namespace {

/// A number as an attribute holds it: the raw bits of an i64 or f64.
struct Number {
  ElementType type;
  uint64_t bits;
};

std::optional<Number> number_named(const Operation& operation, std::string_view name) {
  const AttributeValue* attribute = find(operation.attributes, name);
  if (!attribute) return std::nullopt;
  if (const auto* integer = std::get_if<int64_t>(&attribute->value)) {
    return Number{ElementType::i64, static_cast<uint64_t>(*integer)};
  }
  return Number{ElementType::f64, std::bit_cast<uint64_t>(std::get<double>(attribute->value))};
}

// A bound of clamp in the type that is clamped. Integers: ceil(lo) and floor(hi), saturated.
// Floats: the number rounded once, to nearest even; beyond the largest finite number it is an
// infinity, or, in a type without, that largest number, which bounds all that such a type holds.
std::optional<uint64_t> bound_named(const Operation& operation, std::string_view name,
                                    ElementType type, Rounding rounding_to_integer) {
  const std::optional<Number> bound = number_named(operation, name);
  if (!bound) return std::nullopt;
  ConvertOptions options;
  if (!has_infinities(type)) options.overflow = Overflow::saturate;
  if (is_integer(type) && bound->type == ElementType::f64) options.rounding = rounding_to_integer;
  return numerics::convert(bound->bits, bound->type, type, options);
}

}  // namespace

// min(max(x, lo), hi), of which an absent bound leaves its half out. A NaN stays, made quiet as by
// every op, with or without bounds.
void evaluate_clamp(const Operation& operation, Operands operands, Results results) {
  const Tensor& x = *operands[0];
  const ElementType type = x.element;
  const std::optional<uint64_t> lo = bound_named(operation, "lo", type, Rounding::up);
  const std::optional<uint64_t> hi = bound_named(operation, "hi", type, Rounding::down);
  const bool floats = is_float(type);
  const BinaryFunction max = floats ? numerics::float_ops::max : numerics::integer_ops::max;
  const BinaryFunction min = floats ? numerics::float_ops::min : numerics::integer_ops::min;
  results[0].elements.reserve(x.elements.size());
  for (uint64_t bits : x.elements) {
    uint64_t clamped = max(bits, bits, type);  // the element itself, a NaN made quiet
    if (lo) clamped = max(clamped, *lo, type);
    if (hi) clamped = min(clamped, *hi, type);
    results[0].elements.push_back(clamped);
  }
}

// Bits are copied, NaNs as they are; any nonzero byte of the condition is true.
void evaluate_select(const Operation& operation, Operands operands, Results results) {
  Tensor& result = results[0];
  OperandIndices condition(operation, 0, *operands[0], result.shape);
  OperandIndices a(operation, 1, *operands[1], result.shape);
  OperandIndices b(operation, 2, *operands[2], result.shape);
  const size_t count = result_count(result);
  result.elements.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t chosen = a.next();
    const uint64_t other = b.next();
    result.elements.push_back(condition.next() != 0 ? chosen : other);
  }
}

}  // namespace castor
