// SPDX-License-Identifier: Apache-2.0
// A block whose input has been packed, and its window sums.
#pragma once

#include "runtime/conv/dense.hpp"

namespace castor::detail {

/// A block that a task works on, or the part of one whose input it has packed.
struct LaidOutBlock {
  const BlockPlace& place;  ///< of the whole block, from which all offsets count
  const BlockPlace& inner;  ///< what of it is packed
  const BlockTables& tables;
  const std::byte* source;
  std::byte* scratch;  ///< of the task, where this convolution's begins

  int64_t pixels() const { return place.block.pixels(); }
};

/// Bytes of a block's source before a part of it.
inline int64_t source_bytes_before(const jit::DensePlan& plan, const BlockPlace& place,
                                   const BlockPlace& inner) {
  return (inner.row - place.row) * plan.source_row_step() +
         (inner.column - place.column) * plan.source_column_step();
}

/// A block's source and the k steps on it.
inline jit::DenseArguments k_steps_of(const jit::DensePlan& plan, const LaidOutBlock& block) {
  jit::DenseArguments arguments;
  arguments.source = block.source;
  arguments.k_steps = plan.k_steps.data();
  arguments.k_step_count = static_cast<int64_t>(plan.k_steps.size());
  arguments.k_groups = plan.looped_k_groups();
  if (plan.tile.loops_k_groups) arguments.k_group_step = plan.k_group_step();
  return arguments;
}

/// Where the window sums of a block are stored.
inline int32_t* window_sums(const BoundDense& convolution, const LaidOutBlock& block) {
  return reinterpret_cast<int32_t*>(block.scratch + convolution.parts.window_sums);
}

/// Dwords that summing windows of rows works with (DenseScratch::summing).
int64_t window_sum_dwords(const jit::DensePlan& plan);

/// Computes the window sums of some pixel tiles, as kernels read them.
void sum_block(const BoundDense& convolution, const LaidOutBlock& block, const PixelTiles& tiles);

}  // namespace castor::detail
