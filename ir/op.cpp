// SPDX-License-Identifier: Apache-2.0
#include "ir/op.hpp"

#include <algorithm>

#include "ir/composition/mx_formats.hpp"
#include "ir/types/convert_options.hpp"
#include "ir/types/quantization.hpp"

namespace castor {

namespace {

constexpr std::span<const std::string_view> choices_of(std::span<const std::string_view> names) {
  return names.subspan(1);  // the first entry is the default, which is not written
}

constexpr AttributeRule convert_attributes[] = {
    {.name = "overflow", .kind = AttributeKind::identifier, .choices = choices_of(overflow_names)},
    {.name = "rounding", .kind = AttributeKind::identifier, .choices = choices_of(rounding_names)},
    {.name = "nan", .kind = AttributeKind::identifier, .choices = choices_of(nan_mode_names)},
};

constexpr AttributeRule promote_attributes[] = {
    {.name = "promote_unsafe", .kind = AttributeKind::boolean},
    {.name = "pytorch_scalar_promotion", .kind = AttributeKind::boolean},
    {.name = "u64_integer_promotion_target", .kind = AttributeKind::identifier},
};

constexpr std::string_view broadcast_modes[] = {"numpy", "pdpd", "bidirectional", "explicit",
                                                "blocked"};
constexpr AttributeRule broadcast_attributes[] = {
    {.name = "mode", .kind = AttributeKind::identifier, .choices = broadcast_modes},
    {.name = "axis", .kind = AttributeKind::integer},
    {.name = "axes", .kind = AttributeKind::list},
    {.name = "block", .kind = AttributeKind::list},
};

constexpr std::string_view binary_broadcasts[] = {"numpy", "none", "pdpd", "blocked"};
constexpr AttributeRule binary_attributes[] = {
    {.name = "broadcast", .kind = AttributeKind::identifier, .choices = binary_broadcasts},
    {.name = "axis", .kind = AttributeKind::integer},
    {.name = "axes", .kind = AttributeKind::list},
    {.name = "block", .kind = AttributeKind::list},
};

constexpr AttributeRule clamp_attributes[] = {
    {.name = "lo", .kind = AttributeKind::number},
    {.name = "hi", .kind = AttributeKind::number},
};

constexpr std::string_view select_broadcasts[] = {"numpy", "none"};
constexpr AttributeRule select_attributes[] = {
    {.name = "broadcast", .kind = AttributeKind::identifier, .choices = select_broadcasts},
};

constexpr AttributeRule look_up_attributes[] = {
    {.name = "axis", .kind = AttributeKind::integer},
};

constexpr std::string_view auto_pads[] = {"notset", "same_upper", "same_lower", "valid"};
constexpr std::string_view layouts[] = {"nchw", "nhwc"};
constexpr AttributeRule convolution_attributes[] = {
    {.name = "auto_pad", .kind = AttributeKind::identifier, .choices = auto_pads},
    {.name = "dilations", .kind = AttributeKind::list},
    {.name = "group", .kind = AttributeKind::integer},
    {.name = "kernel_shape", .kind = AttributeKind::list},
    {.name = "pads", .kind = AttributeKind::list},
    {.name = "strides", .kind = AttributeKind::list},
    {.name = "layout", .kind = AttributeKind::identifier, .choices = layouts},
};

constexpr AttributeRule pooling_attributes[] = {
    {.name = "auto_pad", .kind = AttributeKind::identifier, .choices = auto_pads},
    {.name = "dilations", .kind = AttributeKind::list},
    {.name = "kernel_shape", .kind = AttributeKind::list, .required = true},
    {.name = "pads", .kind = AttributeKind::list},
    {.name = "strides", .kind = AttributeKind::list},
    {.name = "layout", .kind = AttributeKind::identifier, .choices = layouts},
};

constexpr std::string_view arithmetics[] = {"exact", "embarc"};
constexpr std::string_view requantize_roundings[] = {"half_up", "nearest_even"};
constexpr AttributeRule requantize_attributes[] = {
    {.name = "arithmetic", .kind = AttributeKind::identifier, .choices = arithmetics},
    {.name = "rounding", .kind = AttributeKind::identifier, .choices = requantize_roundings},
};

constexpr std::string_view accumulators[] = {"i32", "i64"};
constexpr AttributeRule sum_attributes[] = {
    {.name = "axes", .kind = AttributeKind::list},
    {.name = "keep_dims", .kind = AttributeKind::boolean},
    {.name = "accumulator", .kind = AttributeKind::identifier, .choices = accumulators},
};
constexpr std::span<const AttributeRule> reduction_attributes = std::span(sum_attributes).first(2);
constexpr std::string_view precisions[] = {"f16", "bf16", "f32", "f64"};
constexpr std::string_view scalings[] = {"divide", "reciprocal"};
constexpr AttributeRule quantize_linear_attributes[] = {
    {.name = "axis", .kind = AttributeKind::integer},
    {.name = "block_size", .kind = AttributeKind::integer},
    {.name = "axes", .kind = AttributeKind::list},
    {.name = "block", .kind = AttributeKind::list},
    {.name = "saturate", .kind = AttributeKind::boolean},
    {.name = "precision", .kind = AttributeKind::identifier, .choices = precisions},
    {.name = "scaling", .kind = AttributeKind::identifier, .choices = scalings},
};
constexpr std::span<const AttributeRule> dequantize_linear_attributes =
    std::span(quantize_linear_attributes).first(4);  // the granularity alone

constexpr AttributeRule dynamic_quantize_rules[] = {
    {.name = "axes", .kind = AttributeKind::list},
    {.name = "scaling", .kind = AttributeKind::identifier, .choices = scalings},
};
constexpr std::span<const AttributeRule> dynamic_quantize_attributes = dynamic_quantize_rules;
constexpr std::string_view mx_scale_rules[] = {"ocp_floor", "ceil_power", "even_round"};
constexpr AttributeRule quantize_mx_attributes[] = {
    {.name = "format",
     .kind = AttributeKind::identifier,
     .choices = mx_format_names,
     .required = true},
    {.name = "axis", .kind = AttributeKind::integer},
    {.name = "block", .kind = AttributeKind::integer},
    {.name = "scale_rule", .kind = AttributeKind::identifier, .choices = mx_scale_rules},
    {.name = "scaling", .kind = AttributeKind::identifier, .choices = scalings},
};
constexpr std::span<const AttributeRule> dequantize_mx_attributes =
    std::span(quantize_mx_attributes).first(3);

constexpr std::span<const AttributeRule> no_attributes = {};

// clang-format off
using enum OpFamily;
using C = OperandClass;
using S = TypeSuffix;
using I = InferRule;

constexpr std::array<OpInfo, op_count> table = {{
    //  op, name, family, operands, results, types, suffix, result types, attributes, meaning, optional operands
    {OpKind::constant, "constant", source, 0, 1, C::any, S::tensor, I::as_written, no_attributes, "a tensor of literals, or bound by name"},
    {OpKind::convert, "convert", elementwise, 1, 1, C::any, S::element, I::element_as_named, convert_attributes, "elementwise conversion to the element type named"},
    {OpKind::convert_promote_types, "convert_promote_types", elementwise, 2, 2, C::any, S::optional_type, I::promoted, promote_attributes, "both operands converted to their common type"},
    {OpKind::broadcast, "broadcast", movement, 1, 1, C::any, S::shape, I::broadcast, broadcast_attributes, "broadcast to a target shape"},
    {OpKind::reshape, "reshape", movement, 1, 1, C::any, S::shape, I::reshaped, no_attributes, "the same elements in another shape"},
    {OpKind::add, "add", elementwise, 2, 1, C::numeric, S::optional_type, I::elementwise, binary_attributes, "a + b"},
    {OpKind::sub, "sub", elementwise, 2, 1, C::numeric, S::optional_type, I::elementwise, binary_attributes, "a - b"},
    {OpKind::mul, "mul", elementwise, 2, 1, C::numeric, S::optional_type, I::elementwise, binary_attributes, "a * b"},
    {OpKind::div, "div", elementwise, 2, 1, C::numeric, S::optional_type, I::elementwise, binary_attributes, "a / b; integers truncate, x / 0 = 0"},
    {OpKind::floor_div, "floor_div", elementwise, 2, 1, C::numeric, S::optional_type, I::elementwise, binary_attributes, "floor(a / b)"},
    {OpKind::mod, "mod", elementwise, 2, 1, C::numeric, S::optional_type, I::elementwise, binary_attributes, "remainder of the sign of a"},
    {OpKind::floor_mod, "floor_mod", elementwise, 2, 1, C::numeric, S::optional_type, I::elementwise, binary_attributes, "remainder of the sign of b"},
    {OpKind::min, "min", elementwise, 2, 1, C::numeric, S::optional_type, I::elementwise, binary_attributes, "the smaller; NaN propagates, -0 is below +0"},
    {OpKind::max, "max", elementwise, 2, 1, C::numeric, S::optional_type, I::elementwise, binary_attributes, "the larger; NaN propagates, -0 is below +0"},
    {OpKind::squared_difference, "squared_difference", elementwise, 2, 1, C::numeric, S::optional_type, I::elementwise, binary_attributes, "(a - b) * (a - b)"},
    {OpKind::prelu, "prelu", elementwise, 2, 1, C::numeric, S::optional_type, I::elementwise, binary_attributes, "a < 0 ? a * b : a"},
    {OpKind::abs, "abs", elementwise, 1, 1, C::numeric, S::optional_type, I::elementwise, no_attributes, "the magnitude"},
    {OpKind::neg, "neg", elementwise, 1, 1, C::numeric, S::optional_type, I::elementwise, no_attributes, "-x"},
    {OpKind::sign, "sign", elementwise, 1, 1, C::numeric, S::optional_type, I::elementwise, no_attributes, "-1, 0 or 1; NaN stays"},
    {OpKind::relu, "relu", elementwise, 1, 1, C::numeric, S::optional_type, I::elementwise, no_attributes, "max(x, 0)"},
    {OpKind::clamp, "clamp", elementwise, 1, 1, C::numeric, S::optional_type, I::elementwise, clamp_attributes, "min(max(x, lo), hi)"},
    {OpKind::sqrt, "sqrt", elementwise, 1, 1, C::floating, S::optional_type, I::elementwise, no_attributes, "the square root"},
    {OpKind::floor, "floor", elementwise, 1, 1, C::numeric, S::optional_type, I::elementwise, no_attributes, "rounded down to an integral value"},
    {OpKind::ceil, "ceil", elementwise, 1, 1, C::numeric, S::optional_type, I::elementwise, no_attributes, "rounded up to an integral value"},
    {OpKind::trunc, "trunc", elementwise, 1, 1, C::numeric, S::optional_type, I::elementwise, no_attributes, "rounded toward zero to an integral value"},
    {OpKind::round_even, "round_even", elementwise, 1, 1, C::numeric, S::optional_type, I::elementwise, no_attributes, "rounded to the nearest integer, ties to even"},
    {OpKind::is_nan, "is_nan", elementwise, 1, 1, C::floating, S::optional_type, I::comparison, no_attributes, "whether x is NaN"},
    {OpKind::equal, "equal", elementwise, 2, 1, C::any, S::optional_type, I::comparison, binary_attributes, "a = b"},
    {OpKind::not_equal, "not_equal", elementwise, 2, 1, C::any, S::optional_type, I::comparison, binary_attributes, "a differs from b, or is unordered"},
    {OpKind::less, "less", elementwise, 2, 1, C::any, S::optional_type, I::comparison, binary_attributes, "a < b"},
    {OpKind::less_equal, "less_equal", elementwise, 2, 1, C::any, S::optional_type, I::comparison, binary_attributes, "a <= b"},
    {OpKind::greater, "greater", elementwise, 2, 1, C::any, S::optional_type, I::comparison, binary_attributes, "a > b"},
    {OpKind::greater_equal, "greater_equal", elementwise, 2, 1, C::any, S::optional_type, I::comparison, binary_attributes, "a >= b"},
    {OpKind::logical_and, "logical_and", elementwise, 2, 1, C::boolean, S::optional_type, I::elementwise, binary_attributes, "both"},
    {OpKind::logical_or, "logical_or", elementwise, 2, 1, C::boolean, S::optional_type, I::elementwise, binary_attributes, "one or both"},
    {OpKind::logical_xor, "logical_xor", elementwise, 2, 1, C::boolean, S::optional_type, I::elementwise, binary_attributes, "exactly one"},
    {OpKind::logical_not, "not", elementwise, 1, 1, C::boolean, S::optional_type, I::elementwise, no_attributes, "the opposite"},
    {OpKind::bitwise_and, "bitwise_and", elementwise, 2, 1, C::integer_or_boolean, S::optional_type, I::elementwise, binary_attributes, "bit by bit"},
    {OpKind::bitwise_or, "bitwise_or", elementwise, 2, 1, C::integer_or_boolean, S::optional_type, I::elementwise, binary_attributes, "bit by bit"},
    {OpKind::bitwise_xor, "bitwise_xor", elementwise, 2, 1, C::integer_or_boolean, S::optional_type, I::elementwise, binary_attributes, "bit by bit"},
    {OpKind::bitwise_not, "bitwise_not", elementwise, 1, 1, C::integer_or_boolean, S::optional_type, I::elementwise, no_attributes, "every bit inverted"},
    {OpKind::shift_left, "shift_left", elementwise, 2, 1, C::integer, S::optional_type, I::elementwise, binary_attributes, "a * 2^b, modulo 2^N"},
    {OpKind::shift_right, "shift_right", elementwise, 2, 1, C::integer, S::optional_type, I::elementwise, binary_attributes, "floor(a / 2^b)"},
    {OpKind::select, "select", elementwise, 3, 1, C::any, S::optional_type, I::selection, select_attributes, "a where the condition holds, else b"},
    {OpKind::look_up, "look_up", OpFamily::look_up, 2, 1, C::code, S::optional_type, I::looked_up, look_up_attributes, "table[x], or table[i, x] with i the index along an axis, of codes read as unsigned numbers"},
    {OpKind::reduce_min, "reduce_min", reduction, 1, 1, C::numeric, S::optional_type, I::reduced, reduction_attributes, "the smallest along axes; any NaN gives NaN, -0 is below +0"},
    {OpKind::reduce_max, "reduce_max", reduction, 1, 1, C::numeric, S::optional_type, I::reduced, reduction_attributes, "the largest along axes; any NaN gives NaN, -0 is below +0"},
    {OpKind::reduce_max_abs, "reduce_max_abs", reduction, 1, 1, C::numeric, S::optional_type, I::reduced, reduction_attributes, "the largest magnitude along axes; any NaN gives NaN"},
    {OpKind::reduce_sum, "reduce_sum", reduction, 1, 1, C::numeric, S::optional_type, I::reduced, sum_attributes, "the sum along axes; of floats by one tree that extents alone decide"},
    {OpKind::max_pool, "max_pool", pooling, 1, 1, C::numeric_bytes, S::optional_type, I::pooled, pooling_attributes, "the largest of each window; any NaN gives NaN, -0 is below +0"},
    {OpKind::conv_integer, "conv_integer", convolution, 4, 1, C::byte, S::optional_type, I::convolution, convolution_attributes, "convolution of x by w, each less its zero point, modulo 2^32", 2},
    {OpKind::matmul_integer, "matmul_integer", convolution, 4, 1, C::byte, S::optional_type, I::matmul, no_attributes, "matrix product of a and b, each less its zero point, modulo 2^32", 2},
    {OpKind::requantize, "requantize", requantization, 7, 1, C::quantized, S::element, I::requantized, requantize_attributes, "another scale, zero point and container: (x - zero_point) * scale / 2^frac stays", 6},
    {OpKind::quantize_linear, "quantize_linear", composition, 3, 1, C::any, S::element, I::defined, quantize_linear_attributes, "saturate(round_half_even(x / scale) + zero_point)", 1},
    {OpKind::dequantize_linear, "dequantize_linear", composition, 3, 1, C::any, S::element, I::defined, dequantize_linear_attributes, "(x - zero_point) * scale", 1},
    {OpKind::dynamic_quantize_linear, "dynamic_quantize_linear", composition, 1, 3, C::floating, S::element, I::defined, dynamic_quantize_attributes, "x quantized by its minimum and maximum, the scale, the zero point"},
    {OpKind::dynamic_quantize_symmetric, "dynamic_quantize_symmetric", composition, 1, 2, C::floating, S::element, I::defined, dynamic_quantize_attributes, "x quantized by its largest magnitude, the scale"},
    {OpKind::qlinear_conv, "qlinear_conv", composition, 9, 1, C::any, S::optional_type, I::defined, convolution_attributes, "convolution of quantized tensors: sum and bias, scaled, rounded and offset", 1},
    {OpKind::qlinear_matmul, "qlinear_matmul", composition, 8, 1, C::any, S::optional_type, I::defined, no_attributes, "matrix product of quantized tensors: sum, scaled, rounded and offset"},
    {OpKind::dequantize_mx, "dequantize_mx", composition, 3, 1, C::any, S::element, I::defined, dequantize_mx_attributes, "elements times the scales of their blocks", 1},
    {OpKind::quantize_mx, "quantize_mx", composition, 2, 2, C::any, S::element, I::defined, quantize_mx_attributes, "elements, and the scale of each block", 1},
    {OpKind::nvfp4_tensor_scale, "nvfp4_tensor_scale", composition, 1, 1, C::floating, S::optional_type, I::defined, no_attributes, "the largest magnitude over 6 * 448"},
}};
// clang-format on

constexpr bool table_is_in_enum_order() {
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].op != static_cast<OpKind>(i)) return false;
  }
  return true;
}
static_assert(table_is_in_enum_order());

}  // namespace

