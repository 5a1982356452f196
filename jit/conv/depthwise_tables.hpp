// SPDX-License-Identifier: Apache-2.0
// The column positions and the blocks of rows of a depthwise plan in NCHW.
#pragma once

#include "jit/conv/depthwise_plan.hpp"

namespace castor::jit {

/// Makes the tables of a plan whose form, but for blocks, lanes and steps are known.
class DepthwiseTables {
 public:
  DepthwiseTables(DepthwisePlan& plan, const Target& target) : plan_(plan), target_(target) {}

  /// Adds the column positions of vectors of so many output rows, from left to right: those of the
  /// blocks that follow. False where a shuffle cannot make one of them, or where there are too
  /// many.
  bool add_columns(int64_t rows_of_vector);
  /// Adds so many outputs from a row on, in blocks. False where there are too many bands.
  bool add_blocks(int64_t row, int64_t outputs, int64_t rows_of_vector);

 private:
  void add_block(SlidingBlock block, int64_t row, int64_t rows_of_vector);
  size_t number_of(const SlidingBlock& block);
  bool is_inside(int64_t row) const { return row >= 0 && row < plan_.rows.input; }
  std::vector<uint64_t> rows_loaded(const SlidingBlock& block, int64_t row,
                                    int64_t rows_of_vector) const;
  uint64_t bytes_inside(int64_t row, int64_t rows_of_vector) const;
  std::vector<bool> guarded_rows(int64_t row, const std::vector<uint64_t>& loaded) const;

  DepthwisePlan& plan_;
  const Target& target_;
  size_t first_columns_ = 0;
};

}  // namespace castor::jit
