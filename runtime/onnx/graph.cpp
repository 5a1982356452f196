// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnx/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "runtime/onnx/extent_names.hpp"

namespace castor::onnx {

namespace {

Error broken(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

Status set_producers(Graph& graph) {
  std::vector<bool> is_input(graph.values.size());
  for (const ValueIndex input : graph.inputs) is_input[input] = true;
  for (NodeIndex index = 0; index < graph.nodes.size(); ++index) {
    for (const ValueIndex output : graph.nodes[index].outputs) {
      if (output == absent) continue;
      Value& value = graph.values[output];
      if (value.producer != no_node || value.constant || is_input[output]) {
        return broken(
            fmt::format("{}: its output {} is defined twice", describe(graph, index), value.name));
      }
      value.producer = index;
    }
  }
  return {};
}

/// Every value that is read is an input, an initializer or a node's output.
Status check_sources(const Graph& graph) {
  std::vector<bool> is_defined(graph.values.size());
  for (const ValueIndex input : graph.inputs) {
    if (is_defined[input])
      return broken(fmt::format("the input {} is there twice", graph.values[input].name));
    is_defined[input] = true;
  }
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& value = graph.values[i];
    if (value.constant || value.producer != no_node) is_defined[i] = true;
  }
  for (NodeIndex index = 0; index < graph.nodes.size(); ++index) {
    for (const ValueIndex input : graph.nodes[index].inputs) {
      if (input == absent || is_defined[input]) continue;
      return broken(fmt::format("{}: its input {} is defined by no node, input or initializer",
                                describe(graph, index), graph.values[input].name));
    }
  }
  for (const ValueIndex output : graph.outputs) {
    if (is_defined[output]) continue;
    return broken(fmt::format("the graph's output {} is defined by no node, input or initializer",
                              graph.values[output].name));
  }
  return {};
}

/// For each node, the nodes whose outputs it reads, each once.
std::vector<std::vector<NodeIndex>> producers_of(const Graph& graph) {
  std::vector<std::vector<NodeIndex>> producers(graph.nodes.size());
  for (NodeIndex index = 0; index < graph.nodes.size(); ++index) {
    for (const ValueIndex input : graph.nodes[index].inputs) {
      if (input == absent || graph.values[input].producer == no_node) continue;
      producers[index].push_back(graph.values[input].producer);
    }
    std::ranges::sort(producers[index]);
    const auto repeated = std::unique(producers[index].begin(), producers[index].end());
    producers[index].erase(repeated, producers[index].end());
  }
  return producers;
}

/// An order in which producers come first; of nodes that are ready, the one that came first in the
/// file. Fewer nodes than there are: the others are on a cycle, or depend on one.
std::vector<NodeIndex> topological_order(const std::vector<std::vector<NodeIndex>>& producers) {
  std::vector<std::vector<NodeIndex>> readers(producers.size());
  std::vector<size_t> waits_for(producers.size());
  std::priority_queue<NodeIndex, std::vector<NodeIndex>, std::greater<>> ready;
  for (NodeIndex index = 0; index < producers.size(); ++index) {
    waits_for[index] = producers[index].size();
    if (waits_for[index] == 0) ready.push(index);
    for (const NodeIndex producer : producers[index]) readers[producer].push_back(index);
  }
  std::vector<NodeIndex> order;
  while (!ready.empty()) {
    const NodeIndex index = ready.top();
    ready.pop();
    order.push_back(index);
    for (const NodeIndex reader : readers[index]) {
      if (--waits_for[reader] == 0) ready.push(reader);
    }
  }
  return order;
}

Status sort_nodes(Graph& graph) {
  const std::vector<NodeIndex> order = topological_order(producers_of(graph));
  if (order.size() < graph.nodes.size()) {
    std::vector<bool> is_placed(graph.nodes.size());
    for (const NodeIndex index : order) is_placed[index] = true;
    const auto stuck = std::ranges::find(is_placed, false) - is_placed.begin();
    return broken(
        fmt::format("{} depends on itself", describe(graph, static_cast<NodeIndex>(stuck))));
  }
  std::vector<Node> sorted;
  sorted.reserve(order.size());
  for (const NodeIndex index : order) sorted.push_back(std::move(graph.nodes[index]));
  graph.nodes = std::move(sorted);
  return {};
}

void set_links(Graph& graph) {
  for (Value& value : graph.values) {
    value.producer = no_node;
    value.consumers.clear();
    value.is_output = false;
  }
  for (NodeIndex index = 0; index < graph.nodes.size(); ++index) {
    for (const ValueIndex output : graph.nodes[index].outputs) {
      if (output != absent) graph.values[output].producer = index;
    }
    for (const ValueIndex input : graph.nodes[index].inputs) {
      if (input == absent) continue;
      std::vector<NodeIndex>& consumers = graph.values[input].consumers;
      if (consumers.empty() || consumers.back() != index) consumers.push_back(index);
    }
  }
  for (const ValueIndex output : graph.outputs) graph.values[output].is_output = true;
}

struct DataType {
  std::string_view name;
  std::optional<ElementType> element;
};

// Source: ONNX, TensorProto.DataType. castor has no strings and no complex numbers.
constexpr DataType data_types[] = {
    {"UNDEFINED", {}},
    {"FLOAT", ElementType::f32},
    {"UINT8", ElementType::u8},
    {"INT8", ElementType::i8},
    {"UINT16", ElementType::u16},
    {"INT16", ElementType::i16},
    {"INT32", ElementType::i32},
    {"INT64", ElementType::i64},
    {"STRING", {}},
    {"BOOL", ElementType::boolean},
    {"FLOAT16", ElementType::f16},
    {"DOUBLE", ElementType::f64},
    {"UINT32", ElementType::u32},
    {"UINT64", ElementType::u64},
    {"COMPLEX64", {}},
    {"COMPLEX128", {}},
    {"BFLOAT16", ElementType::bf16},
    {"FLOAT8E4M3FN", ElementType::f8e4m3},
    {"FLOAT8E4M3FNUZ", ElementType::f8e4m3fnuz},
    {"FLOAT8E5M2", ElementType::f8e5m2},
    {"FLOAT8E5M2FNUZ", ElementType::f8e5m2fnuz},
    {"UINT4", ElementType::u4},
    {"INT4", ElementType::i4},
    {"FLOAT4E2M1", ElementType::f4e2m1},
    {"FLOAT8E8M0", ElementType::f8e8m0},
    {"UINT2", ElementType::u2},
    {"INT2", ElementType::i2},
    {"FLOAT6E2M3", ElementType::f6e2m3},
    {"FLOAT6E3M2", ElementType::f6e3m2},
};

const DataType* find_data_type(int64_t number) {
  const bool is_known = number >= 0 && number < static_cast<int64_t>(std::size(data_types));
  return is_known ? &data_types[number] : nullptr;
}

}  // namespace

int64_t Node::integer(std::string_view attribute, int64_t otherwise) const {
  const auto* value = find<int64_t>(attribute);
  return value != nullptr ? *value : otherwise;
}

float Node::number(std::string_view attribute, float otherwise) const {
  const auto* value = find<float>(attribute);
  return value != nullptr ? *value : otherwise;
}

std::string_view Node::text(std::string_view attribute, std::string_view otherwise) const {
  const auto* value = find<std::string>(attribute);
  return value != nullptr ? std::string_view(*value) : otherwise;
}

std::vector<int64_t> Node::integers(std::string_view attribute) const {
  const auto* value = find<std::vector<int64_t>>(attribute);
  return value != nullptr ? *value : std::vector<int64_t>();
}

std::string describe(const Graph& graph, NodeIndex node) {
  const Node& at = graph.nodes[node];
  return at.name.empty() ? fmt::format("node {} ({})", node, at.op_type)
                         : fmt::format("node {} ({})", at.name, at.op_type);
}

Status connect(Graph& graph) {
  for (Value& value : graph.values) value.producer = no_node;
  if (Status status = set_producers(graph); !status) return status;
  if (Status status = check_sources(graph); !status) return status;
  if (Status status = sort_nodes(graph); !status) return status;
  set_links(graph);
  name_extents(graph);
  return {};
}

std::optional<ElementType> quantized_type(const Node& node, std::optional<ElementType> zero_point) {
  const int64_t data_type = node.integer("output_dtype", 0);
  if (data_type == 0) return zero_point.value_or(ElementType::u8);
  const auto named = element_type_of(data_type);
  return zero_point && zero_point != named ? std::nullopt : named;
}

std::optional<ElementType> element_type_of(int64_t data_type) {
  const DataType* found = find_data_type(data_type);
  return found == nullptr ? std::nullopt : found->element;
}

std::string data_type_name(int64_t data_type) {
  const DataType* found = find_data_type(data_type);
  return found == nullptr ? fmt::format("data type {}", data_type) : std::string(found->name);
}

}  // namespace castor::onnx
