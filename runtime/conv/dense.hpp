// SPDX-License-Identifier: Apache-2.0
// Dense convolutions ready to run, and how tasks share their blocks.
//
// Tasks cut the result twice. First along its pixels, across all blocks: each stretch is the work
// of a team. The tasks of a team then share the channel tiles of each of the team's blocks, or of
// the part of a block that is the team's; where the tasks do not divide the tiles, the pixels of a
// tile are cut as well. Every task packs the input that it reads.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "jit/conv/candidates.hpp"
#include "runtime/cache/code_cache.hpp"
#include "runtime/conv/convolution_step.hpp"
#include "runtime/conv/pack_input.hpp"
#include "runtime/conv/pack_weights.hpp"
#include "runtime/memory/weight_store.hpp"

namespace castor::detail {

/// Register tiles of pixels that follow each other in a block.
struct PixelTiles {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t count() const { return end - begin; }
};

/// Pixels of a block, counted row by row.
struct PixelRange {
  int64_t begin = 0;
  int64_t end = 0;
};

/// Tiles of a block that have the same spec, and their code.
struct BoundTiles {
  jit::TileRun run;
  KernelCodePtr<jit::DenseTile> code;
  KernelCodePtr<jit::DenseTile> last_code;  ///< of the last channel tile

  PixelRange pixels_of(const PixelTiles& tiles) const;
};

/// What is done for each block of one size.
struct BlockTables {
  jit::CacheBlock block;
  int64_t pixel_tiles = 0;        ///< of all runs
  std::vector<BoundTiles> tiles;  ///< at least one
  /// Of packed input; empty where kernels subtract none.
  std::vector<jit::ConvStore> window_sums;
  /// With tile registers: their configuration in most calls of kernels.
  std::optional<jit::TileConfig> configuration;