const std::array<OpInfo, op_count>& op_table() { return table; }

const OpInfo& info(OpKind op) { return table[static_cast<size_t>(op)]; }

std::string_view name_of(OpKind op) {
  return static_cast<size_t>(op) < table.size() ? info(op).name : "unknown";
}

std::optional<OpKind> op_named(std::string_view name) {
  for (const OpInfo& row : table) {
    if (row.name == name) return row.op;
  }
  return std::nullopt;
}

std::string_view name_of(OperandClass operands) {
  constexpr std::string_view names[] = {
      "any type",
      "an integer or a float (not boolean, f8e8m0, nf4)",
      "a float (not f8e8m0, nf4)",
      "an integer",
      "an integer or boolean",
      "boolean",
      "i8 or u8",
      "u8, i8, u4, i4, f4e2m1 or nf4",
      "an integer or a float of 8 bits or more (not boolean, f8e8m0)",
      "fx8, fx16, sa8, sa32 or f32"};
  return names[static_cast<size_t>(operands)];
}

bool admits(OperandClass operands, ElementType type) {
  switch (operands) {
    case OperandClass::any: return true;
    case OperandClass::numeric: return is_integer(type) || is_float(type);
    case OperandClass::floating: return is_float(type);
    case OperandClass::integer: return is_integer(type);
    case OperandClass::integer_or_boolean: return is_whole(type);
    case OperandClass::boolean: return is_boolean(type);
    case OperandClass::byte: return type == ElementType::i8 || type == ElementType::u8;
    case OperandClass::code: return bits_of(type) == 4 || admits(OperandClass::byte, type);
    case OperandClass::numeric_bytes:
      return bits_of(type) >= 8 && admits(OperandClass::numeric, type);
    case OperandClass::quantized:
      return type == ElementType::f32 ||
             std::ranges::any_of(quantized_table,
                                 [&](const QuantizedInfo& row) { return row.container == type; });
  }
  return false;
}

bool stands_alone(OpKind op) {
  return info(op).family == OpFamily::convolution || info(op).family == OpFamily::requantization;
}

bool keeps_excess_precision(OpKind op) {
  return info(op).family == OpFamily::elementwise && op != OpKind::convert &&
         op != OpKind::convert_promote_types;
}

}  // namespace castor
