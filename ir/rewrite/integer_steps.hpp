// SPDX-License-Identifier: Apache-2.0
// Integer steps of quantization that change nothing, or that a clamp does.
#pragma once

#include "ir/rewrite/definitions.hpp"

namespace castor::detail {

/// The operand that an addition or subtraction of integers hands on, the other being a constant of
/// zeros and no larger; else `no_value`.
ValueId operand_beside_zero(const Function& function, const Definitions& definitions,
                            const Operation& operation);

/// The operand of a clamp that a saturating conversion of it to an integer makes needless: every
/// bound is beyond the result's type. Else `no_value`.
ValueId operand_of_needless_clamp(const Function& function, const Definitions& definitions,
                                  const Operation& conversion);

/// `sub(convert(convert(add(clamp(x), z)) : T) : i32, z)` as the clamp of x that it is, where T is
/// an integer of at most 16 bits to which the sum is saturated, and z one number: quantized numbers
/// that are dequantized at once. None where the operation is not such a subtraction.
std::optional<Operation> clamp_of_offsets(const Function& function, const Definitions& definitions,
                                          const Operation& subtraction);

}  // namespace castor::detail
