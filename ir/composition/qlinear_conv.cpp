// SPDX-License-Identifier: Apache-2.0
// ONNX QLinearConv-10: saturate(round_half_even(f32(sum + bias) * ((x_scale * w_scale) / y_scale))
// + y_zero_point), where sum is that of conv_integer.
#include <fmt/format.h>

#include "ir/composition/qlinear.hpp"
#include "ir/composition/steps.hpp"

namespace castor {

namespace {

constexpr size_t bias = 8;

/// Scales and zero points are of the tensor, the weights' scale or the bias of each output channel.
Status check_shapes(const CompositionCall& call) {
  for (const size_t operand : {first_scale, result_scale, result_zero_point}) {
    if (may_be_single(call.type_of(operand).shape)) continue;
    return call.mistake(fmt::format("operand {} is {}, expected a scalar or a vector of 1", operand,
                                    to_string(call.type_of(operand))));
  }
  if (call.rank_of(second_scale) > 1) {
    return call.mistake(fmt::format(
        "operand {} is {}, expected a scalar or a vector of one entry per output channel",
        second_scale, to_string(call.type_of(second_scale))));
  }
  if (!call.has(bias)) return {};
  const TensorType& type = call.type_of(bias);
  const Shape& weights = call.type_of(3).shape;
  const bool is_vector = type.element == ElementType::i32 && type.shape.size() == 1;
  const auto may_have_all = [&] {
    return weights.empty() || !weights[0].is_fixed() || !type.shape[0].is_fixed() ||
           type.shape[0].extent == weights[0].extent;
  };
  if (is_vector && may_have_all()) return {};
  return call.mistake(
      fmt::format("operand {}, the bias, is {}, expected i32 of one entry per output channel of {}",
                  bias, to_string(type), to_string(call.type_of(3))));
}

/// A vector along the channels; a scalar.
BroadcastRule along_channels(const CompositionCall& call, ValueId value) {
  const TensorType* type = call.builder.type_of(value);
  if (type == nullptr || type->shape.empty()) return {};
  const bool channels_last = call.identifier("layout") == "nhwc";
  const int64_t axis = channels_last ? call.rank_of(0) - 1 : 1;
  return {.mode = BroadcastMode::pdpd, .axis = axis};
}

ValueId accumulated(const CompositionCall& call) {
  FunctionBuilder& builder = call.builder;
  const std::span<const ValueId> given = call.operands;
  const ValueId sum = builder.append({.op = OpKind::conv_integer,
                                      .operands = {given[0], given[3], given[2], given[5]},
                                      .attributes = call.operation.attributes},
                                     {});
  if (!call.has(bias)) return sum;
  return builder.binary(OpKind::add, sum, given[bias], along_channels(call, given[bias]));
}

}  // namespace

Result<std::vector<ValueId>> define_qlinear_conv(const CompositionCall& call) {
  if (Status status = check_qlinear_types(call); !status) return status.error();
  if (Status status = check_shapes(call); !status) return status.error();
  FunctionBuilder& builder = call.builder;
  const ValueId sum = builder.convert(accumulated(call), ElementType::f32);
  const ValueId factor = scale_factor(builder, call.operands[first_scale],
                                      call.operands[second_scale], call.operands[result_scale]);
  const ValueId scaled = builder.binary(OpKind::mul, sum, factor, along_channels(call, factor));
  const ValueId zero_point = call.operands[result_zero_point];
  return std::vector{rounded_with_zero_point(builder, scaled, zero_point,
                                             along_channels(call, zero_point),
                                             call.element_of(result_zero_point))};
}

}  // namespace castor
