// SPDX-License-Identifier: Apache-2.0
// Which rows of a function's tensors may be computed independently of all others, and how many of
// them at a time stay in the caches while one nest after the other reads them.
#pragma once

#include <optional>
#include <unordered_map>

#include "ir/verify/infer.hpp"
#include "runtime/bind/bound_state.hpp"

namespace castor::detail {

/// Rows are the indices of the outermost axes of all iteration spaces: the row axes. Along these a
/// tensor has an element, or more, for each row, or the same ones for all.
struct RowBlocks {
  /// By row axis, the tensor's axis that goes along it, or -1 where the tensor has none, or one of
  /// extent 1.
  using Axes = Dims;

  Dims extents;  ///< the row axes have these
  int64_t rows;  ///< indices of the last one that a block has; of the others it has one
  /// By value that nests read or write, and by value whose shape is an iteration space.
  std::unordered_map<ValueId, Axes> axes;

  /// A value's extents in a block of `rows` indices of the last row axis.
  Dims extents_in_block(ValueId value, const Dims& all, int64_t indices) const;
};

/// Bytes of the tensors of a block that stay in the L2 cache beside what else is read.
int64_t row_block_bytes(const jit::Target& target);

/// The blocks of a function whose tensors are bound; nothing where rows depend on each other, where
/// there is one nest only, and where all tensors together take hardly more than `block_bytes`.
std::optional<RowBlocks> plan_row_blocks(const BoundState& bound, const BoundShapes& shapes,
                                         int64_t block_bytes);

}  // namespace castor::detail
