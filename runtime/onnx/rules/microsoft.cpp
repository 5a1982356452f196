// SPDX-License-Identifier: Apache-2.0
// Operators of ONNX Runtime's own domain. Their documentation says what they compute; how steps are
// rounded is defined here, each in f32: requantized sums and products as those of QLinearConv.
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "runtime/onnx/rules/rules.hpp"

namespace castor::onnx {

namespace {

using OpKind::add, OpKind::div, OpKind::mul, OpKind::prelu, OpKind::sub;

/// An integer minus its zero point, in i32.
ValueId centred(const Node& node, Translation& into, size_t value, size_t zero_point) {
  const ValueId x = into.builder().convert(into.input(node, value), ElementType::i32);
  if (!node.has_input(zero_point)) return x;
  const ValueId zero = into.builder().convert(into.input(node, zero_point), ElementType::i32);
  return into.binary(sub, x, zero);
}

/// (x - zero point) * scale.
ValueId real(const Node& node, Translation& into, size_t first) {
  const ValueId x = into.input(node, first);
  const ValueId scale = into.input(node, first + 1);
  const ValueId zero_point = into.optional_input(node, first + 2);
  if (into.refusal()) return no_value;
  return into.builder().dequantize_linear(x, scale, zero_point, ElementType::f32);
}

/// x / scale in the type of the node's input 0, where the scale is input `first`.
ValueId quantized(const Node& node, Translation& into, size_t first, ValueId x) {
  const ValueId scale = into.input(node, first);
  const ValueId zero_point = into.optional_input(node, first + 1);
  if (into.refusal()) return no_value;
  return into.builder().quantize_linear(x, scale, zero_point, into.element(into.input(node, 0)));
}

/// saturate(round_half_even(f32(x) * factor) + zero point), x of i32.
ValueId requantized(const Node& node, Translation& into, ValueId x, ValueId factor,
                    size_t zero_point, ElementType to) {
  const ValueId f = into.builder().convert(x, ElementType::f32);
  const ValueId product = into.binary(mul, f, factor);
  const ConvertOptions to_even = {.rounding = Rounding::nearest_even};
  // Beyond these bounds every sum with a zero point saturates, and none overflows.
  const ValueId whole = into.builder().clamp(
      into.builder().convert(product, ElementType::i32, to_even), -0x1p17, 0x1p17);
  if (!node.has_input(zero_point)) {
    return into.builder().convert(whole, to, {.overflow = Overflow::saturate});
  }
  const ValueId zero = into.builder().convert(into.input(node, zero_point), ElementType::i32);
  if (into.refusal()) return no_value;
  const ValueId moved = into.binary(add, whole, zero);
  return into.builder().convert(moved, to, {.overflow = Overflow::saturate});
}

}  // namespace

/// (A_scale * (A - A_zero) + B_scale * (B - B_zero)) / C_scale + C_zero.
Outputs qlinear_add(const Node& node, Translation& into) {
  const ValueId a = real(node, into, 0);
  const ValueId b = real(node, into, 3);
  return {quantized(node, into, 6, into.binary(add, a, b))};
}

/// ((A - A_zero) * (B - B_zero)) * (A_scale * B_scale) / C_scale + C_zero.
Outputs qlinear_mul(const Node& node, Translation& into) {
  const ValueId a = centred(node, into, 0, 2);
  const ValueId b = centred(node, into, 3, 5);
  const ValueId scales = into.binary(mul, into.input(node, 1), into.input(node, 4));
  const ValueId factor = into.binary(div, scales, into.input(node, 6));
  const ElementType to = into.element(into.input(node, 0));
  return {requantized(node, into, into.binary(mul, a, b), factor, 7, to)};
}

Outputs qlinear_leaky_relu(const Node& node, Translation& into) {
  const ValueId x = real(node, into, 0);
  const ValueId slope = into.scalar(node.number("alpha", 0.01f), ElementType::f32);
  return {quantized(node, into, 3, into.binary(prelu, x, slope))};
}

namespace {

/// A known scalar's bits as a number of `Number`, whose size the tensor must have.
template <class Number>
std::optional<Number> known_scalar(const Translation& into, const Node& node, size_t i) {
  const Tensor* tensor = into.known(node, i);
  Number number{};
  if (tensor == nullptr || tensor->data->bytes.size() != sizeof number) return std::nullopt;
  std::memcpy(&number, tensor->data->bytes.data(), sizeof number);
  return number;
}

/// What a code of u8 or i8 stands for as an integer.
int value_of_code(int code, bool is_signed) { return is_signed ? static_cast<int8_t>(code) : code; }

/// A zero point, 0 where it is left out, nothing where it is not known.
std::optional<int> known_zero_point(const Translation& into, const Node& node, size_t i,
                                    bool is_signed) {
  if (!node.has_input(i)) return 0;
  const auto code = known_scalar<uint8_t>(into, node, i);
  return code ? std::optional(value_of_code(*code, is_signed)) : std::nullopt;
}

struct SigmoidScales {
  float x_scale;
  int x_zero_point;
  float y_scale;
  int y_zero_point;
  bool is_signed;
};

std::byte sigmoid_of_code(int code, const SigmoidScales& scales) {
  const int centred = value_of_code(code, scales.is_signed) - scales.x_zero_point;
  const float x = static_cast<float>(centred) * scales.x_scale;
  const auto y = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(x))));
  const double whole = std::nearbyint(static_cast<double>(y / scales.y_scale));
  const double lowest = scales.is_signed ? -128 : 0;
  const double moved = whole + scales.y_zero_point;
  const double bounded = std::fmin(std::fmax(moved, lowest), lowest + 255);
  return static_cast<std::byte>(static_cast<int>(bounded) & 0xff);
}

