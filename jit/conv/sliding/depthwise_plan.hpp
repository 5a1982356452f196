// SPDX-License-Identifier: Apache-2.0
// How a depthwise convolution is done: column positions, blocks of rows, and the kernels' forms.
//
// Images are walked channel by channel, block of rows by block of rows, and in each from the first
// column position to the last. Where rows are short, the lanes hold several of them. Blocks at the
// upper and lower border have code of their own, which knows the rows that are outside. Rows of a
// filter that is dilated are in blocks of their own, which see an undilated one. Along outer
// spatial axes there is a pass for each position of the filter, which adds to the one before.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "jit/conv/problem.hpp"
#include "jit/conv/sliding/sliding_spec.hpp"

namespace castor::jit {

/// Blocks of rows that follow each other and have the same code.
struct DepthwiseBand {
  size_t block = 0;  ///< of the form
  int64_t row = 0;   ///< the first output row
  int64_t blocks = 0;
  size_t first_columns = 0;  ///< index of their column positions
  size_t columns = 0;
  size_t first_rows_loaded = 0;
};

/// The plan of one geometry for one target. Lanes are output columns.
struct DepthwisePlan : SlidingPlan {
  /// Outputs that a block of rows has at most, or a part of a single row; pieces of the output are
  /// not smaller.
  static constexpr int64_t max_block_outputs = 4096;
  static constexpr size_t max_bands = 64;
  /// How far below stores lines of the output are asked for: outputs of a block.
  static constexpr int max_prefetched = 16;

  int rows_of_vector = 1;  ///< output rows in the lanes of one vector
  int64_t phases = 1;      ///< output rows from one to the next that share input rows
  int64_t row_step = 0;    ///< bytes from an input row of a block to the next
  DepthwiseForm form;      ///< without window sums and adding
  std::vector<DepthwiseColumns> columns_of_bands;
  std::vector<uint64_t> rows_loaded;  ///< of guarded rows, where they are in the image in part
  std::vector<DepthwiseBand> bands;

  int64_t plane_outputs() const { return rows.output * columns.output; }
  int64_t plane_inputs() const { return rows.input * columns.input; }
  /// Output rows from an output of a block to the next.
  int64_t output_step() const { return rows_of_vector * phases; }
  /// Pieces of a plane begin at multiples of as many rows.
  int64_t unit_rows() const {
    return block_outputs > 1 ? block_outputs * output_step() : rows_of_vector;
  }
};

/// Output rows of a block, unless there is reason for others.
struct BlockRows {
  int64_t max = 32;
  int64_t step = 1;  ///< they are a multiple of it
};

/// Plans a convolution that has output elements and one channel in a group; nothing where the form
/// of kernels does not serve it.
std::optional<DepthwisePlan> plan_depthwise(const ConvolutionGeometry& geometry, bool x_is_signed,
                                            const Target& target, const BlockRows& rows = {});

/// Plans one for kernels that apply the epilogue: the first that `serves`, of plans whose blocks,
/// and so their code, get shorter and shorter; nothing where none does.
std::optional<DepthwisePlan> plan_depthwise_with(
    const TileEpilogue& epilogue, const ConvolutionGeometry& geometry, bool x_is_signed,
    const Target& target, const std::function<bool(const DepthwisePlan&)>& serves);

/// The plan in words.
std::string print(const DepthwisePlan& plan, const Target& target);

}  // namespace castor::jit
