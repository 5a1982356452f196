// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear and DequantizeLinear: each is one op of castor.
#include "tests/support/onnx_elementwise_nodes.hpp"

namespace castor::test {

namespace {

/// The attributes of a node that say its granularity.
Attributes granularity_of(const OnnxGraphNode& node) {
  Attributes attributes;
  if (node.find("axis") != nullptr) attributes.push_back({"axis", {node.integer("axis", 1)}});
  const int64_t block = node.integer("block_size", 0);
  if (block != 0) attributes.push_back({"block_size", {block}});
  return attributes;
}

/// An optional input.
ValueId optional_input(const OnnxGraphNode& node, OnnxTranslation& into, size_t i) {
  return node.has_input(i) ? into.input(node, i).id : no_value;
}

/// QuantizeLinear-25: the zero point's type, else output_dtype, else u8.
ElementType quantized_type(const OnnxGraphNode& node, OnnxTranslation& into) {
  if (node.has_input(2)) return into.input(node, 2).element;
  return element_type_of_onnx(node.integer("output_dtype", 0)).value_or(ElementType::u8);
}

}  // namespace

OnnxValue onnx_quantize_linear(const OnnxGraphNode& node, OnnxTranslation& into) {
  const OnnxValue x = into.input(node, 0);
  const OnnxValue scale = into.input(node, 1);
  const ValueId zero_point = optional_input(node, into, 2);
  const ElementType to = quantized_type(node, into);
  Attributes attributes = granularity_of(node);
  if (node.integer("saturate", 1) == 0) attributes.push_back({"saturate", {false}});
  if (const auto precision = element_type_of_onnx(node.integer("precision", 0))) {
    attributes.push_back({"precision", {Identifier{std::string(name_of(*precision))}}});
  }
  if (into.refusal()) return {};
  return {into.builder().quantize_linear(x.id, scale.id, zero_point, to, std::move(attributes)), to,
          x.shape};
}

OnnxValue onnx_dequantize_linear(const OnnxGraphNode& node, OnnxTranslation& into) {
  const OnnxValue x = into.input(node, 0);
  const OnnxValue scale = into.input(node, 1);
  const ValueId zero_point = optional_input(node, into, 2);
  const ElementType to =
      element_type_of_onnx(node.integer("output_dtype", 0)).value_or(scale.element);
  if (into.refusal()) return {};
  return {into.builder().dequantize_linear(x.id, scale.id, zero_point, to, granularity_of(node)),
          to, x.shape};
}

/// Three outputs, of which the last two are defined here.
OnnxValue onnx_dynamic_quantize_linear(const OnnxGraphNode& node, OnnxTranslation& into) {
  const OnnxValue x = into.input(node, 0);
  if (into.refusal()) return {};
  const auto [y, scale, zero_point] = into.builder().dynamic_quantize_linear(x.id, ElementType::u8);
  into.define(node.outputs[1], {scale, x.element, Dims{}});
  into.define(node.outputs[2], {zero_point, ElementType::u8, Dims{}});
  return {y, ElementType::u8, x.shape};
}

}  // namespace castor::test
