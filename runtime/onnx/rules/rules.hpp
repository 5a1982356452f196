// SPDX-License-Identifier: Apache-2.0
// The functions of the rows in rules.cpp, by topic. Each says in its comment what differs among the
// operator's versions, and, for ONNX Runtime's operators, the definition that is used.
#pragma once

#include "runtime/onnx/rules.hpp"

namespace castor::onnx {

// ---- elementwise.cpp
/// Nodes that are one op of castor, with one operand or two.
template <OpKind op>
Outputs one_op(const Node& node, Translation& into) {
  const ValueId a = into.input(node, 0);
  if (info(op).operands == 1) return {into.unary(op, a)};
  const ValueId b = into.input(node, 1);
  return {into.binary(op, a, b)};
}
/// The same op between all inputs, from the first to the last.
ValueId chain(const Node& node, Translation& into, OpKind op);
template <OpKind op>
Outputs chained(const Node& node, Translation& into) {
  return {chain(node, into, op)};
}
Outputs identity(const Node& node, Translation& into);
Outputs mean(const Node& node, Translation& into);
Outputs mod(const Node& node, Translation& into);
Outputs bit_shift(const Node& node, Translation& into);
Outputs where(const Node& node, Translation& into);
Outputs is_inf(const Node& node, Translation& into);
Outputs pow(const Node& node, Translation& into);
Outputs reciprocal(const Node& node, Translation& into);

// ---- activations.cpp
Outputs clip(const Node& node, Translation& into);
Outputs leaky_relu(const Node& node, Translation& into);
Outputs thresholded_relu(const Node& node, Translation& into);
Outputs hard_sigmoid(const Node& node, Translation& into);
Outputs hard_swish(const Node& node, Translation& into);
Outputs softsign(const Node& node, Translation& into);
Outputs shrink(const Node& node, Translation& into);

// ---- cast.cpp
Outputs cast(const Node& node, Translation& into);
Outputs cast_like(const Node& node, Translation& into);

// ---- shapes.cpp
Outputs constant(const Node& node, Translation& into);
Outputs shape(const Node& node, Translation& into);
Outputs size(const Node& node, Translation& into);
Outputs expand(const Node& node, Translation& into);
Outputs reshape(const Node& node, Translation& into);
Outputs flatten(const Node& node, Translation& into);
Outputs squeeze(const Node& node, Translation& into);
Outputs unsqueeze(const Node& node, Translation& into);

// ---- reductions.cpp
Outputs reduce_min(const Node& node, Translation& into);
Outputs reduce_max(const Node& node, Translation& into);
Outputs reduce_sum(const Node& node, Translation& into);
Outputs reduce_mean(const Node& node, Translation& into);
Outputs global_average_pool(const Node& node, Translation& into);
Outputs global_max_pool(const Node& node, Translation& into);
Outputs reduce_l1(const Node& node, Translation& into);
Outputs reduce_l2(const Node& node, Translation& into);
Outputs reduce_sum_square(const Node& node, Translation& into);

// ---- pooling.cpp
Outputs max_pool(const Node& node, Translation& into);

// ---- integers.cpp
/// The attributes that ConvInteger, QLinearConv, Conv and MaxPool share.
ConvolutionOptions convolution_options_of(const Node& node, Translation& into);
Outputs conv_integer(const Node& node, Translation& into);
Outputs matmul_integer(const Node& node, Translation& into);

// ---- quantization.cpp
Outputs quantize_linear(const Node& node, Translation& into);
Outputs dequantize_linear(const Node& node, Translation& into);
Outputs dynamic_quantize_linear(const Node& node, Translation& into);
Outputs qlinear_conv(const Node& node, Translation& into);
Outputs qlinear_matmul(const Node& node, Translation& into);

// ---- microsoft.cpp
Outputs qlinear_add(const Node& node, Translation& into);
Outputs qlinear_mul(const Node& node, Translation& into);
Outputs qlinear_leaky_relu(const Node& node, Translation& into);
Outputs qlinear_sigmoid(const Node& node, Translation& into);
Outputs qlinear_global_average_pool(const Node& node, Translation& into);
Outputs qgemm(const Node& node, Translation& into);

}  // namespace castor::onnx
