// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnx/examine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/interpreter/interpreter.hpp"
#include "runtime/onnx/left_types.hpp"
#include "runtime/onnx/rules.hpp"

namespace castor::onnx {

namespace {

/// Results up to this size are folded: shapes, scales, biases, but no weights.
constexpr int64_t max_folded_bytes = 64 << 10;

/// A node that is a function by itself.
struct Probe {
  FunctionPtr function;
  std::vector<size_t>
      outputs;  ///< indices of the node's outputs, in the order of the function's results
  bool has_parameters = false;
};

Result<Probe> probe(const Graph& graph, NodeIndex index) {
  const Node& node = graph.nodes[index];
  Translation into(graph, "node", Constants::parameters);
  translate(node, into);
  Probe result;
  for (size_t i = 0; i < node.outputs.size() && !into.refusal(); ++i) {
    if (!node.has_output(i) || !into.is_defined(node.outputs[i])) continue;
    into.builder().result(into.value_of(node.outputs[i]));
    result.outputs.push_back(i);
  }
  if (into.refusal()) return Error{ErrorCode::unsupported, *into.refusal()};
  auto function = into.builder().finish();
  if (!function) return function.error();
  result.function = std::move(*function);
  result.has_parameters = !into.parameters().empty();
  return result;
}

bool differs(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return true;
  for (size_t axis = 0; axis < a.size(); ++axis) {
    if (a[axis].is_fixed() && b[axis].is_fixed() && a[axis].extent != b[axis].extent) return true;
  }
  return false;
}

/// Extents that either side knows, with the declared names.
Shape merged(const Shape& declared, const Shape& inferred) {
  Shape shape = declared;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (!shape[axis].is_fixed() && (inferred[axis].is_fixed() || shape[axis].name.empty())) {
      shape[axis] = inferred[axis];
    }
  }
  return shape;
}

Status set_type(Value& value, const TensorType& type) {
  const bool contradicts = (value.element && *value.element != type.element) ||
                           (value.shape && differs(*value.shape, type.shape));
  if (contradicts) {
    const TensorType declared = {value.element.value_or(type.element),
                                 value.shape.value_or(type.shape)};
    return Error{ErrorCode::invalid_argument,
                 fmt::format("its output {} is {}, declared as {}", value.name, to_string(type),
                             to_string(declared))};
  }
  value.element = type.element;
  value.shape = value.shape ? merged(*value.shape, type.shape) : type.shape;
  return {};
}

Status set_types(Graph& graph, NodeIndex index, const Probe& probe) {
  for (size_t i = 0; i < probe.outputs.size(); ++i) {
    Value& value = graph.values[graph.nodes[index].outputs[probe.outputs[i]]];
    const Status status = set_type(value, probe.function->type_of(probe.function->results[i]));
    if (!status) {
      return Error{status.error().code,
                   fmt::format("{}: {}", describe(graph, index), status.error().message)};
    }
  }
  return {};
}

/// Bytes of a result whose extents are known.
std::optional<int64_t> bytes_of(const TensorType& type) {
  if (!is_fixed(type.shape)) return std::nullopt;
  Dims extents;
  for (const Dim& dim : type.shape) extents.push_back(dim.extent);
  const auto count = element_count(extents);
  return count ? byte_size(type.element, *count) : std::nullopt;
}

bool folds(const Probe& probe) {
  const Function& function = *probe.function;
  return !probe.has_parameters && std::ranges::all_of(function.results, [&](ValueId result) {
    const auto bytes = bytes_of(function.type_of(result));
    return bytes && *bytes <= max_folded_bytes;
  });
}

/// A tensor of that type for a result, and the view through which it is written.
View room_for(const TensorType& type, ConstantData& data) {
  Dims extents;
  for (const Dim& dim : type.shape) extents.push_back(dim.extent);
  data.bytes.resize(static_cast<size_t>(bytes_of(type).value_or(0)));
  return {data.bytes.data(), type.element, extents, data.bytes.size()};
}

/// Makes the outputs of a node without parameters constants of the graph.
bool fold(Graph& graph, NodeIndex index, const Probe& probe) {
  const Function& function = *probe.function;
  std::vector<ConstantData> data(function.results.size());
  std::vector<View> views;
  for (size_t i = 0; i < data.size(); ++i) {
    views.push_back(room_for(function.type_of(function.results[i]), data[i]));
  }
  if (!interpret(function, {}, views)) return false;
  for (size_t i = 0; i < data.size(); ++i) {
    Value& value = graph.values[graph.nodes[index].outputs[probe.outputs[i]]];
    value.constant = Tensor{views[i].element, views[i].shape,
                            std::make_shared<const ConstantData>(std::move(data[i]))};
  }
  return true;
}

}  // namespace

Result<std::vector<Verdict>> examine(Graph& graph, Remainder remainder) {
  std::vector<Verdict> verdicts(graph.nodes.size());
  for (NodeIndex index = 0; index < graph.nodes.size(); ++index) {
    Verdict& verdict = verdicts[index];
    const Result<Probe> probed = probe(graph, index);
    if (!probed) {
      verdict.reason = probed.error().message;
      infer_left_types(graph, index);
      continue;
    }
    if (Status status = set_types(graph, index, *probed); !status) {
      if (remainder == Remainder::nobody) return status.error();
      verdict.reason = status.error().message;
      continue;
    }
    const bool is_folded = folds(*probed) && fold(graph, index, *probed);
    verdict.kind = is_folded ? Verdict::Kind::folded : Verdict::Kind::taken;
  }
  return verdicts;
}

}  // namespace castor::onnx
