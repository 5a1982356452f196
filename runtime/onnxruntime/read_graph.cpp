// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnxruntime/read_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "runtime/onnx/quantized_units.hpp"
#include "runtime/onnx/rules.hpp"

namespace castor::onnxruntime {

namespace {

using abi::OrtNode;
using abi::OrtValueInfo;
using onnx::ValueIndex;

/// Constants up to this size are always read: shapes and scales of nodes around ours.
constexpr int64_t small_constant = 4096;

Result<Dims> extents_of(const Host& host, const abi::OrtTensorTypeAndShapeInfo* info) {
  size_t rank = 0;
  if (Status status = host(abi::GetDimensionsCount, info, &rank); !status) return status.error();
  if (rank > static_cast<size_t>(max_rank)) {
    return Error{ErrorCode::unsupported, fmt::format("a tensor of {} dimensions", rank)};
  }
  std::vector<int64_t> extents(rank);
  if (Status status = host(abi::GetDimensions, info, extents.data(), rank); !status) {
    return status.error();
  }
  return Dims(extents);
}

/// castor's element type for a number of ONNXTensorElementDataType, which are those of ONNX's
/// TensorProto.DataType but for the last three: ONNX Runtime had its types of 2 bits first.
std::optional<ElementType> element_of(int host_type) {
  switch (host_type) {
    case 24: return ElementType::u2;
    case 25: return ElementType::i2;
    case 26: return ElementType::f8e8m0;
    default: return host_type < 24 ? onnx::element_type_of(host_type) : std::nullopt;
  }
}

/// Up to version 1.23 by an object that has to be released.
Result<HostTensor> read_old_tensor(const Host& host, const abi::OrtValue* value) {
  abi::OrtTensorTypeAndShapeInfo* info = nullptr;
  if (Status status = host(abi::GetTensorTypeAndShape, value, &info); !status) {
    return status.error();
  }
  int type = 0;
  const Status typed = host(abi::GetTensorElementType, info, &type);
  auto extents = extents_of(host, info);
  host.function(abi::ReleaseTensorTypeAndShapeInfo)(info);
  if (!typed) return typed.error();
  if (!extents) return extents.error();
  return HostTensor{element_of(type), *extents, nullptr};
}

Result<HostTensor> read_type(const Host& host, const abi::OrtValue* value) {
  if (!host.has(abi::GetTensorElementTypeAndShapeDataReference.since)) {
    return read_old_tensor(host, value);
  }
  int type = 0;
  const int64_t* extents = nullptr;
  size_t rank = 0;
  const Status status =
      host(abi::GetTensorElementTypeAndShapeDataReference, value, &type, &extents, &rank);
  if (!status) return status.error();
  if (rank > static_cast<size_t>(max_rank)) {
    return Error{ErrorCode::unsupported, fmt::format("a tensor of {} dimensions", rank)};
  }
  return HostTensor{element_of(type), Dims(std::span(extents, rank)), nullptr};
}

bool concerns_us(const onnx::Node& node) {
  return onnx::find_rule(node.domain, node.op_type) != nullptr || onnx::may_be_fused(node);
}

class Reader {
 public:
  Reader(const Host& host, const abi::OrtGraph* graph) : host_(host), source_(graph) {}

  Result<HostGraph> read() {
    const auto nodes =
        list<const OrtNode*>(host_, source_, abi::Graph_GetNumNodes, abi::Graph_GetNodes);
    if (!nodes) return nodes.error();
    for (const OrtNode* node : *nodes) {
      if (Status status = read_node(node); !status) return status.error();
    }
    read_.nodes = *nodes;
    for (const auto& [info, index] : readers_) {
      if (Status status = read_constant(info, index); !status) return status.error();
    }
    add_inputs_and_outputs();
    // Nodes come in an order in which they can run, so that `connect` keeps it.
    if (Status status = connect(read_.graph); !status) return status.error();
    return std::move(read_);
  }

 private:
  Status read_node(const OrtNode* node) {
    onnx::Node made;
    const auto name = text(host_, node, abi::Node_GetName);
    const auto op_type = text(host_, node, abi::Node_GetOperatorType);
    const auto domain = text(host_, node, abi::Node_GetDomain);
    for (const auto* part : {&name, &op_type, &domain}) {
      if (!*part) return (*part).error();
    }
    int version = 0;
    if (Status status = host_(abi::Node_GetSinceVersion, node, &version); !status) return status;
    made.name = *name;
    made.op_type = *op_type;
    made.domain = *domain == "ai.onnx" ? "" : *domain;
    made.version = version;
    if (Status status = read_links(node, made); !status) return status;
    if (concerns_us(made)) {
      if (Status status = read_attributes(node, made); !status) return status;
    }
    read_.graph.nodes.push_back(std::move(made));
    return {};
  }

