// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnx/rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/onnx/rules/rules.hpp"

namespace castor::onnx {

namespace {

using enum OpKind;

constexpr Rule table[] = {
    {"Add", "", one_op<add>},
    {"Sub", "", one_op<sub>},
    {"Mul", "", one_op<mul>},
    {"Div", "", one_op<div>},
    {"PRelu", "", one_op<prelu>},
    {"Equal", "", one_op<equal>},
    {"Greater", "", one_op<greater>},
    {"GreaterOrEqual", "", one_op<greater_equal>},
    {"Less", "", one_op<less>},
    {"LessOrEqual", "", one_op<less_equal>},
    {"And", "", one_op<logical_and>},
    {"Or", "", one_op<logical_or>},
    {"Xor", "", one_op<logical_xor>},
    {"Not", "", one_op<logical_not>},
    {"BitwiseAnd", "", one_op<bitwise_and>},
    {"BitwiseOr", "", one_op<bitwise_or>},
    {"BitwiseXor", "", one_op<bitwise_xor>},
    {"BitwiseNot", "", one_op<bitwise_not>},
    {"Abs", "", one_op<abs>},
    {"Neg", "", one_op<neg>},
    {"Sign", "", one_op<sign>},
    {"Relu", "", one_op<relu>},
    {"Sqrt", "", one_op<sqrt>},
    {"Floor", "", one_op<floor>},
    {"Ceil", "", one_op<ceil>},
    {"Round", "", one_op<round_even>},
    {"IsNaN", "", one_op<is_nan>},
    {"Min", "", chained<min>},
    {"Max", "", chained<max>},
    {"Sum", "", chained<add>},
    {"Identity", "", identity},
    {"Mean", "", mean},
    {"Mod", "", onnx::mod},
    {"BitShift", "", bit_shift},
    {"Where", "", where},
    {"IsInf", "", is_inf},
    {"Pow", "", onnx::pow},
    {"Reciprocal", "", reciprocal},
    {"Clip", "", clip},
    {"LeakyRelu", "", leaky_relu},
    {"ThresholdedRelu", "", thresholded_relu},
    {"HardSigmoid", "", hard_sigmoid},
    {"HardSwish", "", hard_swish},
    {"Softsign", "", softsign},
    {"Shrink", "", shrink},
    {"Cast", "", cast},
    {"CastLike", "", cast_like},
    {"Constant", "", onnx::constant},
    {"Shape", "", shape},
    {"Size", "", size},
    {"Expand", "", expand},
    {"Reshape", "", onnx::reshape},
    {"Flatten", "", flatten},
    {"Squeeze", "", squeeze},
    {"Unsqueeze", "", unsqueeze},
    {"ReduceMin", "", onnx::reduce_min},
    {"ReduceMax", "", onnx::reduce_max},
    {"ReduceSum", "", onnx::reduce_sum},
    {"ReduceMean", "", reduce_mean},
    {"GlobalAveragePool", "", global_average_pool},
    {"GlobalMaxPool", "", global_max_pool},
    {"MaxPool", "", onnx::max_pool},
    {"ReduceL1", "", reduce_l1},
    {"ReduceL2", "", reduce_l2},
    {"ReduceSumSquare", "", reduce_sum_square},
    {"ConvInteger", "", onnx::conv_integer},
    {"MatMulInteger", "", onnx::matmul_integer},
    {"QuantizeLinear", "", onnx::quantize_linear},
    {"DequantizeLinear", "", onnx::dequantize_linear},
    {"DynamicQuantizeLinear", "", onnx::dynamic_quantize_linear},
    {"QLinearConv", "", onnx::qlinear_conv},
    {"QLinearMatMul", "", onnx::qlinear_matmul},
    // The quantizer of ONNX Runtime writes these two into its own domain as well.
    {"QuantizeLinear", microsoft_domain, onnx::quantize_linear},
    {"DequantizeLinear", microsoft_domain, onnx::dequantize_linear},
    {"QLinearAdd", microsoft_domain, qlinear_add},
    {"QLinearMul", microsoft_domain, qlinear_mul},
    {"QLinearLeakyRelu", microsoft_domain, qlinear_leaky_relu},
    {"QLinearSigmoid", microsoft_domain, qlinear_sigmoid},
    {"QLinearGlobalAveragePool", microsoft_domain, qlinear_global_average_pool},
    {"QGemm", microsoft_domain, qgemm},
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
