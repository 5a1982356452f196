// SPDX-License-Identifier: Apache-2.0
// Which operands of a nest are copied tile by tile.
#pragma once

#include <vector>

#include "jit/plan/tiles.hpp"

namespace castor::jit {

/// A tile costs some hundred cycles beside its elements.
inline constexpr int64_t min_tile_elements = 256;

/// Whether the operand's elements, which are strided along the innermost axis, are consecutive
/// along that one.
bool is_transposed(const IterationSpace& space, size_t operand, int axis);

/// Operands that are strided along the innermost axis; tiles span `axis` as well.
std::vector<CopiedOperand> strided_operands(const Nest& nest, const IterationSpace& space,
                                            int axis);

/// Operands of short rows, for tiles of the two innermost axes: with these copied, all rows follow
/// one another, and the code does a tile as one row. Empty where that is impossible or would not
/// pay.
std::vector<CopiedOperand> operands_of_short_rows(const Nest& nest, const IterationSpace& space,
                                                  const Target& target);

}  // namespace castor::jit
