// SPDX-License-Identifier: Apache-2.0
// ONNX DequantizeLinear, opsets 10 to 25: y = (x - zero_point) * scale.
#include <fmt/format.h>

#include "ir/composition/granularity.hpp"
#include "ir/composition/steps.hpp"

namespace castor {

namespace {

/// Integers of at most 32 bits, floats of at most 8, and nf4.
bool is_quantized_operand(ElementType type) {
  if (is_integer(type)) return bits_of(type) <= 32;
  return (is_float(type) && bits_of(type) <= 8) || type == ElementType::nf4;
}

Status check_types(const CompositionCall& call) {
  const auto refused = [&](std::string_view what, ElementType found, std::string_view expected) {
    return call.mistake(fmt::format("{} is {}, expected {}", what, name_of(found), expected));
  };
  const ElementType x = call.element_of(0);
  const ElementType scale = call.element_of(1);
  if (!is_quantized_operand(x)) {
    return refused("operand 0", x,
                   "an integer of at most 32 bits, a float of at most 8 bits or nf4");
  }
  if (!is_float(scale) && scale != ElementType::f8e8m0) {
    return refused("the scale", scale, "a float or f8e8m0");
  }
  if (!computes(call.result)) return refused("the result", call.result, "f16, bf16, f32 or f64");
  if (call.has(2) && call.element_of(2) != x) {
    return refused("the zero point", call.element_of(2),
                   fmt::format("{} as operand 0", name_of(x)));
  }
  return {};
}

/// The type of the product: f32 for results of 16 bits, as ONNX Runtime and ONNX's reference
/// implementation have it, unless these hold both factors: then the bits are the same.
ElementType product_type(const CompositionCall& call) {
  if (bits_of(call.result) > 16) return call.result;
  const ElementType x = call.element_of(0);
  const bool is_held = bits_of(x) <= 8 && x != ElementType::nf4;
  const bool is_exact = is_integer(x) || !call.has(2);
  const bool holds_factors = is_held && is_exact && call.element_of(1) == call.result;
  return holds_factors ? call.result : ElementType::f32;
}

/// x - zero_point in the type of the product. Integers are subtracted exactly and rounded once.
ValueId difference(const CompositionCall& call, const BroadcastRule& rule, ElementType product) {
  FunctionBuilder& builder = call.builder;
  if (!call.has(2)) return builder.convert(call.operands[0], product);
  const ElementType given = call.element_of(0);
  const ElementType exact = bits_of(given) < 32 ? ElementType::i32 : ElementType::i64;
  const ElementType type = is_integer(given) ? exact : product;
  const ValueId x = in_type(builder, call.operands[0], type);
  const ValueId zero_point = in_type(builder, parameter_of(call, 2), type);
  return in_type(builder, builder.binary(OpKind::sub, x, zero_point, rule), product);
}

}  // namespace

Result<std::vector<ValueId>> define_dequantize_linear(const CompositionCall& call) {
  if (Status status = check_types(call); !status) return status.error();
  if (Status status = check_granularity(call); !status) return status.error();
  const Result<BroadcastRule> rule = granularity_of(call, 1);
  if (!rule) return rule.error();
  const Result<BroadcastRule> zero_point_rule = granularity_of(call, call.has(2) ? 2 : 1);
  if (!zero_point_rule) return zero_point_rule.error();
  const ElementType type = product_type(call);
  const ValueId wide = difference(call, *zero_point_rule, type);
  const ValueId scale = in_type(call.builder, parameter_of(call, 1), type);
  const ValueId product = call.builder.binary(OpKind::mul, wide, scale, *rule);
  return std::vector{in_type(call.builder, product, call.result)};
}

}  // namespace castor
