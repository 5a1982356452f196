// SPDX-License-Identifier: Apache-2.0
#include "ir/composition/steps.hpp"

namespace castor {

bool may_be_single(const Shape& shape) {
  return shape.empty() || (shape.size() == 1 && (!shape[0].is_fixed() || shape[0].extent == 1));
}

ValueId in_type(FunctionBuilder& builder, ValueId value, ElementType type) {
  const TensorType* from = builder.type_of(value);
  return from != nullptr && from->element == type ? value : builder.convert(value, type);
}

ValueId scalar_of(FunctionBuilder& builder, float number, ElementType type) {
  const ValueId scalar =
      builder.constant({ElementType::f32, {}}, std::as_bytes(std::span(&number, 1)));
  return in_type(builder, scalar, type);
}

ValueId rounded_with_zero_point(FunctionBuilder& builder, ValueId quotient, ValueId zero_point,
                                const BroadcastRule& rule, ElementType to) {
  constexpr double beyond_16_bits = 0x1p17;  // exceeds any result and any zero point together
  if (zero_point == no_value) {
    return builder.convert(quotient, to,
                           {.overflow = Overflow::saturate, .rounding = Rounding::nearest_even});
  }
  const ValueId rounded =
      builder.convert(quotient, ElementType::i32, {.rounding = Rounding::nearest_even});
  const ValueId clamped = builder.clamp(rounded, -beyond_16_bits, beyond_16_bits);
  const ValueId offset = builder.convert(zero_point, ElementType::i32);
  const ValueId sum = builder.binary(OpKind::add, clamped, offset, rule);
  return builder.convert(sum, to, {.overflow = Overflow::saturate});
}

}  // namespace castor