  Status read_links(const OrtNode* node, onnx::Node& made) {
    const auto inputs =
        list<const OrtValueInfo*>(host_, node, abi::Node_GetNumInputs, abi::Node_GetInputs);
    const auto implicit = list<const OrtValueInfo*>(host_, node, abi::Node_GetNumImplicitInputs,
                                                    abi::Node_GetImplicitInputs);
    const auto outputs =
        list<const OrtValueInfo*>(host_, node, abi::Node_GetNumOutputs, abi::Node_GetOutputs);
    for (const auto* part : {&inputs, &implicit, &outputs}) {
      if (!*part) return (*part).error();
    }
    const bool is_ours = onnx::find_rule(made.domain, made.op_type) != nullptr;
    for (const auto* infos : {&*inputs, &*implicit}) {
      for (const OrtValueInfo* info : *infos) {
        const auto index = value(info);
        if (!index) return index.error();
        made.inputs.push_back(*index);
        if (*index != onnx::absent) wants_[*index] = wants_[*index] || is_ours;
      }
    }
    for (const OrtValueInfo* info : *outputs) {
      const auto index = value(info);
      if (!index) return index.error();
      made.outputs.push_back(*index);
      if (*index != onnx::absent) is_computed_[*index] = true;
    }
    return {};
  }

  /// The value of that name, which is made where there is none yet.
  Result<ValueIndex> value(const OrtValueInfo* info) {
    if (info == nullptr) return onnx::absent;
    const auto name = text(host_, info, abi::GetValueInfoName);
    if (!name) return name.error();
    if (name->empty()) return onnx::absent;
    const auto next = static_cast<ValueIndex>(read_.graph.values.size());
    const auto [at, is_new] = by_name_.try_emplace(*name, next);
    if (!is_new) return at->second;
    read_.graph.values.push_back({.name = *name});
    wants_.push_back(false);
    is_computed_.push_back(false);
    readers_.emplace_back(info, next);
    if (Status status = read_type_of(info, read_.graph.values.back()); !status) {
      return status.error();
    }
    bool is_output = false;
    if (Status status = host_(abi::ValueInfo_IsGraphOutput, info, &is_output); !status) {
      return status.error();
    }
    if (is_output) read_.graph.outputs.push_back(next);
    return next;
  }

  /// Leaves the type open where it is none of a tensor, or unknown.
  Status read_type_of(const OrtValueInfo* info, onnx::Value& value) {
    const abi::OrtTypeInfo* type = nullptr;
    if (Status status = host_(abi::GetValueInfoTypeInfo, info, &type); !status) return status;
    if (type == nullptr) return {};
    const abi::OrtTensorTypeAndShapeInfo* tensor = nullptr;
    if (Status status = host_(abi::CastTypeInfoToTensorInfo, type, &tensor); !status) return status;
    if (tensor == nullptr) return {};
    int element = 0;
    if (Status status = host_(abi::GetTensorElementType, tensor, &element); !status) return status;
    value.element = element_of(element);
    const bool can_tell = host_.has(abi::TensorTypeAndShape_HasShape.since);
    if (can_tell && !host_.function(abi::TensorTypeAndShape_HasShape)(tensor)) return {};
    auto shape = read_shape(tensor);
    if (!shape) return shape.error();
    // Version 1.23 gives rank 0 for an unknown rank as well: then it is left open.
    if (can_tell || !shape->empty()) value.shape = std::move(*shape);
    return {};
  }

  Result<Shape> read_shape(const abi::OrtTensorTypeAndShapeInfo* info) {
    const auto extents = extents_of(host_, info);
    if (!extents) return extents.error();
    const auto rank = static_cast<size_t>(extents->rank());
    std::vector<const char*> names(rank);
    if (Status status = host_(abi::GetSymbolicDimensions, info, names.data(), rank); !status) {
      return status.error();
    }
    Shape shape;
    for (size_t axis = 0; axis < rank; ++axis) {
      const int64_t extent = (*extents)[static_cast<int>(axis)];
      const std::string name = names[axis] == nullptr ? "" : names[axis];
      shape.push_back(extent >= 0 ? Dim(extent) : Dim::named(name));
    }
    return shape;
  }

  Status read_constant(const OrtValueInfo* info, ValueIndex index) {
    bool is_constant = false;
    if (Status status = host_(abi::ValueInfo_IsConstantInitializer, info, &is_constant); !status) {
      return status;
    }
    if (!is_constant || is_computed_[index]) return {};
    const abi::OrtValue* initializer = nullptr;
    if (Status status = host_(abi::ValueInfo_GetInitializerValue, info, &initializer); !status) {
      return status;
    }
    if (initializer == nullptr) return {};
    auto tensor = copied(initializer, wants_[index]);
    if (!tensor) return tensor.error();
    read_.graph.values[index].constant = std::move(*tensor);
    return {};
  }

  /// Nothing where castor lacks the type, or nobody wants a large one.
  Result<std::optional<onnx::Tensor>> copied(const abi::OrtValue* value, bool is_wanted) const {
    const auto tensor = read_tensor(host_, value);
    if (!tensor) return tensor.error();
    const auto count = element_count(tensor->shape);
    const auto bytes =
        tensor->element && count ? byte_size(*tensor->element, *count) : std::nullopt;
    if (!bytes || (!is_wanted && *bytes > small_constant)) return std::optional<onnx::Tensor>();
    ConstantData data;
    const auto* first = static_cast<const std::byte*>(tensor->data);
    if (*bytes > 0) data.bytes.assign(first, first + *bytes);
    return std::optional(onnx::Tensor{*tensor->element, tensor->shape,
                                      std::make_shared<const ConstantData>(std::move(data))});
  }

