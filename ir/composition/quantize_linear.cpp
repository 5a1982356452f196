// SPDX-License-Identifier: Apache-2.0
// ONNX QuantizeLinear, opsets 10 to 25: y = saturate(round_half_even(x / scale) + zero_point).
#include <fmt/format.h>

#include "ir/composition/granularity.hpp"
#include "ir/composition/steps.hpp"

namespace castor {

namespace {

/// What quantized numbers may be: integers of at most 16 bits, floats of at most 8.
bool is_quantized_result(ElementType type) {
  return (is_integer(type) && bits_of(type) <= 16) || (is_float(type) && bits_of(type) <= 8);
}

Status check_types(const CompositionCall& call) {
  const auto refused = [&](std::string_view what, ElementType found, std::string_view expected) {
    return call.mistake(fmt::format("{} is {}, expected {}", what, name_of(found), expected));
  };
  const ElementType x = call.element_of(0);
  const ElementType scale = call.element_of(1);
  if (!computes(x) && x != ElementType::i32) {
    return refused("operand 0", x, "f16, bf16, f32, f64 or i32");
  }
  if (!computes(scale) && scale != ElementType::i32 && scale != ElementType::f8e8m0) {
    return refused("the scale", scale, "f16, bf16, f32, f64, i32 or f8e8m0");
  }
  if (!is_quantized_result(call.result)) {
    return refused("the result", call.result,
                   "an integer of at most 16 bits or a float of at most 8");
  }
  if (call.has(2) && call.element_of(2) != call.result) {
    return refused("the zero point", call.element_of(2),
                   fmt::format("{} as the result", name_of(call.result)));
  }
  if (!call.boolean("saturate", true) && !is_float8(call.result)) {
    return call.mistake(
        fmt::format("found saturate = false for {}, expected it for floats of 8 "
                    "bits only",
                    name_of(call.result)));
  }
  return {};
}

/// The type of the division: `precision`, else the scale's; of scales that do not compute, f32.
ElementType precision_of(const CompositionCall& call) {
  const std::optional<ElementType> named = element_type_named(call.identifier("precision"));
  if (named) return *named;
  return computes(call.element_of(1)) ? call.element_of(1) : ElementType::f32;
}

ValueId quotient_of(const CompositionCall& call, const BroadcastRule& rule) {
  const ElementType precision = precision_of(call);
  const ValueId x = in_type(call.builder, call.operands[0], precision);
  const ValueId scale = in_type(call.builder, parameter_of(call, 1), precision);
  if (call.identifier("scaling") != "reciprocal") {
    return call.builder.binary(OpKind::div, x, scale, rule);
  }
  const ValueId one = scalar_of(call.builder, 1, precision);
  return call.builder.binary(OpKind::mul, x, call.builder.binary(OpKind::div, one, scale), rule);
}

/// Zero points of 8-bit floats are 0 in ONNX; they are not added, so that -0 stays.
ValueId as_float(const CompositionCall& call, ValueId quotient, const BroadcastRule& rule) {
  const bool saturates = call.boolean("saturate", true);
  ConvertOptions options;
  if (saturates) options.overflow = Overflow::saturate;
  if (!has_nans(call.result)) options.nan = NanMode::zero;
  if (call.has(2) && !is_float8(call.result)) {
    const ValueId offset = call.builder.convert(parameter_of(call, 2), precision_of(call));
    quotient = call.builder.binary(OpKind::add, quotient, offset, rule);
  }
  return call.builder.convert(quotient, call.result, options);
}

}  // namespace

Result<std::vector<ValueId>> define_quantize_linear(const CompositionCall& call) {
  if (Status status = check_types(call); !status) return status.error();
  if (Status status = check_granularity(call); !status) return status.error();
  const Result<BroadcastRule> rule = granularity_of(call, 1);
  if (!rule) return rule.error();
  const Result<BroadcastRule> zero_point_rule = granularity_of(call, call.has(2) ? 2 : 1);
  if (!zero_point_rule) return zero_point_rule.error();
  const ValueId quotient = quotient_of(call, *rule);
  if (is_float(call.result)) return std::vector{as_float(call, quotient, *zero_point_rule)};
  return std::vector{rounded_with_zero_point(call.builder, quotient, parameter_of(call, 2),
                                             *zero_point_rule, call.result)};
}

}  // namespace castor