  /// The pixels of some tiles, which are numbered through all runs.
  PixelRange pixels_of(const PixelTiles& of) const;
  /// Calls visit(run, tiles of the run) for each run that has some of these tiles.
  template <class Visit>
  void for_each_run(const PixelTiles& of, Visit visit) const {
    int64_t before = 0;  // tiles of the runs before
    for (const BoundTiles& each : tiles) {
      const int64_t count = each.run.count;
      const PixelTiles here = {std::clamp<int64_t>(of.begin - before, 0, count),
                               std::clamp<int64_t>(of.end - before, 0, count)};
      before += count;
      if (here.count() > 0) visit(each, here);
    }
  }
  /// Pixel tiles of the runs before that one.
  int64_t tiles_before(const BoundTiles& run) const {
    int64_t before = 0;
    for (const BoundTiles* each = tiles.data(); each != &run; ++each) before += each->run.count;
    return before;
  }
};

/// Parts of a call's scratch, as offsets in bytes.
struct DenseScratch {
  size_t source = 0;        ///< packed input, or copies of rows
  size_t start = 0;         ///< accumulators' first values, by output channel
  size_t zero_points = 0;   ///< of weights, likewise
  size_t window_sums = 0;   ///< by lane of a block, or by pixel
  size_t summing = 0;       ///< for the work of summing windows
  size_t sums_weights = 0;  ///< a zero point for each of PackedSums::weights
  size_t weights = 0;       ///< packed in the call; then their sums
  size_t untransposed = 0;  ///< outputs channel by channel, before they are transposed
};

/// How window sums of packed input are computed: by a kernel of one output channel, of whole
/// windows or, where these overlap, of lanes, whose sums are then added.
struct PackedSums {
  KernelCodePtr<jit::DenseTile> code;  ///< null: there are none
  std::vector<int32_t> weights;        ///< 1 for each channel that there is, by k step
  std::vector<int32_t> k_steps;        ///< the kernel's, where it sums lanes
  /// Where sums of lanes are that make the sum of a window, counted from that of its first lane:
  /// those of its rows, then columns of what these give.
  std::vector<int64_t> row_taps;
  std::vector<int64_t> column_taps;
};

/// A convolution with a dense plan.
struct BoundDense {
  jit::DensePlan plan;
  double cycles = 0;          ///< of an image, as estimated
  double packing_cycles = 0;  ///< those of them in which its input is packed
  jit::Target target;
  ConvolutionOperands operands;
  bool applies_epilogue = false;  ///< kernels do
  /// How kernels subtract window sums, where weights have zero points.
  jit::WindowSums window_sums = jit::WindowSums::none;
  PackedSums sums;
  /// The code of a channel tile that takes its pixels from the input; it is the only one, or packs
  /// them and is not the last. Else null.
  KernelCodePtr<jit::DenseTile> input_code;
  KernelCodePtr<jit::PackInput> input_packer;  ///< or null
  WeightPackers weight_packers;
  PackedDwords packed;  ///< weights, then their sums; empty where each call packs
  /// Where each call packs: whether tile by tile in front of its one use.
  bool packs_by_tile = false;
  std::vector<BlockTables> blocks;  ///< one for each size of block, at most four
  DenseScratch parts;
  size_t scratch_bytes = 0;
};

/// Binds a convolution by its plan. Throws std::bad_alloc.
Result<std::shared_ptr<const BoundDense>> bind_plan(const jit::DensePlan& plan,
                                                    const ConvolutionBinding& by);

/// Runs a convolution whose scratch begins at that offset. Allocates nothing.
void run_plan(const BoundDense& bound, size_t scratch, const ConvolutionStep& step,
              const CallMemory& memory);

/// Zero points by output channel, as the kernel's weights have them: unsigned ones less 128, but as
/// they are without VNNI or where the engine keeps signs. `zero_points` is null where there are
/// none.
void set_weight_zero_points(const BoundDense& bound, const std::byte* zero_points,
                            std::span<int32_t> to);

/// How many tasks there are.
struct TaskTeams {
  int64_t teams = 1;
  int64_t members = 1;  ///< tasks of each team
  int64_t tasks() const { return teams * members; }
};

/// The teams of at most that many tasks, which are at least 1, that are done first.
TaskTeams choose_teams(const BoundDense& bound, int64_t max_tasks);

/// A block, or the part of one that a team does.
struct BlockPart {
  BlockPlace place;  ///< of the block
  const BlockTables* tables = nullptr;
  PixelTiles tiles;
};

/// Where a share of a part's channel tiles begins.
struct ShareStart {
  int64_t channel_tile = 0;
  int64_t pixel_tile = 0;  ///< of that channel tile
};

/// Where blocks are, and where one task's work ends and another's begins.
class DenseBlocks {
 public:
  explicit DenseBlocks(const BoundDense& bound);

  /// Calls visit(part) for each block of a team, or part of one, in order.
  template <class Visit>
  void for_each_part(int64_t team, int64_t teams, Visit visit) const {
    const Cut begin = cut_at(team, teams);
    const Cut end = cut_at(team + 1, teams);
    for (int64_t block = begin.block; block <= end.block; ++block) {
      if (block == end.block && end.tile == 0) break;
      const BlockPlace place = place_of(block);
      const BlockTables& tables = tables_of(place.block);
      const PixelTiles tiles = {block == begin.block ? begin.tile : 0,
                                block == end.block ? end.tile : tables.pixel_tiles};
      if (tiles.count() > 0) visit(BlockPart{place, &tables, tiles});
    }
  }

  /// Where the work of a team's member begins in all pixel tiles of all channel tiles of a part;
  /// that of the one behind the last is behind all channel tiles.
  ShareStart share_of(const BlockPart& part, int64_t member, int64_t members) const;

  /// The least part of a block, as a block of its own, that has these pixels: whole rows, or, of a
  /// single row, a piece.
  static BlockPlace part_with(const BlockPlace& place, const PixelRange& pixels);

 private:
  /// In front of a pixel tile.
  struct Cut {
    int64_t block = 0;
    int64_t tile = 0;
  };

  BlockPlace place_of(int64_t block) const;
  const BlockTables& tables_of(const jit::CacheBlock& block) const;
  Cut cut_at(int64_t team, int64_t teams) const;

  const BoundDense& bound_;
  const jit::DensePlan& plan_;
  const int64_t row_blocks_;  ///< of one image's space of output rows and columns
  const int64_t column_blocks_;
};

}  // namespace castor::detail
