// SPDX-License-Identifier: Apache-2.0
// Type inference: from operand types and attributes to result types.
#pragma once

#include <span>
#include <vector>

#include "ir/builder.hpp"
#include "ir/function.hpp"

namespace castor {

/// The result types of one operation by its row's rule, `?` dimensions carried along. Also checks
/// what the rule needs (operand count, written type). `operand_types[i]` is null for an absent
/// operand.
Result<std::vector<TensorType>> infer_types(const Operation& operation,
                                            std::span<const TensorType* const> operand_types,
                                            const WrittenType& written);

/// Extents of every value of a function for given extents of its parameters.
struct BoundShapes {
  std::vector<Dims> values;  ///< by ValueId
};

/// Binds the `?` dimensions: parameter extents must have the declared rank, equal the fixed
/// dimensions, give equal named unknowns equal sizes, and every declared result type must hold.
/// The error names the parameter or result, the axis and both numbers. Element counts and byte
/// sizes that overflow are refused.
Result<BoundShapes> bind_shapes(const Function& function, std::span<const Dims> parameters);

}  // namespace castor
