// SPDX-License-Identifier: Apache-2.0
// Which output rows take an input row, for kernels that walk down the rows of an image.
#pragma once

#include <algorithm>

namespace castor::jit {

/// Rows are counted from the first one that any output takes; output o takes those from o * stride
/// on.
struct RowWalk {
  int rows = 1;    ///< of the filter
  int stride = 1;  ///< rows from one output to the next
  int outputs = 0;

  /// The first output that takes an input row, and the last one; none where that one is before it.
  int first_output(int row) const {
    const int behind = row - rows;  // the last row of an output that is done
    return behind < 0 ? 0 : behind / stride + 1;
  }
  int last_output(int row) const { return std::min(row / stride, outputs - 1); }
  /// The output that begins, or is done, with an input row; -1: none.
  int begun_by(int row) const {
    return row % stride == 0 && row / stride < outputs ? row / stride : -1;
  }
  int done_by(int row) const {
    const int behind = row - rows + 1;
    return behind >= 0 && behind % stride == 0 ? behind / stride : -1;
  }
};

}  // namespace castor::jit
