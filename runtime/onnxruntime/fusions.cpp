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

/// Whether it has that name, of ONNX's own operators or ONNX Runtime's.
bool is(const Graph& graph, NodeIndex index, std::string_view op_type) {
  if (index == onnx::no_node) return false;
  const Node& node = graph.nodes[index];
  return node.op_type == op_type && (node.domain.empty() || node.domain == onnx::microsoft_domain);
}

NodeIndex producer_of(const Graph& graph, ValueIndex value) {
  return value == onnx::absent ? onnx::no_node : graph.values[value].producer;
}

const std::vector<NodeIndex>& readers_of(const Graph& graph, NodeIndex index) {
  static constinit const std::vector<NodeIndex> none;
  const Node& node = graph.nodes[index];
  return node.has_output(0) ? graph.values[node.outputs[0]].consumers : none;
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
      readers.size() == 1 && is_one_of(graph.nodes[readers[0]], {"Relu", "Clip"});
  return is_activated ? readers[0] : index;
}

}  // namespace

bool is_one_of(const Node& node, std::initializer_list<std::string_view> names) {
  return node.domain.empty() && std::ranges::find(names, node.op_type) != names.end();
}

bool is_product(const Graph& graph, const Node& node) {
  if (is_one_of(node, {"MatMulInteger"})) {
    return node.has_input(1) && graph.values[node.inputs[1]].element == ElementType::u8;
  }
  return is_one_of(node, {"ConvInteger", "QLinearConv", "QLinearMatMul"}) ||
         (node.op_type == "QGemm" && node.domain == onnx::microsoft_domain);
}

bool leads_fusions(const Graph& graph, const Node& node) {
  if (is_one_of(node, {"MatMulInteger"})) return !is_product(graph, node);
  return is_one_of(node, {"Conv", "ConvTranspose", "Gemm", "MatMul", "Erf", "Tanh", "Sigmoid"});
}

bool ends_fusions(const Node& node) { return is_one_of(node, {"Erf", "Tanh"}); }

std::vector<NodeIndex> quantized_unit_around(const Graph& graph, NodeIndex operation) {
  const Node& node = graph.nodes[operation];
  const bool is_pool = is_one_of(node, {"MaxPool"});
  const bool has_quantized_form =
      is_pool || is_one_of(node, {"Conv", "Gemm", "MatMul", "AveragePool", "GlobalAveragePool",
                                  "Resize", "Concat"});
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
