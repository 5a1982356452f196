// SPDX-License-Identifier: Apache-2.0
// A step that does all nests of a function on one block of rows after the other.
#pragma once

#include <memory>
#include <vector>

#include "ir/shape/shape.hpp"
#include "runtime/bind/step_base.hpp"

namespace castor::detail {

struct BoundState;

/// The steps of a block are those of the function bound to tensors of `rows` rows, which begin
/// elsewhere for each block. Each task has a block's scratch. Operands are those of these steps.
struct RowBlockStep : StepBase {
  /// By row axis, how far the tensor's elements are apart; 0: all rows read the same ones.
  using Strides = Dims;

  std::shared_ptr<const BoundState> block;
  std::shared_ptr<const BoundState>
      remainder;     ///< the last block of an axis, if it is smaller; or null
  Dims extents;      ///< the row axes have these
  int64_t rows = 1;  ///< a block has these along the last row axis
  std::vector<Strides> input_strides;
  std::vector<Strides> output_strides;
  size_t views = 0;         ///< where a task's views of a block are stored in its scratch
  int64_t nanoseconds = 0;  ///< that one thread takes for all, as estimated

  /// Blocks along the last row axis.
  int64_t blocks_of_axis() const { return (extents[extents.rank() - 1] + rows - 1) / rows; }
  int64_t count() const {
    int64_t blocks = blocks_of_axis();
    for (int axis = 0; axis + 1 < extents.rank(); ++axis) blocks *= extents[axis];
    return blocks;
  }
};

}  // namespace castor::detail
