// SPDX-License-Identifier: Apache-2.0
// How a dense integer convolution is done: where the microkernel reads the input, the cache blocks
// of output pixels, and the register tile (jit/conv/README.md, Dense kernels).
//
// Packed planes: a plane holds one position along the outer spatial axes of the filter, one k group
// of input channels (or of columns, or of positions of the receptive field: PackedLayout), and
// every stride-th row and column from one phase on, padding included. So a k step is one offset for
// all pixels: the rows of a block lie at one pitch, and its output pixels are lanes of one
// sequence, in which pitch - width lanes between two rows are dead. Aligned rows are sequences of
// their own: each begins with a vector, and no lane between two rows is dead.
//
// Rows: the input's own, or copies of them with their padding, for channel-vectorised kernels; a k
// step is any four adjacent bytes of a row that belong together.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ir/shape/convolution.hpp"
#include "ir/support/integer_math.hpp"
#include "jit/conv/dense/tile_spec.hpp"
#include "jit/conv/pack/pack_input.hpp"
#include "jit/conv/problem.hpp"
#include "jit/core/core_tuning.hpp"

namespace castor::jit {

/// The stride phases of one axis: offsets of taps modulo the stride, as far as taps have them; or,
/// where taps are far apart, the offset of each tap.
struct StridePhases {
  std::vector<int64_t> phases;  ///< ascending
  std::vector<int64_t> of_tap;  ///< index into `phases`
  std::vector<int64_t> shifts;  ///< by tap: positions in the plane from the pixel's own
  int64_t max_shift = 0;

  int64_t count() const { return static_cast<int64_t>(phases.size()); }
  int64_t taps() const { return static_cast<int64_t>(shifts.size()); }
};

/// Output pixels that are done at a time: rows, or a part of one.
struct CacheBlock {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t pixels() const { return rows * columns; }
  friend bool operator==(const CacheBlock&, const CacheBlock&) = default;
};

/// Who packs input as k groups.
enum class PackedBy : uint8_t {
  packer,
  /// The first tile of channels may take its pixels from the input and pack them on the way
  /// (DenseTile::source).
  first_tile,
  /// The only tile of channels takes its pixels from the input, and nothing is packed but what does
  /// not fill a tile. Window sums it adds up itself.
  nobody,
};

/// The source of kernels is packed input: planes of k groups.
struct PackedPlanes {
  PackedLayout layout = PackedLayout::nchw4c;
  bool has_aligned_rows = false;  ///< only pixel-vectorised
  StridePhases row_phases = {};
  StridePhases column_phases = {};
  int64_t pitch = 0;       ///< k groups from one row of a plane to the next
  int64_t plane_size = 0;  ///< k groups from one plane to the next
  PackedBy packed_by = PackedBy::packer;

  /// Planes of one k group.
  int64_t stride_phases() const { return row_phases.count() * column_phases.count(); }
  int64_t taps() const { return row_phases.taps() * column_phases.taps(); }
  /// Lanes that are added up for a window's sum: its rows for each column's stride phase, columns.
  int64_t added_lanes() const {
    return row_phases.taps() * column_phases.count() + column_phases.taps();
  }
  /// Lanes from a receptive field's first one to its last.
  int64_t window_reach() const { return row_phases.max_shift * pitch + column_phases.max_shift; }
};

/// Rows that channel-vectorised kernels read, which are not packed.
struct InputRows {
  /// Byte offset of each plane: slices by a group's channels, or as many of them as a column has.
  std::vector<int64_t> planes;
  int64_t channels = 1;      ///< that a column has
  int64_t column_bytes = 0;  ///< from one column of the source to the next
  int64_t row_bytes = 0;
};
/// Copies of a block's rows, with their padding.
struct CopiedRows : InputRows {
  int64_t rows = 0;                 ///< of a plane, for a whole block
  int64_t columns = 0;              ///< of a row
  bool has_aligned_pixels = false;  ///< of which no k step crosses a cache line
  int64_t plane_bytes() const { return rows * row_bytes; }
};
/// The rows of the input itself.
struct DirectInput : InputRows {};

/// The weights that one k step multiplies: indices into the weights of an output channel; -1: none.
using KStepWeights = std::array<int32_t, 4>;

/// The dense plan of one problem for one target.
struct DensePlan : PlaneAxes {
  ConvolutionGeometry geometry;
  ProductEngine engine = ProductEngine::u8_i8_dot;
  int lanes = 0;  ///< of a vector
  std::variant<PackedPlanes, CopiedRows, DirectInput> source;
  CacheBlock block;           ///< the last ones along either axis may be smaller
  DenseTile tile;             ///< without window sums; of all tiles of channels but the last
  int64_t channel_tiles = 0;  ///< of one group
  int64_t k_groups = 0;       ///< of a group's channels, or planes of each slice and phase
  /// Byte offsets: slice by slice, k group by k group, row by row, unless k_step_weights say what
  /// they are; of the first k group alone where kernels loop over k groups. With tile registers a
  /// k step takes `tile.step_bytes`, the k groups of which k_step_weights have one by one.
  std::vector<int32_t> k_steps;
  std::vector<KStepWeights> k_step_weights;  ///< by k group of weights, or empty

