// SPDX-License-Identifier: Apache-2.0
// A graph of ONNX as castor reads it: values and the nodes that compute them, whoever the reader is
// (model files, an engine's own graph). Nothing here depends on a file format.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/function.hpp"

namespace castor::onnx {

/// Indices into `Graph::values` and `Graph::nodes`.
using ValueIndex = uint32_t;
using NodeIndex = uint32_t;
/// An optional input or output that is left out.
inline constexpr ValueIndex absent = ~ValueIndex{0};
/// The producer of inputs and initializers.
inline constexpr NodeIndex no_node = ~NodeIndex{0};

/// Operator sets of ONNX's own domain that castor knows.
inline constexpr int64_t first_opset = 7;
inline constexpr int64_t last_opset = 25;
/// The domain of ONNX Runtime's own operators.
inline constexpr std::string_view microsoft_domain = "com.microsoft";

/// A tensor whose elements are known: dense, in castor's storage.
struct Tensor {
  ElementType element = ElementType::f32;
  Dims shape;
  std::shared_ptr<const ConstantData> data;
};

/// What an attribute may be; `monostate` stands for kinds that castor has no use for (graphs,
/// types, sparse tensors, lists of them).
using AttributeValue = std::variant<std::monostate, int64_t, float, std::string, Tensor,
                                    std::vector<int64_t>, std::vector<float>>;

struct Value {
  std::string name;
  std::optional<ElementType> element{};  ///< nothing where it is unknown, or castor lacks the type
  std::optional<Shape> shape{};          ///< nothing where even the rank is unknown
  std::optional<Tensor>
      constant{};  ///< the tensor, if it is an initializer or follows from constants
  NodeIndex producer = no_node;
  std::vector<NodeIndex> consumers{};  ///< ascending, each once
  bool is_output = false;              ///< whether the graph gives it
};

struct Node {
  std::string name;
  std::string op_type;
  std::string domain;   ///< empty for ONNX's own
  int64_t version = 0;  ///< the version of the domain's operator set
  std::vector<ValueIndex> inputs{};
  std::vector<ValueIndex> outputs{};
  std::map<std::string, AttributeValue, std::less<>> attributes{};
  /// Nodes of the graph as it was read that this one stands for, ascending; none: another node
  /// stands for them.
  std::vector<NodeIndex> origins{};

  bool has_input(size_t i) const { return i < inputs.size() && inputs[i] != absent; }
  bool has_output(size_t i) const { return i < outputs.size() && outputs[i] != absent; }
  /// The attribute if it is there and of that kind, else null.
  template <class Kind>
  const Kind* find(std::string_view attribute) const {
    const auto at = attributes.find(attribute);
    return at == attributes.end() ? nullptr : std::get_if<Kind>(&at->second);
  }
  int64_t integer(std::string_view attribute, int64_t otherwise) const;
  float number(std::string_view attribute, float otherwise) const;
  std::string_view text(std::string_view attribute, std::string_view otherwise) const;
  std::vector<int64_t> integers(std::string_view attribute) const;
};

struct Graph {
  std::string name;
  std::vector<Value> values{};
  std::vector<Node> nodes{};  ///< in an order in which every value is computed before it is read
  std::vector<ValueIndex> inputs{};  ///< initializers are none
  std::vector<ValueIndex> outputs{};
};

/// Who runs the nodes that castor does not take.
enum class Remainder : uint8_t {
  nobody,  ///< functions are all that there will be: what folds into constants is gone
  /// An engine: it has each node that was not taken, what folds too, so that a path through such a
  /// node is one, and a function reads what its nodes read.
  engine,
};

/// "node conv_1 (ConvInteger)": how messages name a node. One without a name goes by its index.
std::string describe(const Graph& graph, NodeIndex node);

/// Puts the nodes in order, sets producers, consumers and `is_output`, and makes names of extents
/// identifiers (extent_names.hpp). Refuses (invalid_argument) cycles, values that nothing defines
/// or several nodes do, and repeated inputs; the message names the node.
Status connect(Graph& graph);

/// What a QuantizeLinear gives: the zero point's type, else its output_dtype (from 21 on), else u8.
/// Nothing where these contradict each other, or name none of castor's types.
std::optional<ElementType> quantized_type(const Node& node, std::optional<ElementType> zero_point);

/// castor's element type for a number of TensorProto.DataType, or nothing.
std::optional<ElementType> element_type_of(int64_t data_type);
/// ONNX's name of such a number: "FLOAT"; "data type 99" where it has none.
std::string data_type_name(int64_t data_type);

}  // namespace castor::onnx
