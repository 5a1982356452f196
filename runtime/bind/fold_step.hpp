// SPDX-License-Identifier: Apache-2.0
// Steps that fold tensors into accumulators.
#pragma once

#include "jit/plan/fold_space.hpp"
#include "runtime/bind/elementwise_step.hpp"

namespace castor::detail {

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
  jit::IterationSpace space;
  std::vector<Start> starts;
  /// Calls do one partition each: of a row in parts, or of rows that are folded into rows.
  std::optional<Cut> partitions;
  /// An axis whose partitions tasks may do, where there are no `partitions`.
  std::optional<Cut> shared;
};

}  // namespace castor::detail
