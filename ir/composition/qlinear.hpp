// SPDX-License-Identifier: Apache-2.0
// What quantized convolutions and matrix products have in common: operands 1, 4 and 6 are scales of
// operand 0, operand 3 and the result, operands 2, 5 and 7 their zero points.
#pragma once

#include "ir/composition/definition.hpp"

namespace castor {

inline constexpr size_t first_scale = 1;
inline constexpr size_t second_scale = 4;
inline constexpr size_t result_scale = 6;
inline constexpr size_t result_zero_point = 7;

/// Whether scales are floats that compute, and the result's zero point is i8 or u8.
Status check_qlinear_types(const CompositionCall& call);

/// (first * second) / result: the scales in f32, each step rounded to f32.
ValueId scale_factor(FunctionBuilder& builder, ValueId first, ValueId second, ValueId result);

}  // namespace castor
