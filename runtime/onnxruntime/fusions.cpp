// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnxruntime/fusions.hpp"

#include <algorithm>
#include <string_view>

namespace castor::onnxruntime {

namespace {

using onnx::Graph;
using onnx::Node;
using onnx::NodeIndex;
using onnx::ValueIndex;

bool is_one_of(std::string_view op_type, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, op_type) != names.end();
}

bool is(const Graph& graph, NodeIndex index, std::string_view op_type) {
  return index != onnx::no_node && graph.nodes[index].op_type == op_type;
}

NodeIndex producer_of(const Graph& graph, ValueIndex value) {
  return value == onnx::absent ? onnx::no_node : graph.values[value].producer;
}

const std::vector<NodeIndex>& readers_of(const Graph& graph, NodeIndex index) {
  return graph.values[graph.nodes[index].outputs[0]].consumers;
}

/// The node of that operator that computes a value for a single reader; else no_node.
NodeIndex sole_producer(const Graph& graph, ValueIndex value, std::string_view op_type) {
  const NodeIndex producer = producer_of(graph, value);
  const bool is_sole = is(graph, producer, op_type) && readers_of(graph, producer).size() == 1;
  return is_sole ? producer : onnx::no_node;
}

/// The only reader, where it is an activation; else the node itself.
NodeIndex activation_of(const Graph& graph, NodeIndex index) {
  const std::vector<NodeIndex>& readers = readers_of(graph, index);
  const bool is_activated =
      readers.size() == 1 && is_one_of(graph.nodes[readers[0]].op_type, {"Relu", "Clip"});
  return is_activated ? readers[0] : index;
}

}  // namespace

bool is_product(const Graph& graph, const Node& node) {
  if (node.op_type == "MatMulInteger") {
    return graph.values[node.inputs[1]].element == ElementType::u8;
  }
  return is_one_of(node.op_type, {"ConvInteger", "QLinearConv", "QLinearMatMul", "QGemm"});
}

bool leads_fusions(const Graph& graph, const Node& node) {
  if (node.op_type == "MatMulInteger") return !is_product(graph, node);
  return is_one_of(node.op_type,
                   {"Conv", "ConvTranspose", "Gemm", "MatMul", "Erf", "Tanh", "Sigmoid"});
}

bool ends_fusions(const Node& node) { return is_one_of(node.op_type, {"Erf", "Tanh"}); }

std::vector<NodeIndex> quantized_unit_around(const Graph& graph, NodeIndex operation) {
  const Node& node = graph.nodes[operation];
  const bool is_pool = node.op_type == "MaxPool";
  const bool has_quantized_form =
      is_pool || is_one_of(node.op_type, {"Conv", "Gemm", "MatMul", "AveragePool",
                                          "GlobalAveragePool", "Resize", "Concat"});
  if (!has_quantized_form || node.inputs.empty()) return {};
  const auto convolution = [&](ValueIndex value) {
    return is_pool ? sole_producer(graph, value, "QLinearConv") : onnx::no_node;
  };
  if (const NodeIndex direct = convolution(node.inputs[0]); direct != onnx::no_node) {
    return {direct};
  }
  std::vector<NodeIndex> unit;
  for (const ValueIndex input : node.inputs) {
    const NodeIndex dequantizer = sole_producer(graph, input, "DequantizeLinear");
    if (dequantizer != onnx::no_node) unit.push_back(dequantizer);
  }
  if (unit.empty()) return {};
  const std::vector<NodeIndex>& readers = readers_of(graph, activation_of(graph, operation));
  const auto quantizes = [&](NodeIndex reader) { return is(graph, reader, "QuantizeLinear"); };
  if (readers.empty() || !std::ranges::all_of(readers, quantizes)) return {};
  const NodeIndex before = convolution(graph.nodes[unit.front()].inputs[0]);
  unit.insert(unit.end(), readers.begin(), readers.end());
  if (before != onnx::no_node) unit.push_back(before);
  return unit;
}

}  // namespace castor::onnxruntime
