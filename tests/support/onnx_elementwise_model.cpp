// SPDX-License-Identifier: Apache-2.0
#include "tests/support/onnx_elementwise_model.hpp"

#include <fmt/format.h>
#include <onnx_subset.pb.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace castor::test {

namespace {

namespace fs = std::filesystem;
using namespace onnx_subset;

Error broken(const std::string& message) { return {ErrorCode::io, message}; }

Result<std::string> bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return broken(fmt::format("cannot read {}", file.string()));
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

Result<OnnxTensor> read_tensor(const fs::path& file) {
  const auto bytes = bytes_of(file);
  return bytes ? parse_onnx_tensor(*bytes) : bytes.error();
}

Result<OnnxNodeAttribute> to_attribute(const AttributeProto& attribute) {
  OnnxNodeAttribute result{attribute.i(),
                           attribute.f(),
                           attribute.s(),
                           {attribute.ints().begin(), attribute.ints().end()},
                           {}};
  if (!attribute.t().empty()) {
    auto tensor = parse_onnx_tensor(attribute.t());
    if (!tensor) return tensor.error();
    result.tensor = std::move(*tensor);
  }
  return result;
}

Result<OnnxGraphNode> to_node(const NodeProto& node) {
  OnnxGraphNode result;
  result.op_type = node.op_type();
  result.inputs = {node.input().begin(), node.input().end()};
  result.outputs = {node.output().begin(), node.output().end()};
  for (const AttributeProto& attribute : node.attribute()) {
    auto value = to_attribute(attribute);
    if (!value) return value.error();
    result.attributes[attribute.name()] = std::move(*value);
  }
  return result;
}

Result<OnnxGraphData> read_data(const GraphProto& graph, const fs::path& folder) {
  OnnxGraphData data;
  for (const TensorProto& initializer : graph.initializer()) {
    auto tensor = parse_onnx_tensor(initializer.SerializeAsString());
    if (!tensor) return tensor.error();
    data.inputs.insert_or_assign(initializer.name(), std::move(*tensor));
  }
  for (int i = 0; i < graph.input_size(); ++i) {
    auto tensor = read_tensor(folder / fmt::format("input_{}.pb", i));
    if (!tensor) return tensor.error();
    data.inputs.insert_or_assign(graph.input(i).name(), std::move(*tensor));
  }
  for (int i = 0; i < graph.output_size(); ++i) {
    auto tensor = read_tensor(folder / fmt::format("output_{}.pb", i));
    if (!tensor) return tensor.error();
    data.outputs.push_back(std::move(*tensor));
  }
  return data;
}

bool has_only_tensors(const GraphProto& graph) {
  const auto is_tensor = [](const ValueInfoProto& value) { return value.type().has_tensor_type(); };
  return std::ranges::all_of(graph.input(), is_tensor) &&
         std::ranges::all_of(graph.output(), is_tensor);
}

Status read_data_sets(const GraphProto& graph, const fs::path& folder, OnnxGraphTest& test) {
  for (int i = 0;; ++i) {
    const fs::path place = folder / fmt::format("test_data_set_{}", i);
    if (!fs::is_directory(place)) break;
    auto data = read_data(graph, place);
    if (!data) return data.error();
    test.data_sets.push_back(std::move(*data));
  }
  if (test.data_sets.empty()) return broken(fmt::format("{} has no data", folder.string()));
  return {};
}

}  // namespace

const OnnxNodeAttribute* OnnxGraphNode::find(const std::string& attribute) const {
  const auto at = attributes.find(attribute);
  return at == attributes.end() ? nullptr : &at->second;
}

int64_t OnnxGraphNode::integer(const std::string& attribute, int64_t otherwise) const {
  const OnnxNodeAttribute* found = find(attribute);
  return found != nullptr ? found->i : otherwise;
}

float OnnxGraphNode::number(const std::string& attribute, float otherwise) const {
  const OnnxNodeAttribute* found = find(attribute);
  return found != nullptr ? found->f : otherwise;
}

Result<OnnxGraphTest> read_onnx_graph_test(const fs::path& folder) {
  const auto bytes = bytes_of(folder / "model.onnx");
  if (!bytes) return bytes.error();
  ModelProto model;
  if (!model.ParseFromString(*bytes)) return broken(fmt::format("no model: {}", folder.string()));
  const GraphProto& graph = model.graph();

  OnnxGraphTest test;
  test.name = folder.filename().string();
  for (const NodeProto& node : graph.node()) {
    auto read = to_node(node);
    if (!read) return read.error();
    test.nodes.push_back(std::move(*read));
  }
  for (const ValueInfoProto& output : graph.output()) test.outputs.push_back(output.name());
  if (!has_only_tensors(graph)) return test;
  if (Status status = read_data_sets(graph, folder, test); !status) return status.error();
  return test;
}

}  // namespace castor::test
