// SPDX-License-Identifier: Apache-2.0
// Plans of pointwise convolutions by tile registers (AMX) in which the roles of weights and pixels
// are exchanged (jit/conv/README.md, Rows of weights).
//
// In NCHW a register tile's rows are output channels, and its columns are pixels: results are in
// the order of the output, and nothing is transposed. Rows of weights are stored along K, as pixels
// of NHWC are; pixels of a block become k groups of a column each, as weights do elsewhere. The
// kernel is the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jit/conv/dense_plan.hpp"

namespace castor::jit {

struct WeightRowsPlan {
  static constexpr int64_t max_block_pixels = 768;  ///< that are packed at once

  ConvolutionGeometry geometry;
  /// The product of a block: an NHWC convolution whose pixels are the output channels of a group,
  /// and whose output channels are the block's pixels.
  DensePlan product;
  int64_t pixels = 0;  ///< that an image has

  int64_t depth() const { return geometry.group_channels(); }
  /// Pixels of a block; the last one may have fewer.
  int64_t block_pixels() const { return product.geometry.out_channels; }
  int64_t blocks() const { return ceil_div(pixels, block_pixels()); }
  int64_t pixels_of(int64_t block) const {
    return std::min(block_pixels(), pixels - block * block_pixels());
  }
  /// Pixels of a tile of columns, and those that the image's last one has.
  int tile_pixels() const { return product.tile.channels; }
  int last_tile_pixels() const {
    const auto remainder = static_cast<int>(pixels % tile_pixels());
    return remainder == 0 ? tile_pixels() : remainder;
  }
  /// Bytes of a row of weights that a k step takes, and from there to the next row's.
  int64_t step_bytes() const { return product.tile.step_bytes; }
  int64_t steps() const { return std::ssize(product.k_steps); }
  int64_t row_step() const { return product.source_column_step(); }
  /// Bytes of a group's weights as kernels read them.
  int64_t weight_bytes() const;
  /// Bytes of the packed pixels of a tile of columns.
  int64_t packed_tile_bytes() const { return DenseTile::tile_rows * vectors() * depth(); }
  int64_t vectors() const { return product.tile.vectors_of(DenseTile::tile_rows); }
};

/// The plan of a convolution that has output elements; nothing where there is none: the target has
/// no tile registers, the layout is NHWC, an axis is not pointwise, an image has fewer pixels
/// than a vector, or channels make no k steps of equal size.
std::optional<WeightRowsPlan> plan_weight_rows(const ConvolutionProblem& problem,
                                               const Target& target);

/// The plan with each other register tile that it may have, as for plans of other kinds.
std::vector<WeightRowsPlan> with_other_tiles(const WeightRowsPlan& plan, const Target& target);

/// The plan in words.
std::string print(const WeightRowsPlan& plan);

}  // namespace castor::jit
