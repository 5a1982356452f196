// SPDX-License-Identifier: Apache-2.0
#include "tests/support/onnx_elementwise_nodes.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ir/numerics/scalar.hpp"
#include "tools/testing/samples.hpp"

namespace castor::test {

namespace {

using Node = OnnxGraphNode;
using Into = OnnxTranslation;

// ---- Nodes that are one op, or the same op again and again.

struct OpRow {
  std::string_view op_type;
  OpKind op;
};

constexpr OpRow one_op[] = {
    {"Add", OpKind::add},
    {"Sub", OpKind::sub},
    {"Mul", OpKind::mul},
    {"Div", OpKind::div},
    {"PRelu", OpKind::prelu},
    {"Equal", OpKind::equal},
    {"Greater", OpKind::greater},
    {"GreaterOrEqual", OpKind::greater_equal},
    {"Less", OpKind::less},
    {"LessOrEqual", OpKind::less_equal},
    {"And", OpKind::logical_and},
    {"Or", OpKind::logical_or},
    {"Xor", OpKind::logical_xor},
    {"BitwiseAnd", OpKind::bitwise_and},
    {"BitwiseOr", OpKind::bitwise_or},
    {"BitwiseXor", OpKind::bitwise_xor},
    {"Abs", OpKind::abs},
    {"Neg", OpKind::neg},
    {"Sign", OpKind::sign},
    {"Relu", OpKind::relu},
    {"Sqrt", OpKind::sqrt},
    {"Floor", OpKind::floor},
    {"Ceil", OpKind::ceil},
    {"Round", OpKind::round_even},
    {"IsNaN", OpKind::is_nan},
    {"Not", OpKind::logical_not},
    {"BitwiseNot", OpKind::bitwise_not},
};

constexpr OpRow chained[] = {
    {"Min", OpKind::min},
    {"Max", OpKind::max},
    {"Sum", OpKind::add},
};

OnnxValue chain(const Node& node, Into& into, OpKind op) {
  OnnxValue result = into.input(node, 0);
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    result = into.binary(op, result, into.input(node, i));
  }
  return result;
}

OnnxValue single(const Node& node, Into& into, OpKind op) {
  if (info(op).operands == 1) return into.unary(op, into.input(node, 0));
  const OnnxValue a = into.input(node, 0);
  return into.binary(op, a, into.input(node, 1));
}

// ---- Nodes that choose an op, or take several.

OnnxValue identity(const Node& node, Into& into) { return into.input(node, 0); }

/// Mean-13: the sum, from the first to the last, divided by the number of inputs.
OnnxValue mean(const Node& node, Into& into) {
  const OnnxValue sum = chain(node, into, OpKind::add);
  const auto count = static_cast<float>(node.inputs.size());
  return into.binary(OpKind::div, sum, into.scalar(count, sum.element));
}

/// Mod-13: fmod = 1 is C's fmod; otherwise the remainder has the divisor's sign.
OnnxValue mod(const Node& node, Into& into) {
  const OpKind op = node.integer("fmod", 0) != 0 ? OpKind::mod : OpKind::floor_mod;
  return single(node, into, op);
}

OnnxValue bit_shift(const Node& node, Into& into) {
  const OnnxNodeAttribute* direction = node.find("direction");
  const bool is_left = direction != nullptr && direction->s == "LEFT";
  return single(node, into, is_left ? OpKind::shift_left : OpKind::shift_right);
}

OnnxValue where(const Node& node, Into& into) {
  const OnnxValue condition = into.input(node, 0);
  const OnnxValue a = into.input(node, 1);
  return into.select(condition, a, into.input(node, 2));
}

/// A scalar's value as a double, which holds it exactly.
std::optional<double> exact_scalar(const OnnxTensor* tensor) {
  if (tensor == nullptr || !tensor->element || element_count(tensor->shape) != 1) {
    return std::nullopt;
  }
  const auto type = *tensor->element;
  const bool fits = type != ElementType::i64 && type != ElementType::u64;
  if (!fits) return std::nullopt;
  const uint64_t bits = samples::load_pattern(tensor->bytes, type, 0);
  const uint64_t wide = numerics::convert(bits, type, ElementType::f64, {});
  double value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

/// Clip-13: bounds are scalars, and inputs; a bound that is left out does not bound.
OnnxValue clip(const Node& node, Into& into) {
  if (node.find("min") || node.find("max")) into.refuse("bounds as attributes, as before Clip-11");
  OnnxValue x = into.input(node, 0);
  if (into.form().bounds_as_attributes) {
    std::optional<double> bounds[2];
    for (size_t i = 1; i <= 2; ++i) {
      if (node.has_input(i)) bounds[i - 1] = exact_scalar(into.data_of(node.inputs[i]));
    }
    const bool are_known =
        bounds[0].has_value() == node.has_input(1) && bounds[1].has_value() == node.has_input(2);
    if (are_known && (bounds[0] || bounds[1])) return into.clamp(x, bounds[0], bounds[1]);
  }
  if (node.has_input(1)) x = into.binary(OpKind::max, x, into.input(node, 1));
  if (node.has_input(2)) x = into.binary(OpKind::min, x, into.input(node, 2));
  return x;
}

OnnxValue leaky_relu(const Node& node, Into& into) {
  const OnnxValue x = into.input(node, 0);
  return into.binary(OpKind::prelu, x, into.scalar(node.number("alpha", 0.01f), x.element));
}

OnnxValue thresholded_relu(const Node& node, Into& into) {
  const OnnxValue x = into.input(node, 0);
  const OnnxValue alpha = into.scalar(node.number("alpha", 1.0f), x.element);
  const OnnxValue passes = into.binary(OpKind::greater, x, alpha);
  return into.select(passes, x, into.scalar(0, x.element));
}

OnnxValue hard_sigmoid_of(Into& into, const OnnxValue& x, float alpha, float beta) {
  const OnnxValue scaled = into.binary(OpKind::mul, x, into.scalar(alpha, x.element));
  const OnnxValue moved = into.binary(OpKind::add, scaled, into.scalar(beta, x.element));
  return into.clamp(moved, 0.0, 1.0);
}

OnnxValue hard_sigmoid(const Node& node, Into& into) {
  return hard_sigmoid_of(into, into.input(node, 0), node.number("alpha", 0.2f),
                         node.number("beta", 0.5f));
}

OnnxValue hard_swish(const Node& node, Into& into) {
  const OnnxValue x = into.input(node, 0);
  const OnnxValue gate = hard_sigmoid_of(into, x, static_cast<float>(1.0 / 6), 0.5f);
  return into.binary(OpKind::mul, x, gate);
}

OnnxValue softsign(const Node& node, Into& into) {
  const OnnxValue x = into.input(node, 0);
  const OnnxValue magnitude = into.unary(OpKind::abs, x);
  const OnnxValue divisor = into.binary(OpKind::add, into.scalar(1, x.element), magnitude);
  return into.binary(OpKind::div, x, divisor);
}

OnnxValue reciprocal(const Node& node, Into& into) {
  const OnnxValue x = into.input(node, 0);
  return into.binary(OpKind::div, into.scalar(1, x.element), x);
}

/// Shrink-9: x + bias below -lambd, x - bias above lambd, else 0.
OnnxValue shrink(const Node& node, Into& into) {
  const OnnxValue x = into.input(node, 0);
  const float limit = node.number("lambd", 0.5f);
  const OnnxValue bias = into.scalar(node.number("bias", 0), x.element);
  const OnnxValue is_low = into.binary(OpKind::less, x, into.scalar(-limit, x.element));
  const OnnxValue is_high = into.binary(OpKind::greater, x, into.scalar(limit, x.element));
  const OnnxValue lower = into.binary(OpKind::sub, x, bias);
  const OnnxValue other = into.select(is_high, lower, into.scalar(0, x.element));
  return into.select(is_low, into.binary(OpKind::add, x, bias), other);
}

/// IsInf-20, for both signs or one of them.
OnnxValue is_inf(const Node& node, Into& into) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const OnnxValue x = into.input(node, 0);
  const bool negative = node.integer("detect_negative", 1) != 0;
  const bool positive = node.integer("detect_positive", 1) != 0;
  const OnnxValue magnitude = negative && positive ? into.unary(OpKind::abs, x) : x;
  if (!negative && !positive) into.refuse("IsInf of no sign");
  const OnnxValue limit = into.scalar(positive ? infinity : -infinity, x.element);
  return into.binary(OpKind::equal, magnitude, limit);
}

// ---- Constants and conversions.

OnnxValue constant(const Node& node, Into& into) {
  const OnnxNodeAttribute* number = node.find("value_float");
  if (number != nullptr) return into.scalar(number->f, ElementType::f32);
  const OnnxNodeAttribute* value = node.find("value");
  if (value != nullptr && value->tensor && value->tensor->element) {
    into.know(node.outputs[0], *value->tensor);
    return into.constant(*value->tensor);
  }
  into.refuse("a constant of another kind than a tensor or a number");
  return {};
}

/// A conversion that only rounds: what ONNX's Cast does besides is onnx_cast_test's.
OnnxValue cast_to(Into& into, const OnnxValue& x, ElementType to) {
  const bool may_do_more = x.element != to && (bits_of(to) <= 8 || bits_of(x.element) <= 8);
  if (may_do_more) into.refuse("Cast that may do more than round");
  return into.convert(x, to);
}

OnnxValue cast(const Node& node, Into& into) {
  const OnnxValue x = into.input(node, 0);
  const auto to = element_type_of_onnx(node.integer("to", 0));
  if (to) return cast_to(into, x, *to);
  into.refuse("an element type that castor lacks");
  return {};
}

OnnxValue cast_like(const Node& node, Into& into) {
  const OnnxValue x = into.input(node, 0);
  return cast_to(into, x, into.input(node, 1).element);
}

struct RuleRow {
  std::string_view op_type;
  OnnxValue (*rule)(const Node& node, Into& into);
};

constexpr RuleRow rules[] = {
    {"Identity", identity},
    {"Mean", mean},
    {"Mod", mod},
    {"BitShift", bit_shift},
    {"Where", where},
    {"Clip", clip},
    {"LeakyRelu", leaky_relu},
    {"ThresholdedRelu", thresholded_relu},
    {"HardSigmoid", hard_sigmoid},
    {"HardSwish", hard_swish},
    {"Softsign", softsign},
    {"Reciprocal", reciprocal},
    {"Shrink", shrink},
    {"IsInf", is_inf},
    {"Constant", constant},
    {"Cast", cast},
    {"CastLike", cast_like},
    {"Expand", onnx_expand},
    {"Reshape", onnx_reshape},
    {"Flatten", onnx_flatten},
    {"Squeeze", onnx_squeeze},
    {"Unsqueeze", onnx_unsqueeze},
    {"QuantizeLinear", onnx_quantize_linear},
    {"DequantizeLinear", onnx_dequantize_linear},
    {"DynamicQuantizeLinear", onnx_dynamic_quantize_linear},
    {"ReduceMin", onnx_reduce_min},
    {"ReduceMax", onnx_reduce_max},
    {"ReduceSum", onnx_reduce_sum},
};

/// Elementwise nodes for which castor has no op.
constexpr std::string_view beyond_castor[] = {
    "Acos", "Acosh", "Asin", "Asinh", "Atan",    "Atanh", "BitCast", "Celu", "Cos",
    "Cosh", "Elu",   "Erf",  "Exp",   "Gelu",    "Log",   "Mish",    "Pow",  "Selu",
    "Sin",  "Sinh",  "Tan",  "Tanh",  "Sigmoid", "Swish", "Softplus"};

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

template <class Row>
const Row* row_of(std::span<const Row> table, std::string_view op_type) {
  const auto at = std::ranges::find(table, op_type, &Row::op_type);
  return at == table.end() ? nullptr : &*at;
}

std::optional<OnnxValue> result_of(const Node& node, Into& into) {
  if (const OpRow* row = row_of(std::span<const OpRow>(one_op), node.op_type)) {
    return single(node, into, row->op);
  }
  if (const OpRow* row = row_of(std::span<const OpRow>(chained), node.op_type)) {
    return chain(node, into, row->op);
  }
  if (const RuleRow* row = row_of(std::span<const RuleRow>(rules), node.op_type)) {
    return row->rule(node, into);
  }
  return std::nullopt;
}

}  // namespace

bool has_onnx_rule(std::string_view op_type) {
  return row_of(std::span<const OpRow>(one_op), op_type) != nullptr ||
         row_of(std::span<const OpRow>(chained), op_type) != nullptr ||
         row_of(std::span<const RuleRow>(rules), op_type) != nullptr;
}

bool is_onnx_elementwise(const OnnxGraphTest& test) {
  constexpr std::string_view helpers[] = {"Constant", "Cast", "CastLike"};
  const auto is_elementwise = [](const OnnxGraphNode& node) {
    return has_onnx_rule(node.op_type) || contains(beyond_castor, node.op_type);
  };
  const auto is_helper = [&](const OnnxGraphNode& node) { return contains(helpers, node.op_type); };
  return std::ranges::all_of(test.nodes, is_elementwise) &&
         !std::ranges::all_of(test.nodes, is_helper);
}

void translate(const OnnxGraphNode& node, OnnxTranslation& into) {
  if (into.refusal()) return;
  const std::optional<OnnxValue> result = result_of(node, into);
  if (!result) return into.refuse("op " + node.op_type);
  if (!into.refusal()) into.define(node.outputs[0], *result);
}

}  // namespace castor::test
