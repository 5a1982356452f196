// SPDX-License-Identifier: Apache-2.0
#include "tools/onnx/inline_functions.hpp"

#include <fmt/format.h>
#include <onnx.pb.h>

#include <set>
#include <tuple>

namespace castor::onnx_file {

namespace {

/// Calls nest at most this deep; no function of real models comes near.
constexpr int max_depth = 32;

std::string domain_of(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

template <class Imports>
Opsets opsets_of(const Imports& imports) {
  Opsets opsets;
  for (const OperatorSetIdProto& import : imports) {
    opsets[domain_of(import.domain())] = import.version();
  }
  return opsets;
}

std::string name_of(const NodeProto& node) {
  return fmt::format("node {} ({})", node.name().empty() ? "without a name" : node.name(),
                     node.op_type());
}

class Inliner {
 public:
  explicit Inliner(ModelProto& model) : model_(model) {
    for (const FunctionProto& function : model.functions()) {
      functions_[{domain_of(function.domain()), function.name(), function.overload()}] = &function;
    }
  }

  Result<std::vector<FlatNode>> nodes() {
    const Opsets opsets = opsets_of(model_.opset_import());
    std::vector<NodeProto*> nodes;
    for (NodeProto& node : *model_.mutable_graph()->mutable_node()) nodes.push_back(&node);
    if (Status status = add(nodes, opsets, 0); !status) return status.error();
    return std::move(flat_);
  }

 private:
  using Names = std::map<std::string, std::string>;

  Status add(const std::vector<NodeProto*>& nodes, const Opsets& opsets, int depth) {
    for (NodeProto* node : nodes) {
      const std::string domain = domain_of(node->domain());
      const auto at = functions_.find({domain, node->op_type(), node->overload()});
      if (at != functions_.end()) {
        if (Status status = call(*node, *at->second, depth); !status) return status;
        continue;
      }
      const auto version = opsets.find(domain);
      flat_.push_back({node, version == opsets.end() ? 0 : version->second});
      if (flat_.size() > max_nodes) {
        return Error{ErrorCode::limit_exceeded,
                     fmt::format("the model has more than {} nodes", max_nodes)};
      }
    }
    return {};
  }

  Status call(const NodeProto& caller, const FunctionProto& function, int depth) {
    const auto refuse = [&](std::string_view what) {
      return Error{ErrorCode::invalid_argument, fmt::format("{}: {}", name_of(caller), what)};
    };
    if (depth >= max_depth) return refuse("its function calls itself, or calls nest too deep");
    if (caller.input_size() > function.input_size()) return refuse("more inputs than its function");
    if (caller.output_size() > function.output_size()) {
      return refuse("more outputs than its function");
    }
    const std::string prefix = fmt::format("{}#{}/", caller.op_type(), calls_++);
    const Names names = names_of(caller, function);
    const std::set<std::string> defined = defined_in(function);
    std::vector<NodeProto*> body;
    copied_nodes_ += static_cast<size_t>(function.node_size());
    if (copied_nodes_ > max_nodes) {
      return Error{ErrorCode::limit_exceeded, fmt::format("{}: functions bring more than {} nodes",
                                                          name_of(caller), max_nodes)};
    }
    for (const NodeProto& node : function.node()) {
      copied_bytes_ += node.ByteSizeLong();
      if (copied_bytes_ > max_copied_bytes) {
        return Error{ErrorCode::limit_exceeded,
                     fmt::format("{}: copies of functions' nodes take more than {} bytes",
                                 name_of(caller), max_copied_bytes)};
      }
      NodeProto* made = copy(node, caller, function, names, prefix);
      const auto renamed = [&](const std::string& name) { return outside(name, names, prefix); };
      rename_in_bodies(*made, defined, renamed);
      body.push_back(made);
    }
    return add(body, opsets_of(function.opset_import()), depth + 1);
  }

  /// What inputs and outputs of the function are called outside; an input left out has no name.
  static Names names_of(const NodeProto& caller, const FunctionProto& function) {
    Names names;
    for (int i = 0; i < function.input_size(); ++i) {
      names[function.input(i)] = i < caller.input_size() ? caller.input(i) : "";
    }
    for (int i = 0; i < caller.output_size(); ++i) {
      if (!caller.output(i).empty()) names[function.output(i)] = caller.output(i);
    }
    return names;
  }

  NodeProto* copy(const NodeProto& node, const NodeProto& caller, const FunctionProto& function,
                  const Names& names, const std::string& prefix) {
    // Copies live in a function of the model that nobody calls.
    if (store_ == nullptr) store_ = model_.add_functions();
    NodeProto* made = store_->add_node();
    *made = node;
    made->set_name(
        prefix + (node.name().empty() ? fmt::format("{}", store_->node_size() - 1) : node.name()));
    for (std::string& name : *made->mutable_input()) name = outside(name, names, prefix);
    for (std::string& name : *made->mutable_output()) name = outside(name, names, prefix);
    set_attributes(*made, caller, function);
    return made;
  }

  /// What a value of a function is called where it was called from.
  static std::string outside(const std::string& name, const Names& names,
                             const std::string& prefix) {
    if (name.empty()) return name;
    const auto at = names.find(name);
    return at == names.end() ? prefix + name : at->second;
  }

  /// The values that a function's bodies may read of it.
  static std::set<std::string> defined_in(const FunctionProto& function) {
    std::set<std::string> names(function.input().begin(), function.input().end());
    for (const NodeProto& node : function.node()) {
      names.insert(node.output().begin(), node.output().end());
    }
    return names;
  }

  template <class Rename>
  static void rename_in_bodies(NodeProto& node, const std::set<std::string>& defined,
                               const Rename& renamed) {
    const auto rename = [&](std::string& name) {
      if (defined.contains(name)) name = renamed(name);
    };
    const auto visit = [&](GraphProto& body) {
      for (NodeProto& inner : *body.mutable_node()) {
        for (std::string& name : *inner.mutable_input()) rename(name);
        rename_in_bodies(inner, defined, renamed);
      }
      for (ValueInfoProto& output : *body.mutable_output()) rename(*output.mutable_name());
    };
    for (AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) visit(*attribute.mutable_g());
      for (GraphProto& body : *attribute.mutable_graphs()) visit(body);
    }
  }

  /// Attributes that refer to the caller's take its value, or the function's default, or go.
  static void set_attributes(NodeProto& node, const NodeProto& caller,
                             const FunctionProto& function) {
    auto* attributes = node.mutable_attribute();
    for (int i = attributes->size() - 1; i >= 0; --i) {
      AttributeProto& attribute = *attributes->Mutable(i);
      if (attribute.ref_attr_name().empty()) continue;
      const AttributeProto* value = named(caller.attribute(), attribute.ref_attr_name());
      if (value == nullptr) value = named(function.attribute_proto(), attribute.ref_attr_name());
      if (value == nullptr) {
        attributes->DeleteSubrange(i, 1);
        continue;
      }
      const std::string name = attribute.name();
      attribute = *value;
      attribute.set_name(name);
    }
  }
  template <class List>
  static const AttributeProto* named(const List& attributes, const std::string& name) {
    for (const AttributeProto& attribute : attributes) {
      if (attribute.name() == name) return &attribute;
    }
    return nullptr;
  }

  ModelProto& model_;
  std::map<std::tuple<std::string, std::string, std::string>, const FunctionProto*> functions_;
  FunctionProto* store_ = nullptr;
  std::vector<FlatNode> flat_;
  size_t calls_ = 0;
  size_t copied_nodes_ = 0;
  size_t copied_bytes_ = 0;
};

}  // namespace

Result<std::vector<FlatNode>> flat_nodes(ModelProto& model) { return Inliner(model).nodes(); }

}  // namespace castor::onnx_file
