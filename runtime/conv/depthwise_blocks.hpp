// SPDX-License-Identifier: Apache-2.0
// The blocks of rows that a piece of a depthwise convolution's output consists of.
#pragma once

#include <array>

#include "jit/conv/depthwise_plan.hpp"

namespace castor::detail {

/// Outputs of one plane: rows, and entries of column positions as each band counts them.
struct DepthwisePart {
  int64_t row = 0;
  int64_t row_end = 0;
  size_t columns = 0;
  size_t columns_end = 0;
  bool is_whole_row = true;  ///< then all entries of each band are meant
};

/// Blocks as kernels take them, and where they end: bytes from the image and from the part's first
/// row of outputs.
struct DepthwiseBlockList {
  std::array<jit::DepthwiseBlocks, jit::DepthwisePlan::max_bands> blocks;
  size_t count = 0;
  int64_t input_end = 0;
  int64_t output_end = 0;
};

/// How the kernels that take a list write.
struct DepthwiseWrites {
  int64_t output_bytes = 4;  ///< 1: outputs are counted, for an epilogue
  bool prefetches = false;
};

/// Lists the blocks of a part. Its rows begin and end where blocks do.
void list_blocks(const jit::DepthwisePlan& plan, const DepthwisePart& part,
                 const DepthwiseWrites& writes, DepthwiseBlockList& to);

}  // namespace castor::detail
