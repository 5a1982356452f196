// SPDX-License-Identifier: Apache-2.0
// Units of nodes that stand for one operator on quantized tensors.
#pragma once

#include "runtime/onnx/graph.hpp"

namespace castor::onnx {

/// Whether an operator may be the middle of such a unit: Conv, MatMul, Gemm or MaxPool.
bool may_be_fused(const Node& node);

/// Replaces, in a connected graph,
///
///   DequantizeLinear of x and w (and of an i32 bias), Conv, (Relu), QuantizeLinear
///
/// by one QLinearConv, MatMul by QLinearMatMul and Gemm by com.microsoft's QGemm in the same way.
/// Results are those of the operator, which are within one step of what the nodes give one by one:
/// sums are exact there, rounded in f32 here. A node's `origins` say what it stands for.
///
/// x, w and y must be of 8 bits with scales and zero points per tensor, of w also per output
/// channel or column, and the bias must have the scale x_scale * w_scale, to one part in 2^20, and
/// no zero point. Nodes whose results others read too stay beside the unit.
///
/// Also replaces
///
///   DequantizeLinear of x, MaxPool, QuantizeLinear
///
/// by the MaxPool of x's codes, which gives the same bits: x and y must have one type of 8 bits,
/// one scale and one zero point, per tensor.
///
/// Where an engine runs the remainder, units read nothing that their nodes do not: a
/// DequantizeLinear of x that others read as well keeps a unit from being one.
Status fuse_quantized_units(Graph& graph, Remainder remainder = Remainder::nobody);

}  // namespace castor::onnx
