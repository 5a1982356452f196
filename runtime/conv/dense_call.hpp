// SPDX-License-Identifier: Apache-2.0
// What a call of a dense convolution makes of its weights before kernels run: packed weights, and
// the values that accumulators begin with.
#pragma once

#include "runtime/conv/dense.hpp"

namespace castor::detail {

/// A part of a scratch.
inline int32_t* int32_at(std::byte* scratch, size_t offset) {
  return reinterpret_cast<int32_t*>(scratch + offset);
}

/// Operands of a call that do not change from block to block.
struct WeightOperands {
  const std::byte* w = nullptr;
  const std::byte* w_zero_points = nullptr;  ///< null where there are none
  int32_t x_zero_point = 0;                  ///< as x has it
};

/// The weights of a call. After `prepare` several tasks may share it, each with a scratch of its
/// own; `scratch` is where the convolution's begins.
class CallWeights {
 public:
  CallWeights(const BoundDense& convolution, const WeightOperands& operands, std::byte* scratch)
      : convolution_(convolution), operands_(operands), scratch_(scratch) {}

  /// What all tasks read. Before any of them.
  void prepare();
  /// What a task needs of a group's tile, before its kernel runs.
  void prepare_tile(int64_t group, int64_t tile, std::byte* scratch) const;

  /// Gives a kernel what it reads of the channels of a tile.
  void set_arguments(int64_t group, int64_t tile, std::byte* scratch,
                     jit::DenseArguments& arguments) const;

  /// The value of x in the padding as kernels have it: its zero point.
  int32_t padding() const;
  /// The zero point of all weights, where these have one (WindowSums::products).
  int32_t zero_point() const { return zero_points()[0]; }

 private:
  int32_t* zero_points() const { return int32_at(scratch_, convolution_.parts.zero_points); }
  int64_t first_channel(int64_t group, int64_t tile) const {
    const jit::DensePlan& plan = convolution_.plan;
    return group * plan.geometry.group_out_channels() + plan.first_channel(tile);
  }
  void set_starts(int64_t first, std::span<const int32_t> sums, int32_t* starts) const;

  const BoundDense& convolution_;
  const WeightOperands operands_;
  std::byte* scratch_;  ///< of the call
  DenseWeights<const int32_t> packed_;
};

/// A block that a task works on, or the part of one whose input it has packed.
struct PackedBlock {
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
inline jit::DenseArguments k_steps_of(const jit::DensePlan& plan, const PackedBlock& block) {
  jit::DenseArguments arguments;
  arguments.source = block.source;
  arguments.k_steps = plan.k_steps.data();
  arguments.k_step_count = static_cast<int64_t>(plan.k_steps.size());
  arguments.k_groups = plan.looped_k_groups();
  if (plan.tile.loops_k_groups) arguments.k_group_step = plan.k_group_step();
  return arguments;
}

/// A part of the scratch of the task that works on a block.
inline int32_t* int32_at(const BoundDense& convolution, const PackedBlock& block,
                         size_t DenseScratch::*offset) {
  return int32_at(block.scratch, convolution.parts.*offset);
}

/// Where the window sums of a block are stored.
inline int32_t* window_sums(const BoundDense& convolution, const PackedBlock& block) {
  return int32_at(convolution, block, &DenseScratch::window_sums);
}

/// An address from which i32 are counted that need not begin there.
inline int32_t* counted_back(int32_t* from, int64_t count) {
  return reinterpret_cast<int32_t*>(reinterpret_cast<intptr_t>(from) - 4 * count);
}

}  // namespace castor::detail
