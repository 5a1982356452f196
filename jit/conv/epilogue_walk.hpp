// SPDX-License-Identifier: Apache-2.0
// How an elementwise nest takes a convolution's result slab by slab: neighbouring channels by
// neighbouring pixels of one image. Rows of a slab are what lies side by side: pixels of a
// channel, or channels of a pixel; the code walks them as a space of two axes.
#pragma once

#include <optional>

#include "ir/shape/convolution.hpp"
#include "jit/plan/nest.hpp"

namespace castor::jit {

/// Steps of an operand over the result, in elements; 0 where it repeats them.
struct PieceSteps {
  int64_t image = 0;
  int64_t row = 0;      ///< from row to row
  int64_t element = 0;  ///< within a row: 0 or 1
};

struct EpilogueWalk {
  bool rows_of_channels = false;  ///< else of pixels
  std::vector<PieceSteps> operands;
  /// Of one element; each call has the extents of its slab.
  IterationSpace space;
  /// Rows of that length are one long row for all operands; -1: of no length.
  int64_t joining_row = -1;
};

/// The walk of an epilogue over a result of these extents, of which none is 0; `strides[k]` are
/// operand k's over them, and those of its source count for nothing. Nothing
/// where an operand does not lie side by side or repeated along rows, where no step leads from row
/// to row, or where rows of sub-byte elements end inside bytes.
std::optional<EpilogueWalk> epilogue_walk(const Nest& nest, const Dims& extents,
                                          std::span<const Dims> strides);

}  // namespace castor::jit
