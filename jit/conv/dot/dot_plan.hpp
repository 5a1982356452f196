// SPDX-License-Identifier: Apache-2.0
// Plans of pointwise convolutions as dot products of rows that are both stored along K
// (jit/conv/dot/dot_spec.hpp).
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "ir/support/integer_math.hpp"
#include "jit/conv/dot/dot_spec.hpp"
#include "jit/conv/problem.hpp"

namespace castor::jit {

/// Pixels are divided into blocks of whole tiles, which stay in L2 while all weights pass by; the
/// last tile of all may begin among the pixels of the one before.
struct DotPlan {
  ConvolutionGeometry geometry;
  DotTile tile;  ///< by products of bytes as if weights had to be added up
  int step = 0;  ///< weights of an output channel that a step takes
  int64_t pixels = 0;
  int64_t blocks = 1;  ///< the last one has several tiles, where there are several

  int64_t depth() const { return geometry.group_channels(); }
  int64_t whole_steps() const { return depth() / step; }
  /// Weights that only the step of a tail has.
  int64_t remainder() const { return depth() % step; }
  int64_t steps() const { return whole_steps() + (tile.has_tail ? 1 : 0); }
  int64_t tiles() const { return ceil_div(pixels, tile.pixels); }
  int64_t block_tiles() const { return ceil_div(tiles(), blocks); }  ///< at most
  /// The first tile of a block; after the last block, the number of tiles.
  int64_t first_tile(int64_t block) const { return tiles() * block / blocks; }
  /// The first pixel of a block; after the last block, the number of pixels.
  int64_t first_pixel(int64_t block) const {
    return std::min(first_tile(block) * tile.pixels, pixels);
  }
  /// Bytes of a vector of packed pixels, and of all vectors of a pixel.
  int64_t vector_bytes() const { return step * bytes_of_channel(tile.engine); }
  int64_t pixel_bytes() const { return steps() * vector_bytes(); }
  /// Panels of a group's weights: four output channels each, but for the last one, which has the
  /// remainder as well.
  int64_t panels() const { return geometry.group_out_channels() / DotTile::channels; }
  /// The first output channel of a panel; after the last panel, the number of them.
  int64_t first_channel(int64_t panel) const {
    return panel == panels() ? geometry.group_out_channels() : panel * DotTile::channels;
  }
};

/// The plan of a convolution that has output elements; nothing where there is none: pixels are not
/// rows of adjacent channels, each used by itself, there are less than a step of weights or than
/// four output channels in a group, or weights are constants and multiplied as bytes, which are
/// packed once.
std::optional<DotPlan> plan_dot(const ConvolutionProblem& problem, const Target& target);

/// The plan in words.
std::string print(const DotPlan& plan);

}  // namespace castor::jit
