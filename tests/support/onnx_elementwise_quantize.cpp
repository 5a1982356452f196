// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear and DequantizeLinear: a scale and a zero point for the whole tensor, for each
// index of an axis, or for each block along an axis.
#include "tests/support/onnx_elementwise_nodes.hpp"

namespace castor::test {

namespace {

/// Input `i`, a scale or zero point, in a shape that broadcasts to the first input's.
OnnxValue spread(const OnnxGraphNode& node, OnnxTranslation& into, size_t i, const Dims& shape) {
  const OnnxValue parameter = into.input(node, i);
  const Dims from = into.extents_of(parameter);
  if (from.empty() || *element_count(from) == 1) return into.reshape(parameter, {});
  const int64_t axis_attribute = node.integer("axis", 1);
  const auto axis =
      static_cast<int>(axis_attribute < 0 ? axis_attribute + shape.rank() : axis_attribute);
  const int64_t block = node.integer("block_size", 0);
  if (block == 0) {
    Dims target = Dims::filled(shape.rank(), 1);
    target[axis] = shape[axis];
    return into.reshape(parameter, target);
  }
  Dims apart;
  Dims repeated;
  for (int at = 0; at < shape.rank(); ++at) {
    apart.push_back(from[at]);
    repeated.push_back(from[at]);
    if (at != axis) continue;
    apart.push_back(1);
    repeated.push_back(block);
  }
  const OnnxValue blocks =
      into.broadcast(into.reshape(parameter, apart), repeated, BroadcastMode::numpy);
  return into.reshape(blocks, shape);
}

/// QuantizeLinear-25: the zero point's type, else output_dtype, else u8.
ElementType quantized_type(const OnnxGraphNode& node, OnnxTranslation& into) {
  if (node.has_input(2)) return into.input(node, 2).element;
  return element_type_of_onnx(node.integer("output_dtype", 0)).value_or(ElementType::u8);
}

}  // namespace

/// saturate(x / scale + zero_point), of integers with the quotient rounded to nearest even first.
OnnxValue onnx_quantize_linear(const OnnxGraphNode& node, OnnxTranslation& into) {
  const OnnxValue x = into.input(node, 0);
  const Dims shape = into.extents_of(x);
  const ElementType to = quantized_type(node, into);
  OnnxValue value = into.binary(OpKind::div, x, spread(node, into, 1, shape));
  if (is_integer(to)) value = into.unary(OpKind::round_even, value);
  if (node.has_input(2)) {
    const OnnxValue zero_point = into.convert(spread(node, into, 2, shape), x.element);
    value = into.binary(OpKind::add, value, zero_point);
  }
  return into.convert(value, to, {.overflow = Overflow::saturate});
}

/// (x - zero_point) * scale, in the scale's type.
OnnxValue onnx_dequantize_linear(const OnnxGraphNode& node, OnnxTranslation& into) {
  const OnnxValue x = into.input(node, 0);
  const Dims shape = into.extents_of(x);
  const OnnxValue scale = spread(node, into, 1, shape);
  OnnxValue wide = into.convert(x, scale.element);
  if (node.has_input(2)) {
    const OnnxValue zero_point = into.convert(spread(node, into, 2, shape), scale.element);
    wide = into.binary(OpKind::sub, wide, zero_point);
  }
  return into.binary(OpKind::mul, wide, scale);
}

}  // namespace castor::test
