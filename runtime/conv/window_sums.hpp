// SPDX-License-Identifier: Apache-2.0
// A block whose input has been packed, and its window sums.
#pragma once

#include "runtime/conv/convolution_blocks.hpp"

namespace castor::detail {

/// A block that a task works on, or the part of one whose input it has packed.
struct LaidOutBlock {
  const BlockPlace& place;  ///< of the whole block, from which all offsets count
  const BlockPlace& inner;  ///< what of it is packed
  const BlockTables& tables;
  const std::byte* source;
  std::byte* scratch;  ///< of the task, where this convolution's begins

  int64_t pixels() const { return place.block.rows * place.block.columns; }
};

/// Bytes of a block's source before a part of it.
inline int64_t source_bytes_before(const jit::DensePlan& plan, const BlockPlace& place,
                                   const BlockPlace& inner) {
  return (inner.row - place.row) * plan.source_row_step() +
         (inner.column - place.column) * plan.source_column_step();
}

/// A block's planes and the taps on them.
inline jit::DenseArguments taps_of_line(const jit::DensePlan& plan, const LaidOutBlock& block) {
  jit::DenseArguments arguments;
  arguments.source = block.source;
  arguments.k_steps = plan.k_steps.data();
  arguments.k_step_count = static_cast<int64_t>(plan.k_steps.size());
  arguments.k_groups = plan.looped_k_groups();
  arguments.k_group_step = plan.k_group_step();
  return arguments;
}

/// Where the window sums of a block are stored.
inline int32_t* window_sums(const BoundConvolution& convolution, const LaidOutBlock& block) {
  return reinterpret_cast<int32_t*>(block.scratch + convolution.parts.window_sums);
}

/// Dwords that summing windows of rows works with (ConvScratch::summing).
int64_t window_sum_dwords(const jit::DensePlan& plan);

/// Computes the window sums of some pixel tiles, as kernels read them.
void sum_block(const BoundConvolution& convolution, const LaidOutBlock& block,
               const PixelTiles& tiles);

}  // namespace castor::detail