  Status read_attributes(const OrtNode* node, onnx::Node& made) {
    const auto attributes = list<const abi::OrtOpAttr*>(host_, node, abi::Node_GetNumAttributes,
                                                        abi::Node_GetAttributes);
    if (!attributes) return attributes.error();
    for (const abi::OrtOpAttr* attribute : *attributes) {
      if (attribute == nullptr) continue;  // without a value
      const auto name = text(host_, attribute, abi::OpAttr_GetName);
      if (!name) return name.error();
      auto value = read_attribute(attribute);
      if (!value) return value.error();
      made.attributes.insert_or_assign(*name, std::move(*value));
    }
    return {};
  }

  Result<onnx::AttributeValue> read_attribute(const abi::OrtOpAttr* attribute) const {
    int type = 0;
    if (Status status = host_(abi::OpAttr_GetType, attribute, &type); !status) {
      return status.error();
    }
    switch (type) {
      case abi::ORT_OP_ATTR_INT: return first<int64_t>(attribute, type);
      case abi::ORT_OP_ATTR_FLOAT: return first<float>(attribute, type);
      case abi::ORT_OP_ATTR_INTS: return numbers<int64_t>(attribute, type);
      case abi::ORT_OP_ATTR_FLOATS: return numbers<float>(attribute, type);
      case abi::ORT_OP_ATTR_TENSOR: return tensor(attribute);
      case abi::ORT_OP_ATTR_STRING: break;
      default: return onnx::AttributeValue();
    }
    const auto letters = elements<char>(attribute, type);
    if (!letters) return letters.error();
    return onnx::AttributeValue(std::string(letters->begin(), letters->end()));
  }

  /// The size first, with a buffer that is too small; that status says nothing.
  template <class Element>
  Result<std::vector<Element>> elements(const abi::OrtOpAttr* attribute, int type) const {
    size_t bytes = 0;
    (void)host_(abi::ReadOpAttr, attribute, type, nullptr, size_t{0}, &bytes).ok();
    std::vector<Element> result(bytes / sizeof(Element));
    if (result.empty()) return result;
    const Status status =
        host_(abi::ReadOpAttr, attribute, type, static_cast<void*>(result.data()), bytes, &bytes);
    if (!status) return status.error();
    return result;
  }
  template <class Element>
  Result<onnx::AttributeValue> numbers(const abi::OrtOpAttr* attribute, int type) const {
    auto found = elements<Element>(attribute, type);
    if (!found) return found.error();
    return onnx::AttributeValue(std::move(*found));
  }
  template <class Element>
  Result<onnx::AttributeValue> first(const abi::OrtOpAttr* attribute, int type) const {
    Element element{};
    size_t bytes = 0;
    const Status status = host_(abi::ReadOpAttr, attribute, type, static_cast<void*>(&element),
                                sizeof element, &bytes);
    if (!status) return status.error();
    return onnx::AttributeValue(element);
  }
  Result<onnx::AttributeValue> tensor(const abi::OrtOpAttr* attribute) const {
    abi::OrtValue* value = nullptr;
    const Status status = host_(abi::OpAttr_GetTensorAttributeAsOrtValue, attribute, &value);
    if (!status) return status.error();
    auto copy = copied(value, true);
    host_.function(abi::ReleaseValue)(value);
    if (!copy) return copy.error();
    return *copy ? onnx::AttributeValue(std::move(**copy)) : onnx::AttributeValue();
  }

  /// What no node computes and nobody knows comes from outside.
  void add_inputs_and_outputs() {
    for (ValueIndex index = 0; index < read_.graph.values.size(); ++index) {
      const bool is_inner = is_computed_[index] || read_.graph.values[index].constant;
      if (!is_inner) read_.graph.inputs.push_back(index);
    }
  }

  const Host& host_;
  const abi::OrtGraph* source_;
  HostGraph read_;
  std::unordered_map<std::string, ValueIndex> by_name_;
  std::vector<std::pair<const OrtValueInfo*, ValueIndex>> readers_;  ///< in order of the values
  std::vector<bool> wants_;        ///< whether a node that castor has reads the value
  std::vector<bool> is_computed_;  ///< whether a node computes it
};

}  // namespace

Result<HostTensor> read_tensor(const Host& host, const abi::OrtValue* value) {
  auto tensor = read_type(host, value);
  if (!tensor) return tensor.error();
  if (Status status = host(abi::GetTensorData, value, &tensor->data); !status) {
    return status.error();
  }
  return tensor;
}

Result<HostGraph> read_graph(const Host& host, const abi::OrtGraph* graph) {
  return Reader(host, graph).read();
}

}  // namespace castor::onnxruntime
