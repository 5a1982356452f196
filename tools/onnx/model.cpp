// SPDX-License-Identifier: Apache-2.0
#include "tools/onnx/model.hpp"

#include <fmt/format.h>
#include <onnx.pb.h>

#include <algorithm>
#include <climits>
#include <fstream>
#include <unordered_map>
#include <unordered_set>

#include "runtime/onnx/translation.hpp"
#include "tools/onnx/inline_functions.hpp"
#include "tools/onnx/tensors.hpp"

namespace castor::onnx_file {

namespace {

namespace fs = std::filesystem;
using onnx::absent;
using onnx::Graph;
using onnx::Node;
using onnx::Value;
using onnx::ValueIndex;

Error broken(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

/// Numbers of AttributeProto.AttributeType.
enum class AttributeKind : int32_t {
  undefined = 0,
  number = 1,
  integer = 2,
  text = 3,
  tensor = 4,
  numbers = 6,
  integers = 7,
};

/// Constants of more elements are files beside a text.
constexpr int64_t max_written_elements = 64;

class Reader {
 public:
  Reader(ModelProto& model, const fs::path& folder) : model_(model), folder_(folder) {}

  Result<Graph> read() {
    for (const auto step : {&Reader::check_opset, &Reader::read_initializers, &Reader::read_inputs,
                            &Reader::read_nodes, &Reader::read_types, &Reader::read_outputs}) {
      if (Status status = (this->*step)(); !status) return status.error();
    }
    graph_.name = model_.graph().name();
    if (Status status = connect(graph_); !status) return status.error();
    return std::move(graph_);
  }

 private:
  const GraphProto& proto() const { return model_.graph(); }

  Status check_opset() {
    for (const OperatorSetIdProto& opset : model_.opset_import()) {
      const bool is_own = opset.domain().empty() || opset.domain() == "ai.onnx";
      if (!is_own) continue;
      if (opset.version() >= onnx::first_opset && opset.version() <= onnx::last_opset) return {};
      return Error{ErrorCode::unsupported,
                   fmt::format("the model has opset {}, expected {} to {}", opset.version(),
                               onnx::first_opset, onnx::last_opset)};
    }
    return {};  // its nodes are of other domains
  }

  /// The value of that name, which is made where there is none yet.
  ValueIndex value(const std::string& name) {
    if (name.empty()) return absent;
    const auto [at, is_new] =
        values_.try_emplace(name, static_cast<ValueIndex>(graph_.values.size()));
    if (is_new) graph_.values.push_back({.name = name});
    return at->second;
  }

  /// What texts call a constant; small ones are written out.
  std::string binding(const TensorProto& tensor, const std::string& name) {
    const auto count = element_count(
        Dims(std::span(tensor.dims().data(), static_cast<size_t>(tensor.dims_size()))));
    if (count && *count <= max_written_elements) return {};
    constexpr size_t max_letters = 120;  // a file is called so
    const std::string wanted = onnx::identifier(name).substr(0, max_letters);
    std::string found = wanted;
    for (int i = 1; !bindings_.insert(found).second; ++i) found = fmt::format("{}_{}", wanted, i);
    return found;
  }

  Status read_initializers() {
    for (const TensorProto& initializer : proto().initializer()) {
      const std::string& name = initializer.name();
      if (name.empty() || values_.contains(name)) {
        return broken(fmt::format("the initializer '{}' is there twice, or has no name", name));
      }
      auto tensor = read_tensor(initializer, &folder_, binding(initializer, name));
      const bool is_foreign = !tensor && tensor.error().code == ErrorCode::unsupported;
      if (!tensor && !is_foreign) {
        return Error{tensor.error().code,
                     fmt::format("the initializer {}: {}", name, tensor.error().message)};
      }
      const ValueIndex index = value(name);
      if (is_foreign) {  // castor lacks the type: nodes that read it are left
        add_foreign(index);
        continue;
      }
      Value& made = graph_.values[index];
      made.element = tensor->element;
      made.shape = to_shape(tensor->shape);
      made.constant = std::move(*tensor);
    }
    return read_sparse_initializers();
  }

  /// castor has no sparse tensors: nodes that read them are left.
  Status read_sparse_initializers() {
    for (const SparseTensorProto& initializer : proto().sparse_initializer()) {
      const std::string& name = initializer.values().name();
      if (name.empty() || values_.contains(name)) {
        return broken(
            fmt::format("the sparse initializer '{}' is there twice, or has no name", name));
      }
      add_foreign(value(name));
    }
    return {};
  }

  /// An initializer whose elements castor cannot know: like an input, and it may be one as well.
  void add_foreign(ValueIndex index) {
    graph_.inputs.push_back(index);
    foreign_.insert(index);
  }

  Status read_inputs() {
    for (const ValueInfoProto& input : proto().input()) {
      if (input.name().empty()) return broken("an input has no name");
      const ValueIndex index = value(input.name());
      const bool is_initializer = graph_.values[index].constant || foreign_.contains(index);
      if (!is_initializer) graph_.inputs.push_back(index);
      if (Status status = declare(input); !status) return status;
    }
    return {};
  }

  Status read_types() {
    for (const ValueInfoProto& info : proto().value_info()) {
      if (!values_.contains(info.name())) continue;
      if (Status status = declare(info); !status) return status;
    }
    return {};
  }

  Status read_outputs() {
    for (const ValueInfoProto& output : proto().output()) {
      if (output.name().empty()) return broken("an output has no name");
      graph_.outputs.push_back(value(output.name()));
      if (Status status = declare(output); !status) return status;
    }
    return {};
  }

  /// Takes over what a file says about a value's type.
  Status declare(const ValueInfoProto& info) {
    if (!info.type().has_tensor_type()) return {};
    const TypeProto::Tensor& type = info.type().tensor_type();
    Value& declared = graph_.values[value(info.name())];
    const auto element = onnx::element_type_of(type.elem_type());
    if (declared.element && element && *declared.element != *element) {
      return broken(fmt::format("{} is {}, declared as {}", info.name(),
                                castor::name_of(*declared.element), castor::name_of(*element)));
    }
    if (!declared.element) declared.element = element;
    if (declared.shape || !type.has_shape()) return {};
    auto shape = shape_of(type.shape(), info.name());
    if (!shape) return shape.error();
    declared.shape = std::move(*shape);
    return {};
  }

  static Result<Shape> shape_of(const TensorShapeProto& proto, const std::string& name) {
    Shape shape;
    for (const TensorShapeProto::Dimension& dim : proto.dim()) {
      if (dim.value_case() == TensorShapeProto::Dimension::kDimValue) {
        if (dim.dim_value() < 0) {
          return broken(fmt::format("{} has an extent of {}", name, dim.dim_value()));
        }
        shape.push_back(Dim(dim.dim_value()));
      } else if (dim.value_case() == TensorShapeProto::Dimension::kDimParam) {
        shape.push_back(Dim::named(dim.dim_param()));
      } else {
        shape.push_back(Dim::any());
      }
    }
    return shape;
  }

  Status read_nodes() {
    const auto nodes = flat_nodes(model_);
    if (!nodes) return nodes.error();
    // Bodies see every value of the graph, whichever node computes it.
    for (const FlatNode& flat : *nodes) {
      for (const std::string& output : flat.node->output()) value(output);
    }
    for (const FlatNode& flat : *nodes) {
      if (Status status = read_node(flat); !status) {
        return Error{status.error().code,
                     fmt::format("node {} ({}): {}",
                                 flat.node->name().empty() ? std::to_string(graph_.nodes.size())
                                                           : flat.node->name(),
                                 flat.node->op_type(), status.error().message)};
      }
    }
    return {};
  }

  Status read_node(const FlatNode& flat) {
    Node node{.name = flat.node->name(),
              .op_type = flat.node->op_type(),
              .domain = flat.node->domain() == "ai.onnx" ? "" : flat.node->domain(),
              .version = flat.version};
    if (flat.version == 0)
      return broken(fmt::format("no operator set of '{}' is imported", node.domain));
    for (const std::string& input : flat.node->input()) node.inputs.push_back(value(input));
    for (const std::string& output : flat.node->output()) node.outputs.push_back(value(output));
    for (const AttributeProto& attribute : flat.node->attribute()) {
      auto read = read_attribute(attribute, flat.node->name());
      if (!read) return read.error();
      node.attributes.insert_or_assign(attribute.name(), std::move(*read));
      if (attribute.has_g()) read_body(attribute.g(), node);
      for (const GraphProto& body : attribute.graphs()) read_body(body, node);
    }
    graph_.nodes.push_back(std::move(node));
    return {};
  }

  /// What a body reads of the graph, and does not define itself, becomes an input of its node.
  void read_body(const GraphProto& body, Node& node) {
    const auto use = [&](const std::string& name) {
      const auto at = values_.find(name);
      if (at != values_.end() && !own_.contains(name)) node.inputs.push_back(at->second);
    };
    std::vector<std::string> own;
    for (const ValueInfoProto& input : body.input()) own.push_back(input.name());
    for (const TensorProto& initializer : body.initializer()) own.push_back(initializer.name());
    for (const NodeProto& inner : body.node()) {
      own.insert(own.end(), inner.output().begin(), inner.output().end());
    }
    own_.insert(own.begin(), own.end());
    for (const NodeProto& inner : body.node()) {
      for (const std::string& input : inner.input()) use(input);
      for (const AttributeProto& attribute : inner.attribute()) {
        if (attribute.has_g()) read_body(attribute.g(), node);
        for (const GraphProto& nested : attribute.graphs()) read_body(nested, node);
      }
    }
    for (const ValueInfoProto& output : body.output()) use(output.name());
    for (const std::string& name : own) own_.erase(own_.find(name));
  }

  Result<onnx::AttributeValue> read_attribute(const AttributeProto& attribute,
                                              const std::string& node) {
    switch (static_cast<AttributeKind>(attribute.type())) {
      case AttributeKind::number: return onnx::AttributeValue(attribute.f());
      case AttributeKind::integer: return onnx::AttributeValue(attribute.i());
      case AttributeKind::text: return onnx::AttributeValue(attribute.s());
      case AttributeKind::numbers:
        return onnx::AttributeValue(
            std::vector<float>(attribute.floats().begin(), attribute.floats().end()));
      case AttributeKind::integers:
        return onnx::AttributeValue(
            std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
      case AttributeKind::tensor: break;
      default: return onnx::AttributeValue();
    }
    auto tensor = read_tensor(attribute.t(), &folder_, binding(attribute.t(), node));
    if (tensor) return onnx::AttributeValue(std::move(*tensor));
    if (tensor.error().code == ErrorCode::unsupported) return onnx::AttributeValue();
    return Error{tensor.error().code,
                 fmt::format("attribute {}: {}", attribute.name(), tensor.error().message)};
  }

  ModelProto& model_;
  const fs::path& folder_;
  Graph graph_;
  std::unordered_map<std::string, ValueIndex> values_;
  std::unordered_set<std::string> bindings_;
  std::unordered_multiset<std::string> own_;  ///< names that the bodies around a node define
  std::unordered_set<ValueIndex> foreign_;    ///< initializers that are inputs of the graph
};

}  // namespace

Result<Graph> parse_model(std::string_view serialised, const fs::path& folder) {
  ModelProto model;
  if (serialised.size() > INT_MAX ||
      !model.ParseFromArray(serialised.data(), static_cast<int>(serialised.size())) ||
      !model.has_graph()) {
    return broken("it is no model of ONNX");
  }
  return Reader(model, folder).read();
}

Result<Graph> read_model(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) {
    return Error{ErrorCode::io, fmt::format("{} is no file", file.string())};
  }
  std::ifstream stream(file, std::ios::binary);
  ModelProto model;
  if (!stream || !model.ParseFromIstream(&stream) || !model.has_graph()) {
    return broken(fmt::format("{} is no model of ONNX", file.string()));
  }
  auto graph = Reader(model, file.parent_path()).read();
  if (!graph)
    return Error{graph.error().code, fmt::format("{}: {}", file.string(), graph.error().message)};
  return graph;
}

}  // namespace castor::onnx_file
