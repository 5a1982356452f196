// SPDX-License-Identifier: Apache-2.0
// How an integer convolution is done: where kernels read the input from, the blocks of output
// pixels that they walk, and the tile.
//
// Pixels in the lanes: the input of one block of output rows becomes planes of dwords. A plane
// holds one position along the outer spatial axes of the filter, one dword's worth of input
// channels (or of columns, or of the taps of small filters: DwordsHold), and every stride-th row
// and column from one phase on, padding included. So a tap of the filter is one offset for all
// pixels: rows of the block lie at one pitch, and output pixels are lanes of one long line, which
// at the end of each row has gaps (pitch - width lanes) that are computed and not stored. Where
// rows are lines of their own, as those that are whole vectors wide are, each begins with a vector,
// and there are no gaps.
//
// Channels in the lanes: a tile is a few neighbouring pixels. They are read from such planes, or
// from the input's rows, copied with their padding or as they lie; a tap is any four bytes of a row
// that belong together.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "ir/shape/convolution.hpp"
#include "jit/conv/dense/tile_spec.hpp"
#include "jit/conv/pack/pack_input.hpp"
#include "jit/conv/problem.hpp"
#include "jit/core/cost_events.hpp"

namespace castor::jit {

/// The phases of one axis: offsets of taps modulo the stride, as far as taps have them; or, where
/// taps are far apart, the offset of each tap.
struct ConvPhases {
  std::vector<int64_t> phases;  ///< ascending
  std::vector<int64_t> of_tap;  ///< index into `phases`
  std::vector<int64_t> shifts;  ///< by tap: positions in the plane from the pixel's own
  int64_t max_shift = 0;
};

/// Output pixels that are done at a time: rows, or a part of one.
struct ConvBlock {
  int64_t rows = 0;
  int64_t columns = 0;
};

using ConvLanes = Vectorised;

/// Where kernels read the input from.
enum class ConvSource : uint8_t {
  planes,  ///< dwords of input channels
  rows,    ///< copies of rows, with their padding
  input,   ///< the input itself
};

/// Rows of a block's input, copied or as they lie.
struct ConvRows {
  std::vector<int64_t>
      planes;                ///< where each begins: slices by channels of a group, in nhwc slices
  int64_t rows = 0;          ///< of a plane, for a whole block
  int64_t columns = 0;       ///< of a row
  int64_t column_bytes = 0;  ///< from one column of the source to the next
  int64_t row_bytes = 0;
  int64_t plane_bytes = 0;  ///< copied: from one plane to the next
};

/// The weights that one tap's dword multiplies: places among those of an output channel; -1: none.
using TapWeights = std::array<int32_t, 4>;

/// The plan of one geometry for one target; `group_channels` and `group_out_channels` may be 0.
struct ConvPlan {
  ConvolutionGeometry geometry;
  ConvolutionAxis rows;       ///< the last but one spatial axis; one row where there is none
  ConvolutionAxis columns;    ///< the last
  int64_t slices = 1;         ///< kernel positions along all outer spatial axes
  int64_t outer_outputs = 1;  ///< output positions along them
  ProductEngine engine = ProductEngine::u8_i8_dot;
  int lanes = 0;      ///< of a vector
  CacheSizes caches;  ///< that blocks follow
  ConvLanes lanes_hold = ConvLanes::pixels;
  ConvSource source = ConvSource::planes;
  DenseTile tile;             ///< pixels in the lanes: of whole tiles, without window sums
  DenseTile channel_tile;     ///< channels in the lanes: likewise
  int64_t channel_tiles = 0;  ///< of one group
  int last_channels = 0;      ///< output channels of the last tile
  DwordsHold dwords_hold = DwordsHold::channels;  ///< of planes
  int64_t dwords = 0;                             ///< planes for the channels of one group
  ConvPhases row_phases;
  ConvPhases column_phases;
  int64_t pitch = 0;            ///< dwords from one row of a plane to the next
  bool rows_are_lines = false;  ///< pixels in the lanes: whether each row begins with a tile
  /// Whether kernels can take the pixels of a block's line from the input (DenseTile::source).
  bool may_take_input = false;
  ConvBlock block;            ///< the last ones along either axis may be smaller
  int64_t plane_dwords = 0;   ///< from one plane to the next
  ConvRows input_rows;        ///< where the source is not planes
  std::vector<int32_t> taps;  ///< byte offsets: slice by slice, dword by dword, row by row, unless
                              ///< tap_weights say what they are; of the first k group alone where
                              ///< kernels loop over them
  int64_t k_groups = 1;       ///< that kernels loop over: 1, or all dwords of all slices
  int64_t k_group_step = 0;   ///< bytes from the planes of one k group to those of the next
  std::vector<TapWeights> tap_weights;  ///< of each tap, or empty
  EventCounts cost;                     ///< of one image
  double cycles = 0;                    ///< the same on the target's core
  double filling_cycles = 0;            ///< those of them in which its input is packed

