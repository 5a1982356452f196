// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnx/rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/onnx/rules/rules.hpp"

namespace castor::onnx {

namespace {

using enum OpKind;

constexpr Signature binary = {2, 2};
constexpr Signature binary_since(int64_t version) { return {2, 2, {}, 1, version}; }
constexpr Signature variadic = {1, Signature::any};
constexpr Signature reduction = {1, 2, "axes:I keepdims:i noop_with_empty_axes:i"};
constexpr std::string_view constant_attributes =
    "value:t value_float:f value_floats:F value_int:i value_ints:I value_string:s "
    "value_strings:- sparse_value:-";
constexpr std::string_view conv_attributes =
    "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I";
constexpr std::string_view pool_attributes =
    "auto_pad:s ceil_mode:i dilations:I kernel_shape:I pads:I storage_order:i strides:I";
constexpr std::string_view quantize_attributes =
    "axis:i block_size:i output_dtype:i precision:i saturate:i";
constexpr std::string_view dequantize_attributes = "axis:i block_size:i output_dtype:i";

constexpr Rule table[] = {
    {"Add", "", one_op<add>, binary},
    {"Sub", "", one_op<sub>, binary},
    {"Mul", "", one_op<mul>, binary},
    {"Div", "", one_op<div>, binary},
    {"PRelu", "", one_op<prelu>, binary},
    {"Equal", "", one_op<equal>, binary},
    {"Greater", "", one_op<greater>, binary},
    {"GreaterOrEqual", "", one_op<greater_equal>, binary_since(12)},
    {"Less", "", one_op<less>, binary},
    {"LessOrEqual", "", one_op<less_equal>, binary_since(12)},
    {"And", "", one_op<logical_and>, binary},
    {"Or", "", one_op<logical_or>, binary},
    {"Xor", "", one_op<logical_xor>, binary},
    {"Not", "", one_op<logical_not>},
    {"BitwiseAnd", "", one_op<bitwise_and>, binary_since(18)},
    {"BitwiseOr", "", one_op<bitwise_or>, binary_since(18)},
    {"BitwiseXor", "", one_op<bitwise_xor>, binary_since(18)},
    {"BitwiseNot", "", one_op<bitwise_not>, {.since = 18}},
    {"Abs", "", one_op<abs>},
    {"Neg", "", one_op<neg>},
    {"Sign", "", one_op<sign>, {.since = 9}},
    {"Relu", "", one_op<relu>},
    {"Sqrt", "", one_op<sqrt>},
    {"Floor", "", one_op<floor>},
    {"Ceil", "", one_op<ceil>},
    {"Round", "", one_op<round_even>, {.since = 11}},
    {"IsNaN", "", one_op<is_nan>, {.since = 9}},
    {"Min", "", chained<min>, variadic},
    {"Max", "", chained<max>, variadic},
    {"Sum", "", chained<add>, variadic},
    {"Identity", "", identity},
    {"Mean", "", mean, variadic},
    {"Mod", "", onnx::mod, {2, 2, "fmod:i", 1, 10}},
    {"BitShift", "", bit_shift, {2, 2, "direction:s", 1, 11}},
    {"Where", "", where, {3, 3, {}, 1, 9}},
    {"IsInf", "", is_inf, {1, 1, "detect_negative:i detect_positive:i", 1, 10}},
    {"Pow", "", onnx::pow, binary},
    {"Reciprocal", "", reciprocal},
    {"Clip", "", clip, {1, 3, "min:f max:f"}},
    {"LeakyRelu", "", leaky_relu, {1, 1, "alpha:f"}},
    {"ThresholdedRelu", "", thresholded_relu, {1, 1, "alpha:f", 1, 10}},
    {"HardSigmoid", "", hard_sigmoid, {1, 1, "alpha:f beta:f"}},
    {"HardSwish", "", hard_swish, {.since = 14}},
    {"Softsign", "", softsign},
    {"Shrink", "", shrink, {1, 1, "bias:f lambd:f", 1, 9}},
    {"Cast", "", cast, {1, 1, "to:i saturate:i round_mode:s"}},
    {"CastLike", "", cast_like, {2, 2, "saturate:i round_mode:s", 1, 15}},
    {"Constant", "", onnx::constant, {0, 0, constant_attributes}},
    {"Shape", "", shape, {1, 1, "start:i end:i"}},
    {"Size", "", size},
    {"Expand", "", expand, binary_since(8)},
    {"Reshape", "", onnx::reshape, {2, 2, "allowzero:i"}},
    {"Flatten", "", flatten, {1, 1, "axis:i"}},
    {"Squeeze", "", squeeze, {1, 2, "axes:I"}},
    {"Unsqueeze", "", unsqueeze, {1, 2, "axes:I"}},
    {"ReduceMin", "", onnx::reduce_min, reduction},
    {"ReduceMax", "", onnx::reduce_max, reduction},
    {"ReduceSum", "", onnx::reduce_sum, reduction},
    {"ReduceMean", "", reduce_mean, reduction},
    {"GlobalAveragePool", "", global_average_pool},
    {"GlobalMaxPool", "", global_max_pool},
    {"MaxPool", "", onnx::max_pool, {1, 1, pool_attributes, 2}},
    {"ReduceL1", "", reduce_l1, reduction},
    {"ReduceL2", "", reduce_l2, reduction},
    {"ReduceSumSquare", "", reduce_sum_square, reduction},
    {"ConvInteger", "", onnx::conv_integer, {2, 4, conv_attributes, 1, 10}},
    {"MatMulInteger", "", onnx::matmul_integer, {2, 4, {}, 1, 10}},
    {"QuantizeLinear", "", onnx::quantize_linear, {2, 3, quantize_attributes, 1, 10}},
    {"DequantizeLinear", "", onnx::dequantize_linear, {2, 3, dequantize_attributes, 1, 10}},
    {"DynamicQuantizeLinear", "", onnx::dynamic_quantize_linear, {1, 1, {}, 3, 11}},
    {"QLinearConv", "", onnx::qlinear_conv, {8, 9, conv_attributes, 1, 10}},
    {"QLinearMatMul", "", onnx::qlinear_matmul, {8, 8, {}, 1, 10}},
    // The quantizer of ONNX Runtime writes these two into its own domain as well.
    {"QuantizeLinear", microsoft_domain, onnx::quantize_linear, {2, 3, quantize_attributes}},
    {"DequantizeLinear", microsoft_domain, onnx::dequantize_linear, {2, 3, dequantize_attributes}},
    {"QLinearAdd", microsoft_domain, qlinear_add, {7, 8}},
    {"QLinearMul", microsoft_domain, qlinear_mul, {7, 8}},
    {"QLinearLeakyRelu", microsoft_domain, qlinear_leaky_relu, {4, 5, "alpha:f"}},
    {"QLinearSigmoid", microsoft_domain, qlinear_sigmoid, {4, 5}},
    {"QLinearGlobalAveragePool",
     microsoft_domain,
     qlinear_global_average_pool,
     {5, 5, "channels_last:i"}},
    {"QGemm", microsoft_domain, qgemm, {6, 9, "alpha:f transA:i transB:i"}},
};

std::string_view spoken(std::string_view domain) { return domain.empty() ? "ai.onnx" : domain; }

}  // namespace

std::span<const Rule> rules() { return table; }

const Rule* find_rule(std::string_view domain, std::string_view op_type) {
  const auto at = std::ranges::find_if(
      table, [&](const Rule& rule) { return rule.op_type == op_type && rule.domain == domain; });
  return at == std::end(table) ? nullptr : &*at;
}

void translate(const Node& node, Translation& into) {
  const Rule* rule = find_rule(node.domain, node.op_type);
  if (rule == nullptr) {
    into.refuse(fmt::format("castor has no {} of {}", node.op_type, spoken(node.domain)));
  } else if (std::optional<std::string> reason = contradiction(node, rule->signature)) {
    into.refuse(std::move(*reason));
  }
  if (into.refusal()) return;
  const Outputs outputs = rule->outputs(node, into);
  if (into.refusal()) return;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.has_output(i)) continue;
    if (i >= outputs.size() && !into.is_read(node, i)) continue;
    if (i >= outputs.size()) return into.refuse(fmt::format("castor has no output {} of it", i));
    into.define(node.outputs[i], outputs[i]);
  }
}

}  // namespace castor::onnx
