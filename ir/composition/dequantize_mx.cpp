// SPDX-License-Identifier: Apache-2.0
// Microscaling formats as floats: each element times the scale of its block.
#include <fmt/format.h>

#include "ir/composition/definition.hpp"
#include "ir/composition/mx_formats.hpp"
#include "ir/composition/steps.hpp"

namespace castor {

namespace {

constexpr size_t tensor_scale = 2;

Status check_types(const CompositionCall& call, const MxFormat& format) {
  const auto refused = [&](size_t operand, std::string_view expected) {
    return call.mistake(fmt::format("operand {} is {}, expected {} for {}", operand,
                                    to_string(call.type_of(operand)), expected, format.name));
  };
  if (call.element_of(0) != format.element) return refused(0, name_of(format.element));
  if (call.element_of(1) != format.scale) return refused(1, name_of(format.scale));
  if (call.rank_of(0) == 0 || call.rank_of(1) != call.rank_of(0)) {
    return call.mistake(fmt::format("scales {} for {}, expected the same rank, at least 1",
                                    to_string(call.type_of(1)), to_string(call.type_of(0))));
  }
  if (!computes(call.result)) {
    return call.mistake(
        fmt::format("the result is {}, expected f16, bf16, f32 or f64", name_of(call.result)));
  }
  if (!call.has(tensor_scale)) return {};
  if (!format.has_tensor_scale) return refused(tensor_scale, "none");
  const bool is_one = may_be_single(call.type_of(tensor_scale).shape);
  if (is_one && call.element_of(tensor_scale) == ElementType::f32) return {};
  return refused(tensor_scale, "an f32 scalar");
}

Result<BroadcastRule> blocks_of(const CompositionCall& call, const MxFormat& format) {
  const int rank = call.rank_of(0);
  const int64_t axis = call.integer("axis", -1);
  const int64_t block = call.integer("block", format.block);
  if (axis < -rank || axis >= rank) {
    return call.mistake(fmt::format("axis = {}, expected {} to {} for {}", axis, -rank, rank - 1,
                                    to_string(call.type_of(0))));
  }
  return BroadcastRule{
      .mode = BroadcastMode::blocked, .axes = {axis < 0 ? axis + rank : axis}, .block = {block}};
}

/// The numbers of the codes.
ValueId elements(const CompositionCall& call, const MxFormat& format, ElementType type) {
  const ValueId numbers = in_type(call.builder, call.operands[0], type);
  if (format.fraction_bits == 0) return numbers;
  const float unit = 1.0f / static_cast<float>(1 << format.fraction_bits);
  return call.builder.binary(OpKind::mul, numbers, scalar_of(call.builder, unit, type));
}

ValueId scales(const CompositionCall& call, ElementType type) {
  const ValueId own = in_type(call.builder, call.operands[1], type);
  if (!call.has(tensor_scale)) return own;
  const ValueId common = in_type(call.builder, call.operands[tensor_scale], type);
  return call.builder.binary(OpKind::mul, own, common);
}

}  // namespace

/// In f32 the product of an MX element and its scale is exact or overflows, so that it is rounded
/// once, to the result.
Result<std::vector<ValueId>> define_dequantize_mx(const CompositionCall& call) {
  const Result<const MxFormat*> named = mx_format_of(call);
  if (!named) return named.error();
  const MxFormat& format = **named;
  if (Status status = check_types(call, format); !status) return status.error();
  const Result<BroadcastRule> blocks = blocks_of(call, format);
  if (!blocks) return blocks.error();
  const ElementType type = call.result == ElementType::f64 ? ElementType::f64 : ElementType::f32;
  const ValueId numbers = elements(call, format, type);
  const ValueId factors = scales(call, type);
  const ValueId product = call.builder.binary(OpKind::mul, numbers, factors, *blocks);
  return std::vector{in_type(call.builder, product, call.result)};
}

}  // namespace castor