  /// Whether rows that are not packed hold pixels with all of their channels.
  bool has_pixel_rows() const {
    return geometry.layout == ConvolutionLayout::nhwc || tile.has_tiles();
  }
  bool is_pixel_vectorised() const { return tile.vectorised == Vectorised::pixels; }
  /// Whether results lie channel by channel at first, and are put in order after the kernels.
  bool transposes() const {
    return geometry.layout == ConvolutionLayout::nhwc && is_pixel_vectorised();
  }
  /// Output channels of a group before a tile of them; after the last tile: all.
  int64_t first_channel(int64_t channel_tile) const {
    return std::min<int64_t>(channel_tile * tile.channels, geometry.group_out_channels());
  }
  /// Output channels of a tile of a group, of which the last one may have fewer.
  int channels_of(int64_t channel_tile) const {
    return static_cast<int>(first_channel(channel_tile + 1) - first_channel(channel_tile));
  }
  int last_channels() const { return channels_of(channel_tiles - 1); }
  /// Channels of a tile of that many vectors of them.
  int channels_of_tile(int vectors) const {
    return static_cast<int>(std::min(int64_t{vectors} * lanes, geometry.group_out_channels()));
  }
  /// Channel-vectorised tiles of a block, for one tile of channels.
  int64_t channel_vectorised_tiles(const DenseTile& of) const {
    return ceil_div(block.rows, of.pixel_rows) * ceil_div(block.columns, of.columns);
  }
  /// Whether k steps take adjacent weights of an output channel, in the order of memory; the last
  /// one may have too few. Else k_step_weights says where each is.
  bool has_weights_in_order() const;
  /// Bytes of packed weights for that many vectors of channels.
  int64_t weight_bytes(int64_t vectors) const { return 4 * weight_k_groups() * vectors * lanes; }
  /// Channels that packed weights of a tile are laid out for: of vectors of channels all lanes.
  int packed_width(int channels) const {
    return is_pixel_vectorised() ? channels : (channels + lanes - 1) / lanes * lanes;
  }
  /// Packed channels of all tiles of a group.
  int64_t packed_group_width() const {
    return (channel_tiles - 1) * packed_width(tile.channels) + packed_width(last_channels());
  }
  /// K groups that kernels loop over, 1 where they do not, and the bytes from one to the next.
  int64_t looped_k_groups() const { return tile.loops_k_groups ? slices * k_groups : 1; }
  int64_t k_group_step() const { return 4 * planes()->stride_phases() * planes()->plane_size; }
  /// K groups of weights of an output channel: one for each k step, several with tile registers.
  int64_t weight_k_groups() const {
    return std::ssize(k_steps) * looped_k_groups() * (tile.has_tiles() ? tile.step_bytes / 4 : 1);
  }