  /// Whether results lie channel by channel at first, and are put in order behind the kernels.
  bool transposes() const {
    return geometry.layout == ConvolutionLayout::nhwc && lanes_hold == ConvLanes::pixels;
  }
  int64_t output_rows() const { return rows.output; }
  int64_t output_columns() const { return columns.output; }
  /// Dwords of weights of an output channel: taps of all k groups.
  int64_t k_steps() const { return static_cast<int64_t>(taps.size()) * k_groups; }
  /// Output channels of whole tiles.
  int tile_channels() const {
    return lanes_hold == ConvLanes::pixels ? tile.channels : channel_tile.channels;
  }
  /// Channels that packed weights of a tile are laid out for: of vectors of channels all lanes.
  int packed_width(int channels) const {
    return lanes_hold == ConvLanes::pixels ? channels : (channels + lanes - 1) / lanes * lanes;
  }
  /// The same of all tiles of a group.
  int64_t packed_group_width() const {
    return (channel_tiles - 1) * packed_width(tile_channels()) + packed_width(last_channels);
  }
  /// Planes of one dword's channels at one slice.
  int64_t phase_planes() const {
    return static_cast<int64_t>(row_phases.phases.size() * column_phases.phases.size());
  }
  /// Bytes of all planes or copied rows, and behind them what the last vectors may read.
  int64_t source_bytes() const;
  /// Whether some lanes of a line are never stored: those between two rows.
  bool line_has_gaps() const;
  /// Lanes of a block's line.
  int64_t line_pixels(const ConvBlock& of) const { return (of.rows - 1) * pitch + of.columns; }
  /// Vectors of a block's line, not counting those that only fill a tile.
  int64_t line_vectors(const ConvBlock& of) const;
  /// Tiles of a row that is a line of its own.
  int64_t row_tiles(const ConvBlock& of) const;
  /// Whether the rows of a block are those of the input, each of which is taken whole.
  bool takes_whole_rows() const;
  /// Tiles of a block's line.
  int64_t line_tiles(const ConvBlock& of) const;
  /// Bytes of the source from one output row or column to the next.
  int64_t source_row_step() const;
  int64_t source_column_step() const;
};

/// Weights of one output channel at the most.
inline constexpr int64_t max_filter_weights = int64_t{1} << 28;

/// Whether the filter is small enough to be planned; the error (unsupported) says what is not.
Status check_filter(const ConvolutionGeometry& geometry);

/// What the code that packs the plan's input depends on.
PackInput pack_input_spec(const ConvPlan& plan);

/// All dense plans of a problem, with their costs; at least one.
std::vector<ConvPlan> possible_plans(const ConvolutionProblem& problem, const Target& target);

/// A pixel-vectorised plan with each other register tile that it may have, for those who measure
/// whether the cost model chooses well.
std::vector<ConvPlan> with_other_tiles(const ConvPlan& plan, const ConvolutionProblem& problem,
                                       const Target& target);

/// Whether the plan's kernels can apply the epilogue: tiles' vectors lie along the rows that it
/// goes along.
bool can_apply(const ConvPlan& plan, const TileEpilogue& epilogue);

/// The plan's tile of pixels as its kernels have it, with an epilogue or without.
DenseTile kernel_tile(const ConvPlan& plan, bool has_epilogue);

/// Where the lanes of each vector of a line come from and go in an output whose rows follow each
/// other; for whole tiles.
std::vector<ConvStore> line_stores(const ConvPlan& plan, const ConvBlock& block);
/// Vectors of pixels whose window sums are computed at a time.
inline constexpr int vectors_of_window_sums = 6;

/// Where the lanes of a line go where every lane is stored: for window sums, as whole tiles of
/// vectors_of_window_sums.
std::vector<ConvStore> plain_stores(const ConvPlan& plan, const ConvBlock& block);

/// Tiles of a block that follow each other in the output, all of one form: pixels from `pixel` on.
/// Tiles may share pixels.
struct ChannelTileRun {
  DenseTile tile;
  std::vector<TilePlace> places;
};
/// All tiles of a block, channels in the lanes, in the order of their pixels.
std::vector<ChannelTileRun> channel_tile_runs(const ConvPlan& plan, const ConvBlock& block);

/// The plan in words.
std::string print(const ConvPlan& plan);

}  // namespace castor::jit