std::optional<SigmoidScales> known_scales(const Node& node, const Translation& into,
                                          bool is_signed) {
  const auto x_scale = known_scalar<float>(into, node, 1);
  const auto x_zero_point = known_zero_point(into, node, 2, is_signed);
  const auto y_scale = known_scalar<float>(into, node, 3);
  const auto y_zero_point = known_zero_point(into, node, 4, is_signed);
  if (!x_scale || !x_zero_point || !y_scale || !y_zero_point) return std::nullopt;
  return SigmoidScales{*x_scale, *x_zero_point, *y_scale, *y_zero_point, is_signed};
}

}  // namespace

/// A table of all 256 codes, computed here: the sigmoid in f64, rounded to f32 once.
Outputs qlinear_sigmoid(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  const ElementType type = into.element(x);
  const auto scales = known_scales(node, into, type == ElementType::i8);
  if (!scales) into.refuse("its scales and zero points are no constants");
  if (into.refusal()) return {};
  ConstantData table;
  for (int code = 0; code < 256; ++code) table.bytes.push_back(sigmoid_of_code(code, *scales));
  const Tensor tensor = {type, {256}, std::make_shared<const ConstantData>(std::move(table))};
  return {into.builder().look_up(x, into.constant(tensor))};
}

/// The sum of x - x_zero over the spatial axes, times x_scale / (y_scale * count).
Outputs qlinear_global_average_pool(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  const Shape from = into.shape(x);
  if (from.size() < 2) into.refuse("there are no channels");
  if (into.refusal()) return {};
  const bool channels_last = node.integer("channels_last", 0) != 0;
  const size_t end = from.size() - (channels_last ? 1 : 0);
  Dims spatial;
  std::vector<int64_t> axes;
  for (size_t axis = channels_last ? 1 : 2; axis < end; ++axis) {
    if (!from[axis].is_fixed()) into.refuse("spatial extents are not known");
    spatial.push_back(from[axis].extent);
    axes.push_back(static_cast<int64_t>(axis));
  }
  const std::optional<int64_t> count = element_count(spatial);
  if (!count || *count > (int64_t{1} << 23)) into.refuse("more elements than sums in i32 hold");
  if (into.refusal()) return {};
  const ValueId sum = into.builder().reduce(OpKind::reduce_sum, centred(node, into, 0, 2),
                                            {.axes = axes, .keep_dims = true});
  const ValueId counted = into.binary(mul, into.input(node, 3),
                                      into.scalar(static_cast<float>(*count), ElementType::f32));
  const ValueId factor = into.binary(div, into.input(node, 1), counted);
  return {requantized(node, into, sum, factor, 4, into.element(x))};
}

namespace {

/// A known matrix of bytes, transposed.
std::optional<Tensor> transposed(const Tensor* matrix) {
  if (matrix == nullptr || matrix->shape.rank() != 2 || bits_of(matrix->element) != 8) {
    return std::nullopt;
  }
  const auto rows = static_cast<size_t>(matrix->shape[0]);
  const auto columns = static_cast<size_t>(matrix->shape[1]);
  ConstantData data;
  data.bytes.resize(matrix->data->bytes.size());
  for (size_t row = 0; row < rows; ++row) {
    for (size_t column = 0; column < columns; ++column) {
      data.bytes[column * rows + row] = matrix->data->bytes[row * columns + column];
    }
  }
  return Tensor{matrix->element,
                {matrix->shape[1], matrix->shape[0]},
                std::make_shared<const ConstantData>(std::move(data))};
}

ValueId gemm_operand(const Node& node, Translation& into, size_t i, const char* attribute) {
  if (node.integer(attribute, 0) == 0) return into.input(node, i);
  const std::optional<Tensor> swapped = transposed(into.known(node, i));
  if (!swapped) into.refuse(fmt::format("input {} is transposed, and no constant", i));
  return swapped && !into.refusal() ? into.constant(*swapped) : no_value;
}

}  // namespace

/// f32(sum + C) * (alpha * a_scale * b_scale), divided by y_scale where that is given.
Outputs qgemm(const Node& node, Translation& into) {
  const ValueId a = gemm_operand(node, into, 0, "transA");
  const ValueId b = gemm_operand(node, into, 3, "transB");
  const ValueId a_zero_point = into.input(node, 2);
  const ValueId b_zero_point = into.input(node, 5);
  if (into.refusal()) return {};
  ValueId sum = into.builder().matmul_integer(a, b, a_zero_point, b_zero_point);
  if (node.has_input(6)) sum = into.binary(add, sum, into.input(node, 6));
  const ValueId alpha = into.scalar(node.number("alpha", 1), ElementType::f32);
  const ValueId scaled = into.binary(mul, alpha, into.input(node, 1));
  const ValueId scales = into.binary(mul, scaled, into.input(node, 4));
  if (!node.has_input(7)) {
    return {into.binary(mul, into.builder().convert(sum, ElementType::f32), scales)};
  }
  const ValueId factor = into.binary(div, scales, into.input(node, 7));
  const ElementType to = into.type_of_input(node, 8).element.value_or(ElementType::u8);
  return {requantized(node, into, sum, factor, 8, to)};
}

}  // namespace castor::onnx
