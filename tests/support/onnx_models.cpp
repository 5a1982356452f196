// SPDX-License-Identifier: Apache-2.0
#include "tests/support/onnx_models.hpp"

#include <fmt/format.h>
#include <onnx.pb.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "tools/onnx/model.hpp"
#include "tools/onnx/tensors.hpp"

namespace castor::test {

namespace {

namespace fs = std::filesystem;
using namespace onnx_file;

Error broken(const std::string& message) { return {ErrorCode::io, message}; }

Result<std::string> bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return broken(fmt::format("cannot read {}", file.string()));
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

/// The tensor in a file, which has the element type that the model declares.
Result<onnx::Tensor> read_tensor_file(const fs::path& file, std::optional<ElementType> declared) {
  const auto bytes = bytes_of(file);
  if (!bytes) return bytes.error();
  TensorProto tensor;
  if (!tensor.ParseFromString(*bytes)) return broken(fmt::format("no tensor: {}", file.string()));
  auto read = read_tensor(tensor);
  // ONNX before 1.19 stores BFLOAT16 tensors as UINT16.
  const bool is_bfloat16 = declared == ElementType::bf16;
  if (read && is_bfloat16 && read->element == ElementType::u16) read->element = *declared;
  return read;
}

bool has_shape(const onnx::Tensor& tensor, const std::optional<Shape>& declared) {
  if (!declared) return true;
  if (declared->size() != static_cast<size_t>(tensor.shape.rank())) return false;
  for (int axis = 0; axis < tensor.shape.rank(); ++axis) {
    const Dim& dim = (*declared)[static_cast<size_t>(axis)];
    if (dim.is_fixed() && dim.extent != tensor.shape[axis]) return false;
  }
  return true;
}

/// The tensors of values, in files that count from 0.
Result<std::vector<onnx::Tensor>> read_tensors(const onnx::Graph& graph, const fs::path& folder,
                                               std::string_view role,
                                               const std::vector<onnx::ValueIndex>& values) {
  std::vector<onnx::Tensor> tensors;
  for (size_t i = 0; i < values.size(); ++i) {
    const fs::path file = folder / fmt::format("{}_{}.pb", role, i);
    auto tensor = read_tensor_file(file, graph.values[values[i]].element);
    if (!tensor) return tensor.error();
    if (!has_shape(*tensor, graph.values[values[i]].shape)) {
      return Error{ErrorCode::unsupported, "data of another shape than the model says"};
    }
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

bool has_only_tensors(const GraphProto& graph) {
  const auto is_tensor = [](const ValueInfoProto& value) { return value.type().has_tensor_type(); };
  return std::ranges::all_of(graph.input(), is_tensor) &&
         std::ranges::all_of(graph.output(), is_tensor);
}

Status read_data_sets(const fs::path& folder, OnnxModelTest& test) {
  for (int i = 0;; ++i) {
    const fs::path set = folder / fmt::format("test_data_set_{}", i);
    if (!fs::is_directory(set)) break;
    auto inputs = read_tensors(test.graph, set, "input", test.graph.inputs);
    if (!inputs) return inputs.error();
    auto outputs = read_tensors(test.graph, set, "output", test.graph.outputs);
    if (!outputs) return outputs.error();
    test.data_sets.push_back({std::move(*inputs), std::move(*outputs)});
  }
  if (test.data_sets.empty()) return broken(fmt::format("{} has no data", folder.string()));
  return {};
}

/// Nothing is known of extents, but ranks.
void forget_extents(onnx::Graph& graph) {
  for (onnx::Value& value : graph.values) {
    if (value.constant || !value.shape) continue;
    value.shape = Shape(value.shape->size(), Dim::any());
  }
}

/// Whether an input says a shape or axes.
bool says_shape(const onnx::Tensor& tensor) {
  return tensor.element == ElementType::i64 && tensor.shape.rank() == 1;
}

Result<FunctionPtr> function_of(onnx::Graph graph) {
  const auto plan = make_plan(std::move(graph));
  if (!plan) return plan.error();
  return whole_function(*plan);
}

/// The graph with some inputs as constants.
template <class Wanted>
onnx::Graph with_constants(onnx::Graph graph, const OnnxModelData& data, const Wanted& is_wanted) {
  std::vector<onnx::ValueIndex> inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    if (is_wanted(data.inputs[i])) {
      onnx::Value& value = graph.values[graph.inputs[i]];
      value.constant = data.inputs[i];
      value.shape = to_shape(data.inputs[i].shape);
    } else {
      inputs.push_back(graph.inputs[i]);
    }
  }
  graph.inputs = std::move(inputs);
  return graph;
}

}  // namespace

Result<OnnxModelTest> read_onnx_model_test(const fs::path& folder) {
  const auto bytes = bytes_of(folder / "model.onnx");
  if (!bytes) return bytes.error();
  ModelProto model;
  if (!model.ParseFromString(*bytes)) return broken(fmt::format("no model: {}", folder.string()));
  if (!has_only_tensors(model.graph())) {
    return Error{ErrorCode::unsupported, "values that are not tensors"};
  }
  auto graph = parse_model(*bytes, folder);
  if (!graph) return graph.error();
  OnnxModelTest test{folder.filename().string(), std::move(*graph), {}};
  if (Status status = read_data_sets(folder, test); !status) return status.error();
  return test;
}

Result<OnnxFunction> onnx_function(const OnnxModelTest& test, const OnnxModelData& data,
                                   const OnnxForm& form) {
  onnx::Graph graph = test.graph;
  if (form.unknown_extents) forget_extents(graph);
  const auto is_scalar = [&](const onnx::Tensor& tensor) {
    return form.known_scalars && tensor.shape.empty() && data.inputs.size() > 1;
  };
  const auto is_known = [&](const onnx::Tensor& tensor) {
    return says_shape(tensor) || is_scalar(tensor);
  };
  std::vector<size_t> inputs;
  auto function = function_of(with_constants(graph, data, is_scalar));
  const bool needs_shapes = !function;
  if (needs_shapes) function = function_of(with_constants(graph, data, is_known));
  if (!function) return function.error();
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    const bool is_constant = needs_shapes ? is_known(data.inputs[i]) : is_scalar(data.inputs[i]);
    if (!is_constant) inputs.push_back(i);
  }
  return OnnxFunction{*function, std::move(inputs)};
}

std::string ops_of(const Function& function) {
  std::string text;
  for (const Operation& operation : function.operations) {
    if (operation.op == OpKind::constant) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", name_of(operation.op));
  }
  return text.empty() ? "the input itself" : text;
}

std::string to_string(const OnnxListRow& row) {
  return fmt::format("{} | {} | {}", row.name, row.runs ? "run" : "left out", row.text);
}

std::vector<OnnxListRow> read_onnx_list(const std::filesystem::path& file) {
  constexpr std::string_view between = " | ";
  std::vector<OnnxListRow> rows;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    const size_t first = line.find(between);
    const size_t second = line.find(between, first + 1);
    if (line.starts_with("#") || second == std::string::npos) continue;
    const std::string fate = line.substr(first + between.size(), second - first - between.size());
    rows.push_back({line.substr(0, first), fate == "run", line.substr(second + between.size())});
  }
  return rows;
}

void write_onnx_list(const std::filesystem::path& file, std::vector<OnnxListRow> rows) {
  std::string text;
  std::ifstream old(file);
  for (std::string line; std::getline(old, line) && line.starts_with("#");) text += line + "\n";
  old.close();
  std::ranges::sort(rows);
  for (const OnnxListRow& row : rows) text += to_string(row) + "\n";
  std::ofstream(file) << text;
}

}  // namespace castor::test
