// SPDX-License-Identifier: Apache-2.0
// How an integer convolution is done: the planes that the input is laid out in, the lines of output
// pixels that kernels walk, and the tile.
//
// The input of one block of output rows becomes planes of dwords. A plane holds one position along
// the outer spatial axes of the filter, one dword's worth of input channels, and every stride-th
// row and column from one phase on, padding included. So a tap of the filter is one offset for all
// pixels: rows of the block lie at one pitch, and output pixels are lanes of one long line, which
// at the end of each row has gaps (pitch - width lanes) that are computed and not stored.
#pragma once

#include <string>
#include <vector>

#include "ir/convolution.hpp"
#include "jit/conv/conv_kernel.hpp"

namespace castor::jit {

/// The phases of one axis: offsets of taps modulo the stride, as far as taps have them; or, where
/// taps are far apart, the offset of each tap.
struct ConvPhases {
  std::vector<int64_t> phases;  ///< ascending
  std::vector<int64_t> of_tap;  ///< index into `phases`
  std::vector<int64_t> shifts;  ///< by tap: positions in the plane from the pixel's own
  int64_t most_shift = 0;
};

/// Output pixels that are done at a time: rows, or a part of one.
struct ConvBlock {
  int64_t rows = 0;
  int64_t columns = 0;
};

/// The plan of one geometry for one target; `group_channels` and `group_out_channels` may be 0.
struct ConvPlan {
  ConvolutionGeometry geometry;
  ConvolutionAxis rows;       ///< the last but one spatial axis; one row where there is none
  ConvolutionAxis columns;    ///< the last
  int64_t slices = 1;         ///< kernel positions along all outer spatial axes
  int64_t outer_outputs = 1;  ///< output positions along them
  DotProduct dot = DotProduct::bytes;
  ConvTile tile;              ///< of all channel tiles but the last, without window sums
  int64_t channel_tiles = 0;  ///< of one group
  int last_channels = 0;      ///< output channels of the last tile
  int64_t dwords = 0;         ///< planes for the channels of one group
  ConvPhases row_phases;
  ConvPhases column_phases;
  int64_t pitch = 0;          ///< dwords from one row of a plane to the next
  ConvBlock block;            ///< the last ones along either axis may be smaller
  int64_t plane_dwords = 0;   ///< from one plane to the next
  std::vector<int32_t> taps;  ///< byte offsets: slice by slice, dword by dword, row by row

  int64_t output_rows() const { return rows.output; }
  int64_t output_columns() const { return columns.output; }
  /// Planes of one dword's channels at one slice.
  int64_t phase_planes() const {
    return static_cast<int64_t>(row_phases.phases.size() * column_phases.phases.size());
  }
  /// Dwords of all planes, and behind them what the last vectors may read.
  int64_t planes_dwords() const;
  /// Lanes of a block's line.
  int64_t line_pixels(const ConvBlock& of) const { return (of.rows - 1) * pitch + of.columns; }
  int lanes(const Target& target) const { return target.vector_bits() / 32; }
  /// Tiles of a block's line.
  int64_t line_tiles(const ConvBlock& of, const Target& target) const;
};

/// Plans a convolution that has output elements and taps: channels, output channels, batch and
/// output extents are not 0.
ConvPlan plan_convolution(const ConvolutionGeometry& geometry, const Target& target);

/// Where the lanes of each vector of a line go in an output whose rows follow each other; for whole
/// tiles.
std::vector<ConvStore> line_stores(const ConvPlan& plan, const ConvBlock& block,
                                   const Target& target);
/// The same where every lane is stored: for window sums.
std::vector<ConvStore> plain_stores(const ConvPlan& plan, const ConvBlock& block,
                                    const Target& target);

/// The plan in words.
std::string print(const ConvPlan& plan, const Target& target);

}  // namespace castor::jit
