// SPDX-License-Identifier: Apache-2.0
// Arithmetic, comparisons, bits and choices.
#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "runtime/onnx/rules/rules.hpp"

namespace castor::onnx {

ValueId chain(const Node& node, Translation& into, OpKind op) {
  ValueId result = into.input(node, 0);
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    result = into.binary(op, result, into.input(node, i));
  }
  return result;
}

Outputs identity(const Node& node, Translation& into) { return {into.input(node, 0)}; }

/// The sum, from the first to the last, divided by the number of inputs.
Outputs mean(const Node& node, Translation& into) {
  const ValueId sum = chain(node, into, OpKind::add);
  const auto count = static_cast<float>(node.inputs.size());
  return {into.binary(OpKind::div, sum, into.scalar(count, into.element(sum)))};
}

/// fmod = 1 is C's fmod; otherwise the remainder has the divisor's sign.
Outputs mod(const Node& node, Translation& into) {
  return node.integer("fmod", 0) != 0 ? one_op<OpKind::mod>(node, into)
                                      : one_op<OpKind::floor_mod>(node, into);
}

Outputs bit_shift(const Node& node, Translation& into) {
  const std::string_view direction = node.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    into.refuse(fmt::format("direction is '{}', expected LEFT or RIGHT", direction));
  }
  return direction == "LEFT" ? one_op<OpKind::shift_left>(node, into)
                             : one_op<OpKind::shift_right>(node, into);
}

Outputs where(const Node& node, Translation& into) {
  const ValueId condition = into.input(node, 0);
  const ValueId a = into.input(node, 1);
  const ValueId b = into.input(node, 2);
  return {into.builder().select(condition, a, b)};
}

/// For both signs or one of them.
Outputs is_inf(const Node& node, Translation& into) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const ValueId x = into.input(node, 0);
  const bool negative = node.integer("detect_negative", 1) != 0;
  const bool positive = node.integer("detect_positive", 1) != 0;
  if (!negative && !positive) return {into.binary(OpKind::less, x, x)};  // false of any number
  const ValueId magnitude = negative && positive ? into.unary(OpKind::abs, x) : x;
  const ValueId limit = into.scalar(positive ? infinity : -infinity, into.element(x));
  return {into.binary(OpKind::equal, magnitude, limit)};
}

namespace {

/// Whether a tensor is the scalar 2 of f32.
bool is_two(const Tensor& tensor) {
  const float two = 2;
  return tensor.element == ElementType::f32 && element_count(tensor.shape) == 1 &&
         std::memcmp(tensor.data->bytes.data(), &two, sizeof two) == 0;
}

}  // namespace

/// Squares alone, which are one product.
Outputs pow(const Node& node, Translation& into) {
  const Tensor* exponent = into.known(node, 1);
  if (exponent == nullptr || !is_two(*exponent)) into.refuse("the exponent is not 2.0");
  const ValueId x = into.input(node, 0);
  if (!into.refusal() && exponent->shape.rank() > into.rank(x)) {
    into.refuse("the exponent has more axes than the base");
  }
  return {into.binary(OpKind::mul, x, x)};
}

Outputs reciprocal(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  return {into.binary(OpKind::div, into.scalar(1, into.element(x)), x)};
}

}  // namespace castor::onnx
