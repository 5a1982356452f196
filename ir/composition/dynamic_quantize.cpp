// SPDX-License-Identifier: Apache-2.0
// Quantization whose scale follows from the tensor, or from each row of it: ONNX
// DynamicQuantizeLinear-11, in exactly its order of operations, for signed integers too, and its
// symmetric sibling.
#include <fmt/format.h>

#include <bit>
#include <limits>

#include "ir/composition/definition.hpp"
#include "ir/composition/steps.hpp"
#include "ir/numerics/scalar.hpp"

namespace castor {

namespace {

/// All axes, and then no dimensions; or those that are written, which stay with extents of 1.
Result<ReductionOptions> range_of(const CompositionCall& call) {
  const AttributeValue* axes = find(call.operation.attributes, "axes");
  if (axes == nullptr) return ReductionOptions();
  Operation reduction{.op = OpKind::reduce_max, .attributes = {{"axes", *axes}}};
  Result<ReductionOptions> read = reduction_options(reduction);
  if (!read) return call.mistake(fmt::format("axes = {}, expected integers", to_string(*axes)));
  read->keep_dims = true;
  return read;
}

Status check_operand(const CompositionCall& call) {
  if (computes(call.element_of(0))) return {};
  return call.mistake(
      fmt::format("operand 0 is {}, expected f16, bf16, f32 or f64", name_of(call.element_of(0))));
}

/// The result's largest number is one of the operand's type: 16-bit floats hold none of 16 bits.
Status check_width(const CompositionCall& call) {
  const ElementType x = call.element_of(0);
  if (bits_of(call.result) <= 8 || bits_of(x) > 16) return {};
  return call.mistake(fmt::format("the result is {}, expected at most 8 bits for {}",
                                  name_of(call.result), name_of(x)));
}

/// The largest number of a quantized type.
float largest_number(ElementType type) {
  if (is_integer(type)) return static_cast<float>(integer_max(type));
  constexpr uint64_t infinity = 0x7f800000;  // in f32
  const uint64_t code =
      numerics::convert(infinity, ElementType::f32, type, {.overflow = Overflow::saturate});
  const uint64_t bits = numerics::convert(code, type, ElementType::f32, {});
  return std::bit_cast<float>(static_cast<uint32_t>(bits));
}

/// One where a row's number is equal to another, else the number: for what would make NaN of zeros.
ValueId one_instead_of(FunctionBuilder& builder, float avoided, ValueId number, ElementType type) {
  const ValueId is_avoided =
      builder.binary(OpKind::equal, number, scalar_of(builder, avoided, type));
  return builder.select(is_avoided, scalar_of(builder, 1, type), number);
}

ValueId divided(const CompositionCall& call, ValueId scale, bool keeps_nan) {
  FunctionBuilder& builder = call.builder;
  const ElementType type = call.element_of(0);
  const ValueId divisor = keeps_nan ? one_instead_of(builder, 0, scale, type) : scale;
  return builder.binary(OpKind::div, call.operands[0], divisor);
}

/// The reciprocal is in f32 for f16, which has none of the scales of ordinary rows.
ValueId times_reciprocal(const CompositionCall& call, ValueId scale, bool keeps_nan) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  FunctionBuilder& builder = call.builder;
  const ElementType given = call.element_of(0);
  const ElementType type = given == ElementType::f16 ? ElementType::f32 : given;
  const ValueId reciprocal =
      builder.binary(OpKind::div, scalar_of(builder, 1, type), in_type(builder, scale, type));
  const ValueId factor =
      keeps_nan ? one_instead_of(builder, infinity, reciprocal, type) : reciprocal;
  return builder.binary(OpKind::mul, in_type(builder, call.operands[0], type), factor);
}

/// x over its scale, as `scaling` says; zeros whose scale is 0 are NaN unless `keeps_nan`.
ValueId quotient_of(const CompositionCall& call, ValueId scale, bool keeps_nan) {
  const bool divides = call.identifier("scaling") != "reciprocal";
  return divides ? divided(call, scale, keeps_nan) : times_reciprocal(call, scale, keeps_nan);
}

}  // namespace

Result<std::vector<ValueId>> define_dynamic_quantize_linear(const CompositionCall& call) {
  if (Status status = check_operand(call); !status) return status.error();
  if (!is_integer(call.result) || bits_of(call.result) > 16) {
    return call.mistake(fmt::format("the result is {}, expected an integer of at most 16 bits",
                                    name_of(call.result)));
  }
  if (Status status = check_width(call); !status) return status.error();
  FunctionBuilder& builder = call.builder;
  const ElementType type = call.element_of(0);
  const ValueId x = call.operands[0];
  const Result<ReductionOptions> range = range_of(call);
  if (!range) return range.error();
  const float largest = largest_number(call.result);
  const auto least = static_cast<float>(integer_min(call.result));
  const ValueId zero = scalar_of(builder, 0, type);
  const ValueId steps = scalar_of(builder, largest - least, type);
  const ValueId lowest = builder.reduce(OpKind::reduce_min, x, *range);
  const ValueId highest = builder.reduce(OpKind::reduce_max, x, *range);
  const ValueId lo = builder.binary(OpKind::min, lowest, zero);
  const ValueId hi = builder.binary(OpKind::max, highest, zero);
  const ValueId scale = builder.binary(OpKind::div, builder.binary(OpKind::sub, hi, lo), steps);
  const ValueId scaled = builder.binary(OpKind::div, lo, scale);
  const ValueId initial = builder.binary(OpKind::sub, scalar_of(builder, least, type), scaled);
  const ValueId clipped = builder.clamp(initial, least, largest);
  const ValueId rounded = builder.unary(OpKind::round_even, clipped);
  const ValueId zero_point = builder.convert(rounded, call.result);
  const ValueId quotient = quotient_of(call, scale, false);
  const ValueId y = rounded_with_zero_point(builder, quotient, zero_point, {}, call.result);
  return std::vector{y, scale, zero_point};
}

Result<std::vector<ValueId>> define_dynamic_quantize_symmetric(const CompositionCall& call) {
  if (Status status = check_operand(call); !status) return status.error();
  const bool is_integer_result = is_signed_integer(call.result) && bits_of(call.result) <= 16;
  if (!is_integer_result && !(is_float(call.result) && bits_of(call.result) <= 8)) {
    return call.mistake(
        fmt::format("the result is {}, expected a signed integer of at most 16 "
                    "bits or a float of at most 8",
                    name_of(call.result)));
  }
  if (Status status = check_width(call); !status) return status.error();
  const Result<ReductionOptions> range = range_of(call);
  if (!range) return range.error();
  FunctionBuilder& builder = call.builder;
  const ElementType type = call.element_of(0);
  const ValueId x = call.operands[0];
  const ValueId magnitude = builder.reduce(OpKind::reduce_max_abs, x, *range);
  const ValueId most = scalar_of(builder, largest_number(call.result), type);
  const ValueId scale = builder.binary(OpKind::div, magnitude, most);
  // 0 / 0 and 0 times infinity would be NaN, which integers do not have.
  const bool keeps_nan = !is_integer_result && has_nans(call.result);
  const ValueId quotient = quotient_of(call, scale, keeps_nan);
  if (is_integer_result) {
    return std::vector{rounded_with_zero_point(builder, quotient, no_value, {}, call.result),
                       scale};
  }
  ConvertOptions options = {.overflow = Overflow::saturate};
  if (!has_nans(call.result)) options.nan = NanMode::zero;
  return std::vector{builder.convert(quotient, call.result, options), scale};
}

}  // namespace castor
