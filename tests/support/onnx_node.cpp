// SPDX-License-Identifier: Apache-2.0
#include "tests/support/onnx_node.hpp"

#include <fmt/format.h>
#include <onnx_subset.pb.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>

namespace castor::test {

namespace {

namespace fs = std::filesystem;
using namespace onnx_subset;
using Values = google::protobuf::RepeatedPtrField<ValueInfoProto>;

Error broken(std::string_view message) { return {ErrorCode::io, std::string(message)}; }

// Source: ONNX, TensorProto.DataType. Left out: 8 strings, 14 and 15 complex numbers.
constexpr std::array<std::optional<ElementType>, 27> types = [] {
  using enum ElementType;
  std::array<std::optional<ElementType>, 27> by_number;
  by_number[1] = f32;
  by_number[2] = u8;
  by_number[3] = i8;
  by_number[4] = u16;
  by_number[5] = i16;
  by_number[6] = i32;
  by_number[7] = i64;
  by_number[9] = boolean;
  by_number[10] = f16;
  by_number[11] = f64;
  by_number[12] = u32;
  by_number[13] = u64;
  by_number[16] = bf16;
  by_number[17] = f8e4m3;
  by_number[18] = f8e4m3fnuz;
  by_number[19] = f8e5m2;
  by_number[20] = f8e5m2fnuz;
  by_number[21] = u4;
  by_number[22] = i4;
  by_number[23] = f4e2m1;
  by_number[24] = f8e8m0;
  by_number[25] = u2;
  by_number[26] = i2;
  return by_number;
}();

/// The values of a typed field, each in sizeof(Unit) bytes.
template <class Unit, class Field>
std::vector<std::byte> units(const Field& field) {
  std::vector<std::byte> bytes(static_cast<size_t>(field.size()) * sizeof(Unit));
  for (int i = 0; i < field.size(); ++i) {
    const Unit unit = static_cast<Unit>(field[i]);
    std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof unit, &unit, sizeof unit);
  }
  return bytes;
}

/// A value of int32_data is one element's bits; for types narrower than a byte, one packed byte.
std::vector<std::byte> typed_data(const TensorProto& tensor, ElementType type) {
  switch (type) {
    case ElementType::f32: return units<float>(tensor.float_data());
    case ElementType::f64: return units<double>(tensor.double_data());
    case ElementType::i64: return units<int64_t>(tensor.int64_data());
    case ElementType::u64: return units<uint64_t>(tensor.uint64_data());
    case ElementType::u32: return units<uint32_t>(tensor.uint64_data());
    case ElementType::i32: return units<int32_t>(tensor.int32_data());
    default: break;
  }
  return bits_of(type) == 16 ? units<uint16_t>(tensor.int32_data())
                             : units<uint8_t>(tensor.int32_data());
}

/// raw_data is castor's storage: little endian, sub-byte elements from the low bits on.
std::vector<std::byte> data_of(const TensorProto& tensor, ElementType type) {
  if (tensor.raw_data().empty()) return typed_data(tensor, type);
  const auto raw = std::as_bytes(std::span(tensor.raw_data()));
  return {raw.begin(), raw.end()};
}

Result<OnnxTensor> to_tensor(const TensorProto& tensor) {
  OnnxTensor result;
  result.data_type = tensor.data_type();
  result.element = element_type_of_onnx(tensor.data_type());
  if (tensor.dims_size() > max_rank) return broken("a tensor of too many dimensions");
  for (int64_t extent : tensor.dims()) {
    if (extent < 0) return broken(fmt::format("a dimension of {}", extent));
    result.shape.push_back(extent);
  }
  if (!result.element) return result;
  result.bytes = data_of(tensor, *result.element);
  const auto count = element_count(result.shape);
  const auto expected = count ? byte_size(*result.element, *count) : std::nullopt;
  if (!expected || result.bytes.size() != static_cast<uint64_t>(*expected)) {
    return broken(fmt::format("{} bytes for {}{}", result.bytes.size(), name_of(*result.element),
                              to_string(result.shape)));
  }
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
Result<OnnxTensor> read_tensor(const fs::path& file, const ValueInfoProto& declared) {
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
  return read_tensor(folder / fmt::format("input_{}.pb", place), *input);
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
    auto tensor = read_tensor(folder / fmt::format("output_{}.pb", i), graph.output(i));
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
  if (data_type < 0 || data_type >= static_cast<int64_t>(types.size())) return std::nullopt;
  return types[static_cast<size_t>(data_type)];
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
