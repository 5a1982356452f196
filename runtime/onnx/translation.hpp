// SPDX-License-Identifier: Apache-2.0
// The function that nodes of a graph become, while they are translated.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/builder.hpp"
#include "runtime/onnx/extent_names.hpp"
#include "runtime/onnx/graph.hpp"

namespace castor::onnx {

/// How constants of the graph get into a function.
enum class Constants : uint8_t {
  embedded,    ///< as constants
  parameters,  ///< as parameters, so that only types are looked at; small ones stay constants
};

/// Collects a function's operations.
///
/// A value from outside becomes a parameter where a node reads it as a tensor; shapes and axes that
/// nodes take as inputs must be constants. The first thing that castor cannot express is kept as
/// the refusal, and everything after it is without effect.
class Translation {
 public:
  Translation(const Graph& graph, std::string name, Constants constants);

  const Graph& graph() const { return graph_; }
  FunctionBuilder& builder() { return builder_; }

  /// A value of the graph as a tensor: what it has become, a constant or a parameter.
  ValueId tensor(ValueIndex value);
  /// Input `i` of a node, which must be there, as a tensor.
  ValueId input(const Node& node, size_t i);
  /// The same, but `no_value` where it is left out.
  ValueId optional_input(const Node& node, size_t i);

  /// What is known of input `i` without reading it as a tensor.
  struct InputType {
    std::optional<ElementType> element{};
    std::optional<Shape> shape{};
  };
  InputType type_of_input(const Node& node, size_t i) const;

  /// Whether the node has output `i`, and a node or the graph's user reads it.
  bool is_read(const Node& node, size_t i) const;

  /// The constant that input `i` is, or null: then nothing is refused.
  const Tensor* known(const Node& node, size_t i) const;
  /// A constant of i64 or i32 as numbers; refuses what is not known.
  std::vector<int64_t> known_integers(const Node& node, size_t i);

  /// What a value has become so far; f32 and a scalar once something has been refused.
  ElementType element(ValueId value) const;
  Shape shape(ValueId value) const;
  int64_t rank(ValueId value) const { return static_cast<int64_t>(shape(value).size()); }

  /// A scalar of that type.
  ValueId scalar(float number, ElementType element);
  ValueId constant(const Tensor& tensor);
  ValueId binary(OpKind op, ValueId a, ValueId b) { return builder_.binary(op, a, b); }
  ValueId unary(OpKind op, ValueId x) { return builder_.unary(op, x); }

  /// Says that `output` of the graph is `value` from here on.
  void define(ValueIndex output, ValueId value) { values_[output] = value; }
  /// The value that stands for it, which must have been defined or read.
  ValueId value_of(ValueIndex value) const { return values_.at(value); }
  bool is_defined(ValueIndex value) const { return values_.contains(value); }

  void refuse(std::string reason);
  const std::optional<std::string>& refusal() const { return refusal_; }
  /// The graph's values that are the function's parameters, in their order.
  const std::vector<ValueIndex>& parameters() const { return parameters_; }

 private:
  ValueId parameter(ValueIndex value);

  const Graph& graph_;
  Constants constants_;
  FunctionBuilder builder_;
  std::unordered_map<ValueIndex, ValueId> values_;
  std::vector<ValueIndex> parameters_;
  std::optional<std::string> refusal_;
};

}  // namespace castor::onnx
