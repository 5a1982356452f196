// SPDX-License-Identifier: Apache-2.0
#include "tests/support/onnx_node.hpp"

#include <fmt/format.h>
#include <onnx.pb.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>

#include "tools/onnx/tensors.hpp"

namespace castor::test {

namespace {

namespace fs = std::filesystem;
using namespace onnx_file;
using Values = google::protobuf::RepeatedPtrField<ValueInfoProto>;

Error broken(std::string_view message) { return {ErrorCode::io, std::string(message)}; }

Result<OnnxTensor> to_tensor(const TensorProto& tensor) {
  OnnxTensor result;
  result.data_type = tensor.data_type();
  result.element = element_type_of_onnx(tensor.data_type());
  for (const int64_t extent : tensor.dims()) result.shape.push_back(extent);
  if (!result.element) return result;
  const auto read = read_tensor(tensor);
  if (!read) return read.error();
  result.bytes = read->data->bytes;
  return result;
}

template <class Message>
Result<Message> read_message(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return broken(fmt::format("cannot read {}", file.string()));
  Message message;
  if (!message.ParseFromIstream(&stream)) {
    return broken(fmt::format("{} is not what it should be", file.string()));
  }
  return message;
}

/// The tensor in a file, which must have the element type that the model declares.
Result<OnnxTensor> read_tensor_file(const fs::path& file, const ValueInfoProto& declared) {
  auto message = read_message<TensorProto>(file);
  if (!message) return message.error();
  const int declared_type = declared.type().tensor_type().elem_type();
  // ONNX before 1.19 stores BFLOAT16 tensors as UINT16.
  const bool bfloat16_as_uint16 = element_type_of_onnx(declared_type) == ElementType::bf16 &&
                                  element_type_of_onnx(message->data_type()) == ElementType::u16;
  if (bfloat16_as_uint16) message->set_data_type(declared_type);
  if (message->data_type() != declared_type) {
    return broken(fmt::format("{} has element type {}, the model says {}", file.string(),
                              message->data_type(), declared_type));
  }
  auto tensor = to_tensor(*message);
  if (!tensor) return broken(fmt::format("{}: {}", file.string(), tensor.error().message));
  return tensor;
}

/// The value of that name among the graph's initializers or, by its index, in the input files.
Result<OnnxTensor> read_input(const GraphProto& graph, const std::string& name,
                              const fs::path& folder) {
  const auto& constants = graph.initializer();
  const auto constant = std::ranges::find(constants, name, &TensorProto::name);
  if (constant != constants.end()) return to_tensor(*constant);
  const auto input = std::ranges::find(graph.input(), name, &ValueInfoProto::name);
  if (input == graph.input().end()) return broken(fmt::format("no input is named {}", name));
  const auto place = input - graph.input().begin();
  return read_tensor_file(folder / fmt::format("input_{}.pb", place), *input);
}

Result<OnnxDataSet> read_data_set(const GraphProto& graph, const fs::path& folder) {
  OnnxDataSet data;
  for (const std::string& name : graph.node(0).input()) {
    if (name.empty()) {
      data.inputs.emplace_back();
      continue;
    }
    auto tensor = read_input(graph, name, folder);
    if (!tensor) return tensor.error();
    data.inputs.push_back(std::move(*tensor));
  }
  for (int i = 0; i < graph.output_size(); ++i) {
    auto tensor = read_tensor_file(folder / fmt::format("output_{}.pb", i), graph.output(i));
    if (!tensor) return tensor.error();
    data.outputs.push_back(std::move(*tensor));
  }
  return data;
}

bool are_tensors(const Values& values) {
  return std::ranges::all_of(
      values, [](const ValueInfoProto& value) { return value.type().has_tensor_type(); });
}

Status check_model(const GraphProto& graph) {
  if (graph.node_size() != 1) {
    return Error{ErrorCode::unsupported, fmt::format("a model of {} nodes", graph.node_size())};
  }
  if (!are_tensors(graph.input()) || !are_tensors(graph.output())) {
    return Error{ErrorCode::unsupported, "a model with values that are not tensors"};
  }
  return {};
}

std::map<std::string, OnnxAttribute> attributes_of(const NodeProto& node) {
  std::map<std::string, OnnxAttribute> attributes;
  for (const AttributeProto& attribute : node.attribute()) {
    attributes[attribute.name()] = {
        attribute.i(), attribute.s(), {attribute.ints().begin(), attribute.ints().end()}};
  }
  return attributes;
}

/// The version of ONNX's own operator set, whose domain may be left out.
int64_t opset_of(const ModelProto& model) {
  for (const OperatorSetIdProto& opset : model.opset_import()) {
    if (opset.domain().empty() || opset.domain() == "ai.onnx") return opset.version();
  }
  return 0;
}

}  // namespace

int64_t OnnxNodeTest::integer(const std::string& attribute, int64_t otherwise) const {
  const auto at = attributes.find(attribute);
  return at == attributes.end() ? otherwise : at->second.i;
}

std::string OnnxNodeTest::text(const std::string& attribute, std::string_view otherwise) const {
  const auto at = attributes.find(attribute);
  return at == attributes.end() ? std::string(otherwise) : at->second.s;
}

std::vector<int64_t> OnnxNodeTest::integers(const std::string& attribute,
                                            std::vector<int64_t> otherwise) const {
  const auto at = attributes.find(attribute);
  return at == attributes.end() ? otherwise : at->second.ints;
}

std::optional<ElementType> element_type_of_onnx(int64_t data_type) {
  return onnx::element_type_of(data_type);
}

Result<OnnxTensor> parse_onnx_tensor(std::string_view serialised) {
  TensorProto tensor;
  if (!tensor.ParseFromArray(serialised.data(), static_cast<int>(serialised.size()))) {
    return broken("not a tensor");
  }
  return to_tensor(tensor);
}

Result<OnnxNodeTest> read_onnx_node_test(const fs::path& folder) {
  const auto model = read_message<ModelProto>(folder / "model.onnx");
  if (!model) return model.error();
  const GraphProto& graph = model->graph();
  if (Status status = check_model(graph); !status) return status.error();

  OnnxNodeTest test;
  test.name = folder.filename().string();
  test.op_type = graph.node(0).op_type();
  test.opset = opset_of(*model);
  test.attributes = attributes_of(graph.node(0));
  for (int i = 0;; ++i) {
    const fs::path place = folder / fmt::format("test_data_set_{}", i);
    if (!fs::is_directory(place)) break;
    auto data = read_data_set(graph, place);
    if (!data) return data.error();
    test.data_sets.push_back(std::move(*data));
  }
  if (test.data_sets.empty()) return broken(fmt::format("{} has no data", folder.string()));
  return test;
}

}  // namespace castor::test
