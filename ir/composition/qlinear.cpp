// SPDX-License-Identifier: Apache-2.0
#include "ir/composition/qlinear.hpp"

#include <fmt/format.h>

#include "ir/composition/steps.hpp"

namespace castor {

Status check_qlinear_types(const CompositionCall& call) {
  for (const size_t scale : {first_scale, second_scale, result_scale}) {
    const ElementType found = call.element_of(scale);
    if (computes(found) && bits_of(found) <= 32) continue;
    return call.mistake(fmt::format("operand {}, a scale, is {}, expected f16, bf16 or f32", scale,
                                    name_of(found)));
  }
  const ElementType zero_point = call.element_of(result_zero_point);
  if (zero_point == ElementType::i8 || zero_point == ElementType::u8) return {};
  return call.mistake(fmt::format("operand {}, the result's zero point, is {}, expected i8 or u8",
                                  result_zero_point, name_of(zero_point)));
}

ValueId scale_factor(FunctionBuilder& builder, ValueId first, ValueId second, ValueId result) {
  const ValueId a = in_type(builder, first, ElementType::f32);
  const ValueId b = in_type(builder, second, ElementType::f32);
  const ValueId y = in_type(builder, result, ElementType::f32);
  return builder.binary(OpKind::div, builder.binary(OpKind::mul, a, b), y);
}

}  // namespace castor
