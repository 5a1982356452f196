// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>
#include <limits>

#include "ir/numerics/scalar.hpp"
#include "runtime/onnx/rules/rules.hpp"

namespace castor::onnx {

namespace {

/// What is known of a bound of Clip.
struct Bound {
  bool is_absent = true;
  std::optional<double> number{};  ///< where a double holds it exactly
};

/// A scalar's value as a double, which holds it exactly.
std::optional<double> exact_scalar(const Tensor& tensor) {
  const bool fits = tensor.element != ElementType::i64 && tensor.element != ElementType::u64 &&
                    bits_of(tensor.element) >= 8 && element_count(tensor.shape) == 1;
  if (!fits) return std::nullopt;
  uint64_t bits = 0;
  std::memcpy(&bits, tensor.data->bytes.data(), tensor.data->bytes.size());
  const uint64_t wide = numerics::convert(bits, tensor.element, ElementType::f64, {});
  double value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value == value ? std::optional(value) : std::nullopt;
}

/// Clip-6 has attributes, later versions inputs.
Bound bound_of(const Node& node, const Translation& into, size_t input, const char* attribute) {
  if (const auto* number = node.find<float>(attribute)) return {false, *number};
  if (!node.has_input(input)) return {};
  const Tensor* known = into.known(node, input);
  return {false, known == nullptr ? std::nullopt : exact_scalar(*known)};
}

/// A bound that is left out is the largest number of a float type, of that sign: infinities are
/// clipped.
Bound bound_or_largest(const Bound& bound, ElementType type, double sign) {
  if (!bound.is_absent || !is_float(type)) return bound;
  const uint64_t infinity = std::bit_cast<uint64_t>(std::numeric_limits<double>::infinity());
  const uint64_t code =
      numerics::convert(infinity, ElementType::f64, type, {.overflow = Overflow::saturate});
  const uint64_t wide = numerics::convert(code, type, ElementType::f64, {});
  return {false, sign * std::bit_cast<double>(wide)};
}

}  // namespace

Outputs clip(const Node& node, Translation& into) {
  ValueId x = into.input(node, 0);
  if (into.refusal()) return {};
  const ElementType type = into.element(x);
  const Bound lo = bound_or_largest(bound_of(node, into, 1, "min"), type, -1);
  const Bound hi = bound_or_largest(bound_of(node, into, 2, "max"), type, 1);
  if (lo.is_absent && hi.is_absent) return {x};
  const bool are_known = (lo.is_absent || lo.number) && (hi.is_absent || hi.number);
  // One `clamp` wants bounds in order; where they are in the other order, the upper one wins.
  const bool are_ordered = !lo.number || !hi.number || *lo.number <= *hi.number;
  if (are_known && are_ordered) return {into.builder().clamp(x, lo.number, hi.number)};
  x = lo.number      ? into.builder().clamp(x, lo.number, std::nullopt)
      : lo.is_absent ? x
                     : into.binary(OpKind::max, x, into.input(node, 1));
  x = hi.number      ? into.builder().clamp(x, std::nullopt, hi.number)
      : hi.is_absent ? x
                     : into.binary(OpKind::min, x, into.input(node, 2));
  return {x};
}

Outputs leaky_relu(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  const ValueId slope = into.scalar(node.number("alpha", 0.01f), into.element(x));
  return {into.binary(OpKind::prelu, x, slope)};
}

Outputs thresholded_relu(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  const ElementType type = into.element(x);
  const ValueId passes =
      into.binary(OpKind::greater, x, into.scalar(node.number("alpha", 1.0f), type));
  return {into.builder().select(passes, x, into.scalar(0, type))};
}

namespace {

ValueId hard_sigmoid_of(Translation& into, ValueId x, float alpha, float beta) {
  const ElementType type = into.element(x);
  const ValueId scaled = into.binary(OpKind::mul, x, into.scalar(alpha, type));
  const ValueId moved = into.binary(OpKind::add, scaled, into.scalar(beta, type));
  return into.builder().clamp(moved, 0.0, 1.0);
}

}  // namespace

Outputs hard_sigmoid(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  return {hard_sigmoid_of(into, x, node.number("alpha", 0.2f), node.number("beta", 0.5f))};
}

Outputs hard_swish(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  const ValueId gate = hard_sigmoid_of(into, x, static_cast<float>(1.0 / 6), 0.5f);
  return {into.binary(OpKind::mul, x, gate)};
}

Outputs softsign(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  const ValueId magnitude = into.unary(OpKind::abs, x);
  const ValueId divisor = into.binary(OpKind::add, into.scalar(1, into.element(x)), magnitude);
  return {into.binary(OpKind::div, x, divisor)};
}

/// x + bias below -lambd, x - bias above lambd, else 0.
Outputs shrink(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  const ElementType type = into.element(x);
  const float limit = node.number("lambd", 0.5f);
  const ValueId bias = into.scalar(node.number("bias", 0), type);
  const ValueId is_low = into.binary(OpKind::less, x, into.scalar(-limit, type));
  const ValueId is_high = into.binary(OpKind::greater, x, into.scalar(limit, type));
  const ValueId lower = into.binary(OpKind::sub, x, bias);
  const ValueId other = into.builder().select(is_high, lower, into.scalar(0, type));
  return {into.builder().select(is_low, into.binary(OpKind::add, x, bias), other)};
}

}  // namespace castor::onnx
