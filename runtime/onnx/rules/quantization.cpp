// SPDX-License-Identifier: Apache-2.0
// ONNX's operators of quantized tensors: each is one op of castor (ir/README.md, Compositions).
#include <fmt/format.h>

#include "runtime/onnx/rules/rules.hpp"

namespace castor::onnx {

namespace {

/// axis is an attribute from 13 on, block_size from 21 on.
Attributes granularity_of(const Node& node) {
  Attributes attributes;
  if (const auto* axis = node.find<int64_t>("axis")) attributes.push_back({"axis", {*axis}});
  const int64_t block = node.integer("block_size", 0);
  if (block != 0) attributes.push_back({"block_size", {block}});
  return attributes;
}

/// The type that an attribute names, or `otherwise` where it does not; 0 names none.
ElementType type_of_attribute(const Node& node, Translation& into, std::string_view attribute,
                              ElementType otherwise) {
  const int64_t data_type = node.integer(attribute, 0);
  if (data_type == 0) return otherwise;
  const auto named = element_type_of(data_type);
  if (!named) into.refuse(fmt::format("{} is {}", attribute, data_type_name(data_type)));
  return named.value_or(otherwise);
}

ElementType type_of_result(const Node& node, Translation& into, ValueId zero_point) {
  std::optional<ElementType> of_zero_point;
  if (zero_point != no_value && !into.refusal()) of_zero_point = into.element(zero_point);
  const auto type = quantized_type(node, of_zero_point);
  if (!type) {
    const std::string named = data_type_name(node.integer("output_dtype", 0));
    into.refuse(of_zero_point ? fmt::format("output_dtype is {}, its zero point {}", named,
                                            name_of(*of_zero_point))
                              : fmt::format("output_dtype is {}", named));
  }
  return type.value_or(ElementType::u8);
}

FunctionBuilder::Quantized quantized(const Node& node, Translation& into, size_t first) {
  const ValueId value = into.input(node, first);
  const ValueId scale = into.input(node, first + 1);
  return {value, scale, into.input(node, first + 2)};
}

}  // namespace

/// saturate from 19 on, precision from 23 on.
Outputs quantize_linear(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  const ValueId scale = into.input(node, 1);
  const ValueId zero_point = into.optional_input(node, 2);
  const ElementType to = type_of_result(node, into, zero_point);
  Attributes attributes = granularity_of(node);
  if (node.integer("saturate", 1) == 0) attributes.push_back({"saturate", {false}});
  if (node.integer("precision", 0) != 0) {
    const ElementType precision = type_of_attribute(node, into, "precision", ElementType::f32);
    attributes.push_back({"precision", {Identifier{std::string(name_of(precision))}}});
  }
  if (into.refusal()) return {};
  return {into.builder().quantize_linear(x, scale, zero_point, to, std::move(attributes))};
}

Outputs dequantize_linear(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  const ValueId scale = into.input(node, 1);
  const ValueId zero_point = into.optional_input(node, 2);
  if (into.refusal()) return {};
  const ElementType to = type_of_attribute(node, into, "output_dtype", into.element(scale));
  if (into.refusal()) return {};
  return {into.builder().dequantize_linear(x, scale, zero_point, to, granularity_of(node))};
}

Outputs dynamic_quantize_linear(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  if (into.refusal()) return {};
  const auto [y, scale, zero_point] = into.builder().dynamic_quantize_linear(x, ElementType::u8);
  return {y, scale, zero_point};
}

Outputs qlinear_conv(const Node& node, Translation& into) {
  const FunctionBuilder::Quantized x = quantized(node, into, 0);
  const FunctionBuilder::Quantized w = quantized(node, into, 3);
  const ValueId y_scale = into.input(node, 6);
  const ValueId y_zero_point = into.input(node, 7);
  const ValueId bias = into.optional_input(node, 8);
  const ConvolutionOptions options = convolution_options_of(node, into);
  if (into.refusal()) return {};
  return {into.builder().qlinear_conv(x, w, y_scale, y_zero_point, bias, options)};
}

Outputs qlinear_matmul(const Node& node, Translation& into) {
  const FunctionBuilder::Quantized a = quantized(node, into, 0);
  const FunctionBuilder::Quantized b = quantized(node, into, 3);
  const ValueId y_scale = into.input(node, 6);
  const ValueId y_zero_point = into.input(node, 7);
  if (into.refusal()) return {};
  return {into.builder().qlinear_matmul(a, b, y_scale, y_zero_point)};
}

}  // namespace castor::onnx
