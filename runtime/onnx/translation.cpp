// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnx/translation.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace castor::onnx {

namespace {

/// Constants up to this size are cheaper copied than told apart.
constexpr size_t small_constant = 256;

/// Unknown extents get names, so that results of shape ops can name them; `name_extents` keeps
/// those of the graph apart from these.
Shape with_names(const Shape& shape, ValueIndex value) {
  Shape named = shape;
  for (size_t axis = 0; axis < named.size(); ++axis) {
    Dim& dim = named[axis];
    if (dim.is_fixed()) continue;
    if (dim.name.empty()) dim.name = generated_name(value, axis);
  }
  return named;
}

}  // namespace

Translation::Translation(const Graph& graph, std::string name, Constants constants)
    : graph_(graph), constants_(constants), builder_(std::move(name)) {}

ValueId Translation::input(const Node& node, size_t i) {
  if (node.has_input(i)) return tensor(node.inputs[i]);
  refuse(fmt::format("input {} is left out", i));
  return no_value;
}

ValueId Translation::optional_input(const Node& node, size_t i) {
  return node.has_input(i) ? tensor(node.inputs[i]) : no_value;
}

ValueId Translation::tensor(ValueIndex value) {
  if (refusal_) return no_value;
  if (const auto at = values_.find(value); at != values_.end()) return at->second;
  const std::optional<Tensor>& known = graph_.values[value].constant;
  const bool embeds =
      known && (constants_ == Constants::embedded || known->data->bytes.size() <= small_constant);
  const ValueId id = embeds ? constant(*known) : parameter(value);
  if (!refusal_) values_[value] = id;
  return id;
}

ValueId Translation::parameter(ValueIndex index) {
  const Value& value = graph_.values[index];
  if (!value.element) {
    refuse(fmt::format("the element type of {} is unknown, or none of castor's", value.name));
  } else if (!value.shape) {
    refuse(fmt::format("the rank of {} is unknown", value.name));
  }
  if (refusal_) return no_value;
  const TensorType type = {*value.element, with_names(*value.shape, index)};
  const ValueId id = builder_.parameter(fmt::format("p{}", parameters_.size()), type);
  parameters_.push_back(index);
  return id;
}

Translation::InputType Translation::type_of_input(const Node& node, size_t i) const {
  if (!node.has_input(i)) return {};
  const ValueIndex index = node.inputs[i];
  if (const auto at = values_.find(index); at != values_.end()) {
    return {element(at->second), shape(at->second)};
  }
  const Value& value = graph_.values[index];
  return {value.element,
          value.shape ? std::optional(with_names(*value.shape, index)) : std::nullopt};
}

bool Translation::is_read(const Node& node, size_t i) const {
  if (!node.has_output(i)) return false;
  const Value& value = graph_.values[node.outputs[i]];
  return value.is_output || !value.consumers.empty();
}

const Tensor* Translation::known(const Node& node, size_t i) const {
  if (!node.has_input(i)) return nullptr;
  const std::optional<Tensor>& constant = graph_.values[node.inputs[i]].constant;
  return constant ? &*constant : nullptr;
}

std::vector<int64_t> Translation::known_integers(const Node& node, size_t i) {
  const Tensor* tensor = known(node, i);
  std::vector<int64_t> numbers;
  if (tensor == nullptr) {
    refuse(fmt::format("input {} is no constant", i));
    return numbers;
  }
  const std::vector<std::byte>& bytes = tensor->data->bytes;
  const bool is_wide = tensor->element == ElementType::i64;
  if (!is_wide && tensor->element != ElementType::i32) {
    refuse(fmt::format("input {} has type {}, expected i64 or i32", i, name_of(tensor->element)));
    return numbers;
  }
  const size_t size = is_wide ? sizeof(int64_t) : sizeof(int32_t);
  for (size_t at = 0; at < bytes.size(); at += size) {
    int64_t wide = 0;
    int32_t narrow = 0;
    std::memcpy(is_wide ? static_cast<void*>(&wide) : &narrow, bytes.data() + at, size);
    numbers.push_back(is_wide ? wide : narrow);
  }
  return numbers;
}

ElementType Translation::element(ValueId value) const {
  const TensorType* type = builder_.type_of(value);
  return type == nullptr ? ElementType::f32 : type->element;
}

Shape Translation::shape(ValueId value) const {
  const TensorType* type = builder_.type_of(value);
  return type == nullptr ? Shape() : type->shape;
}

ValueId Translation::scalar(float number, ElementType to) {
  const auto bytes = std::bit_cast<std::array<std::byte, sizeof number>>(number);
  const ValueId id = builder_.constant({ElementType::f32, {}}, bytes);
  return to == ElementType::f32 ? id : builder_.convert(id, to);
}

ValueId Translation::constant(const Tensor& tensor) {
  return builder_.append({.op = OpKind::constant, .data = tensor.data},
                         {tensor.element, to_shape(tensor.shape)});
}

void Translation::refuse(std::string reason) {
  if (!refusal_) refusal_ = std::move(reason);
}

}  // namespace castor::onnx
