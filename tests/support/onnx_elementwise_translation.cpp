// SPDX-License-Identifier: Apache-2.0
#include "tests/support/onnx_elementwise_translation.hpp"

#include <fmt/format.h>

#include <bit>

#include "tools/testing/samples.hpp"

namespace castor::test {

namespace {

ElementType result_type(OpKind op, const OnnxValue& first) {
  return info(op).infer == InferRule::comparison ? ElementType::boolean : first.element;
}

}  // namespace

OnnxTranslation::OnnxTranslation(const OnnxGraphData& data, const OnnxForm& form)
    : data_(data), form_(form), builder_("onnx") {}

OnnxValue OnnxTranslation::value(const std::string& name) {
  if (refusal_) return {};
  if (const auto at = values_.find(name); at != values_.end()) return at->second;
  const OnnxTensor* tensor = data_of(name);
  if (tensor == nullptr) {
    refuse("a value that nothing defines");
    return {};
  }
  if (!tensor->element) {
    refuse(tensor->data_type == onnx_string ? "strings" : "an element type that castor lacks");
    return {};
  }
  const Shape unknown(static_cast<size_t>(tensor->shape.rank()), Dim::any());
  const Shape shape = form_.unknown_extents ? unknown : to_shape(tensor->shape);
  const std::string parameter = fmt::format("p{}", parameters_.size());
  const ValueId id = builder_.parameter(parameter, {*tensor->element, shape});
  parameters_.push_back(name);
  return values_[name] = {id, *tensor->element, tensor->shape};
}

const OnnxTensor* OnnxTranslation::data_of(const std::string& name) const {
  if (const auto at = constants_.find(name); at != constants_.end()) return &at->second;
  const auto at = data_.inputs.find(name);
  return at == data_.inputs.end() ? nullptr : &at->second;
}

std::vector<int64_t> OnnxTranslation::integers_of(const std::string& name) {
  std::vector<int64_t> integers;
  const OnnxTensor* tensor = data_of(name);
  if (tensor == nullptr || tensor->element != ElementType::i64) {
    refuse("a shape that another node computes");
    return integers;
  }
  const auto count = static_cast<size_t>(element_count(tensor->shape).value_or(0));
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits = samples::load_pattern(tensor->bytes, ElementType::i64, i);
    integers.push_back(static_cast<int64_t>(bits));
  }
  return integers;
}

OnnxValue OnnxTranslation::input(const OnnxGraphNode& node, size_t i) {
  if (node.has_input(i)) return value(node.inputs[i]);
  refuse("an input that is left out");
  return {};
}

OnnxValue OnnxTranslation::unary(OpKind op, const OnnxValue& x) {
  if (refusal_) return {};
  return {builder_.unary(op, x.id), result_type(op, x), x.shape};
}

OnnxValue OnnxTranslation::binary(OpKind op, const OnnxValue& a, const OnnxValue& b) {
  if (refusal_) return {};
  return {builder_.binary(op, a.id, b.id), result_type(op, a), {}};
}

OnnxValue OnnxTranslation::select(const OnnxValue& condition, const OnnxValue& a,
                                  const OnnxValue& b) {
  if (refusal_) return {};
  return {builder_.select(condition.id, a.id, b.id), a.element, {}};
}

OnnxValue OnnxTranslation::clamp(const OnnxValue& x, std::optional<double> lo,
                                 std::optional<double> hi) {
  if (refusal_) return {};
  return {builder_.clamp(x.id, lo, hi), x.element, x.shape};
}

OnnxValue OnnxTranslation::convert(const OnnxValue& x, ElementType to,
                                   const ConvertOptions& options) {
  if (refusal_) return {};
  return {builder_.convert(x.id, to, options), to, x.shape};
}

OnnxValue OnnxTranslation::reshape(const OnnxValue& x, const Dims& target) {
  if (refusal_) return {};
  return {builder_.reshape(x.id, to_shape(target)), x.element, target};
}

OnnxValue OnnxTranslation::broadcast(const OnnxValue& x, const Dims& target, BroadcastMode mode) {
  if (refusal_) return {};
  return {builder_.broadcast(x.id, to_shape(target), {.mode = mode}), x.element, {}};
}

Dims OnnxTranslation::extents_of(const OnnxValue& x) {
  if (!x.shape) refuse("a shape that is not known");
  return x.shape.value_or(Dims{});
}

OnnxValue OnnxTranslation::scalar(float number, ElementType element) {
  if (refusal_) return {};
  const auto bytes = std::bit_cast<std::array<std::byte, sizeof number>>(number);
  const ValueId id = builder_.constant({ElementType::f32, {}}, bytes);
  if (element == ElementType::f32) return {id, element, Dims{}};
  return {builder_.convert(id, element), element, Dims{}};
}

OnnxValue OnnxTranslation::constant(const OnnxTensor& tensor) {
  if (refusal_) return {};
  const TensorType type = {*tensor.element, to_shape(tensor.shape)};
  return {builder_.constant(type, tensor.bytes), type.element, tensor.shape};
}

void OnnxTranslation::refuse(const std::string& reason) {
  if (!refusal_) refusal_ = reason;
}

}  // namespace castor::test
