// SPDX-License-Identifier: Apache-2.0
// Lowering of elementwise operations other than conversions. Semantics: ir/README.md,
// Arithmetic.
#pragma once

#include <span>

#include "ir/function.hpp"
#include "jit/lower/lane_tensor.hpp"

namespace castor::jit {

/// The lanes of one operation on `operands`, all of element type `computed_in` (`select`: but the
/// condition, which is boolean). The result has that type, or is boolean. Under excess precision
/// `computed_in` is f32 where the operation's own type is narrower (ir/types/excess_precision.hpp).
LaneTensor lower_elementwise(LaneBuilder& builder, const Operation& operation,
                             std::span<LaneTensor* const> operands, ElementType computed_in);

/// A division of floats of whose result only small integers are made (RoundedValues::is_small).
LaneTensor lower_small_quotient(LaneBuilder& builder, const Operation& operation,
                                std::span<LaneTensor* const> operands, ElementType computed_in,
                                QuotientFacts facts);

/// A division of f32 whose result is only encoded (RoundedValues::is_encoded).
LaneTensor lower_encoded_quotient(LaneBuilder& builder, const Operation& operation,
                                  std::span<LaneTensor* const> operands);

/// A product of f32 of whose result only small integers are made, bounded as
/// QuotientFacts::is_bounded says where the second factor is neither small nor large: a quotient by
/// 1, which is no division where the code can tell so once a row (with_reciprocals).
LaneTensor lower_bounded_product(LaneBuilder& builder, const Operation& operation,
                                 std::span<LaneTensor* const> operands);

}  // namespace castor::jit
