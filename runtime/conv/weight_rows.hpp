// SPDX-License-Identifier: Apache-2.0
// Convolutions by rows of weights, ready to run: planned, with code.
#pragma once

#include <cstddef>
#include <memory>

#include "jit/conv/weight_rows_plan.hpp"
#include "runtime/conv/convolution_step.hpp"
#include "runtime/conv/dense.hpp"

namespace castor::detail {

/// Offsets, in bytes, of what a task keeps in its scratch.
struct WeightRowsScratch {
  size_t pixels = 0;       ///< a block's, packed
  size_t sums = 0;         ///< a block's pixels added up, where weights have zero points
  size_t start = 0;        ///< a group's first values by output channel, sixteen times each
  size_t zero_points = 0;  ///< those of a group's weights, by output channel
};

/// A convolution with a plan of rows of weights.
struct BoundWeightRows {
  jit::WeightRowsPlan plan;
  ConvolutionOperands operands;
  bool applies_epilogue = false;  ///< kernels do
  BlockTables rows;               ///< tiles of output channels, with code
  /// Constant weights: a cache line for each k step of a row, k step by k step of a group; then
  /// their sums by output channel. Else empty.
  PackedDwords weights;
  WeightRowsScratch offsets;
  size_t scratch_bytes = 0;

  bool has_zero_points() const { return operands.w_zero_point >= 0; }
};

/// Binds a convolution by its plan. Throws std::bad_alloc.
Result<std::shared_ptr<const BoundWeightRows>> bind_plan(const jit::WeightRowsPlan& plan,
                                                         const ConvolutionBinding& by);

/// Runs a convolution whose scratch begins at that offset. Allocates nothing.
void run_plan(const BoundWeightRows& bound, size_t scratch, const ConvolutionStep& step,
              const CallMemory& memory);

/// Rows of bytes, of which each four are packed to k groups.
struct ChannelRows {
  const std::byte* first = nullptr;
  int64_t step = 0;   ///< bytes from one row to the next
  int64_t count = 0;  ///< a multiple of four
};

/// Where k groups of pixels go, tile of columns by tile; in a tile, a k group's vectors are
/// adjacent.
struct PackedColumns {
  std::byte* first = nullptr;
  int64_t vectors = 1;     ///< that a tile has, each with sixteen pixels
  int64_t tile_bytes = 0;  ///< from one tile to the next
};

/// What pixels' channels add up to; nothing where `to` is null.
struct PixelSums {
  int32_t* to = nullptr;  ///< whole vectors
  bool is_signed = false;
};

/// Packs the first `pixels` bytes of the rows, at most those of a block; those that fill the last
/// sixteen are zeros. Fast with AVX-512.
void interleave_pixels(const ChannelRows& from, int64_t pixels, const PackedColumns& to,
                       const PixelSums& sums = {});

}  // namespace castor::detail