  /// The source, if it is packed.
  const PackedPlanes* planes() const { return std::get_if<PackedPlanes>(&source); }
  /// The source, if it is not.
  const InputRows& input_rows() const;
  /// Bytes of what is packed or copied, and after it what the last vectors may read.
  int64_t source_bytes() const;
  /// Bytes of the source from one output row or column to the next.
  int64_t source_row_step() const;
  int64_t source_column_step() const;
  /// Whether the rows of a block are those of the input, each of which is taken whole.
  bool takes_whole_rows() const;

  // For packed input:
  /// Lanes of a block's sequence, from its first pixel to its last one.
  int64_t lane_count(const CacheBlock& of) const;
  /// Vectors of a block, not counting those that only fill a tile.
  int64_t vectors_of(const CacheBlock& of) const;
  /// Whether there are dead lanes between the rows of a block.
  bool has_dead_lanes() const;
  /// Pixel-vectorised tiles of a block, each of `vectors` vectors.
  int64_t tiles_of(const CacheBlock& of, int vectors) const;
};

/// Weights of one output channel at the most.
inline constexpr int64_t max_filter_weights = int64_t{1} << 28;
/// The most positions of a filter: plans take some hundred bytes of memory for each.
inline constexpr int64_t max_filter_positions = int64_t{1} << 20;

/// Whether the filter is small enough to be planned; the error (unsupported) says what is not.
Status check_filter(const ConvolutionGeometry& geometry);

/// Whether x's zero point is subtracted from pixels when they are packed or copied: from those of
/// i16 pairs, unless kernels take some from the input. Else first values have it.
bool subtracts_from_pixels(const DensePlan& plan);

/// Whether generated code packs the plan's input; else loops do, or nothing is packed.
bool has_packing_code(const DensePlan& plan, const Target& target);
/// Whether the loops transpose the k groups of that many adjacent NHWC pixels, so that each pixel
/// is read once; else they pack them one by one.
bool transposes_pixels(const DensePlan& plan, int64_t pixels);
/// What that code depends on.
PackInput pack_input_spec(const DensePlan& plan);

/// All dense plans of a problem; at least one.
std::vector<DensePlan> possible_plans(const ConvolutionProblem& problem, const Target& target);

/// A plan, pixel-vectorised or of tile registers, with each other register tile that it may have,
/// for those who measure whether the cost model chooses well.
std::vector<DensePlan> with_other_tiles(const DensePlan& plan, const Target& target);

/// Whether the plan's kernels can apply the epilogue: tiles' vectors lie along the rows that it
/// goes along.
bool can_apply(const DensePlan& plan, const TileEpilogue& epilogue);

/// A tile of a plan as kernels have it, with an epilogue or without.
DenseTile kernel_tile(DenseTile tile, bool has_epilogue);
/// Whether window sums of packed input are found in two steps, since its lanes are in several
/// windows: all channels of each lane, then the lanes of each window. Else a kernel adds up windows
/// as it does their products.
bool sums_lanes_first(const DensePlan& plan);
/// The tile that sums packed input, by weights of one.
DenseTile window_sum_tile(const DensePlan& plan);

/// Where the lanes of each vector of a block come from and go in an output whose rows follow each
/// other; for whole tiles of that many vectors.
std::vector<ConvStore> vector_stores(const DensePlan& plan, const CacheBlock& block, int vectors);
/// The same of window sums, or of sums of lanes: every lane is stored, unless channel-vectorised
/// kernels read them.
std::vector<ConvStore> window_sum_stores(const DensePlan& plan, const CacheBlock& block);

/// Tiles that follow each other in a block, all of one form. Channel-vectorised ones may share
/// pixels.
struct TileRun {
  DenseTile tile;
  std::vector<ConvStore> stores;   ///< pixel-vectorised: of each vector; else empty
  std::vector<TileOrigin> places;  ///< channel-vectorised: of each tile; else empty
  int64_t count = 0;               ///< of tiles
};
/// All tiles of a block in the order of their pixels: one or two runs, or, where channel-vectorised
/// tiles may not share pixels, some for each row.
std::vector<TileRun> tile_runs(const DensePlan& plan, const CacheBlock& block,
                               bool may_share_pixels = true);

/// "nchw4c", "columns4_aligned_rows", "copied_rows", "input".
std::string source_name(const DensePlan& plan);
/// The plan in words.
std::string print(const DensePlan& plan);

// ---- for planners alone

/// Pixels of a cache block, so that their window sums are few as well.
inline constexpr int64_t max_block_pixels = int64_t{1} << 15;
/// K groups behind planes that the last tile of a block may read.
inline constexpr int64_t max_lanes_read_behind = 16 * 8;
/// Vectors of pixels whose window sums are computed at a time.
inline constexpr int vectors_of_window_sums = 6;
/// A plan lists at most this many k steps, so that binding takes little time and memory however
/// many channels there are: with more of them kernels loop over k groups.
inline constexpr int64_t max_listed_k_steps = int64_t{1} << 18;

/// The most vectors of pixels that a tile of all channels takes from the input.
inline constexpr int max_vectors_of_input = 8;

/// Bytes of that many eighths of the L2 cache, as far as blocks count on it.
inline int64_t l2_share(const Target& target, int64_t eighths) {
  const BlockTuning& tuning = target.tuning().block;
  return std::clamp(target.caches.l2, tuning.min_l2_bytes, tuning.max_l2_bytes) * eighths / 8;
}

/// The largest part, if parts are at most `max` and of about a size.
constexpr int64_t even_part(int64_t all, int64_t max) { return ceil_div(all, ceil_div(all, max)); }

/// A plan with what all plans of the problem have in common.
DensePlan begin_plan(const ConvolutionProblem& problem, const Target& target);

/// A plan of packed planes with its cache block and k steps, without a register tile. `plan` has
/// what all plans have; `planes` its layout and whether rows are aligned.
DensePlan plan_packed(DensePlan plan, PackedPlanes planes, const Target& target);

/// Channel-vectorised plans from the sources that are possible: none, or several. `base` has what
/// all plans have.
std::vector<DensePlan> plan_channels(const DensePlan& base, const ConvolutionProblem& problem,
                                     const Target& target);

/// The same by tile registers, which the target has.
std::vector<DensePlan> plan_tiles(const DensePlan& base, const ConvolutionProblem& problem,
                                  const Target& target);

/// Appends tiles of that many vectors of channels, made of tile registers, by pixels along a row
/// or, of short rows, of several.
void add_register_tiles(const DensePlan& plan, int vectors, const Target& target,
                        std::vector<DenseTile>& tiles);
/// Gives a plan of tile registers such a tile.
void set_register_tile(DensePlan& plan, DenseTile tile, const Target& target);

/// A plan of tile registers with its register tile in each other form.
std::vector<DensePlan> with_other_register_tiles(const DensePlan& plan, const Target& target);

/// The register tile with the lowest cost for a dense plan whose source and block are chosen.
DenseTile cheapest_tile(const DensePlan& plan, std::span<const DenseTile> tiles,
                        const Target& target);

/// Whether each tile's weights are used once in a call, so that run-time weights need not all be
/// packed at the same time.
bool uses_weights_once(const DensePlan& plan);

/// Bytes of weights that stay in L2 beside input and output.
int64_t near_weight_bytes(const Target& target);

/// Whether L2 holds the weights of all output channels of a group, beside input and output.
bool has_near_weights(const DensePlan& plan, const Target& target);

/// Whether the weights that tiles of tile registers go through again and again do not stay in L1.
bool streams_weights(const DensePlan& plan, const DenseTile& tile, const Target& target);

/// Whether L1 has room for weights that are brought there ahead, beside a register tile's pixels.
bool fetches_weights(const DensePlan& plan, const DenseTile& tile, const Target& target);

/// Whether pixels that tiles of tile registers go through again and again should not displace the
/// weights in L1.
bool streams_pixels(const DensePlan& plan, const DenseTile& tile, const Target& target);

/// Gives a plan the tile, and tiles of channels.
void set_tile(DensePlan& plan, const DenseTile& tile);

}  // namespace castor::jit
