// SPDX-License-Identifier: Apache-2.0
// Steps that fold tensors into accumulators.
#pragma once

#include "jit/plan/fold_space.hpp"
#include "runtime/bind/elementwise_step.hpp"

namespace castor::detail {

/// Tiles of rows that are folded in parts or as wholes; strided inputs' parts are copied first.
/// They span the innermost axis and the next one.
struct FoldTiles {
  std::vector<BoundTileCopy> copies;
  Dims extents;         ///< the whole space's, innermost first
  int64_t columns = 0;  ///< a tile has those of a part; the last part may have fewer
  int64_t rows = 0;
  /// By operand, then axis, in bytes; by operand, from a part to the next.
  std::vector<std::array<int64_t, max_rank>> steps;
  std::vector<int64_t> part_steps;

  int64_t parts() const { return (extents[0] + columns - 1) / columns; }
  int64_t row_tiles() const { return (extents[1] + rows - 1) / rows; }
  int64_t count() const {
    int64_t count = parts() * row_tiles();
    for (int axis = 2; axis < extents.rank(); ++axis) count *= extents[axis];
    return count;
  }
};

/// One pass of a reduction. Its operands are tensors that are read, then accumulators, all in
/// scratch.
struct FoldStep : LaneStep {
  /// An accumulator's elements before the pass.
  struct Start {
    size_t operand = 0;
    uint64_t initial = 0;
    int64_t elements = 0;
  };
  /// One axis in partitions.
  struct Cut {
    int axis = 0;
    int64_t partition = 0;  ///< indices of a partition; the last one may have fewer
    int64_t count = 1;
    /// By operand: what an index, and a partition, move its argument by, in bytes, or in elements
    /// where these are counted.
    std::vector<int64_t> strides;
    std::vector<int64_t> steps;
  };

  bool combines = false;  ///< partial results of an earlier pass; else it runs the nest's program
  jit::IterationSpace space;  ///< main's: all elements, or a tile
  std::vector<Start> starts;
  /// Calls do one partition each: of a row in parts, or of rows that are folded into rows.
  std::optional<Cut> partitions;
  /// An axis whose partitions tasks may do, where there are no `partitions`.
  std::optional<Cut> shared;
  std::optional<FoldTiles> tiles;  ///< then calls do a tile each, and there are no cuts
};

}  // namespace castor::detail
