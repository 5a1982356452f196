// SPDX-License-Identifier: Apache-2.0
// The blocks of a dense convolution in the order in which they run, and how tasks share them.
//
// Tasks cut the result twice. First along its pixels, across all blocks: each stretch is the work
// of a team. The tasks of a team then share the channel tiles of each of the team's blocks, or of
// the part of a block that is the team's; where the tasks do not divide the tiles, the pixels of a
// tile are cut as well. Every task lays out the input that it reads.
#pragma once

#include "runtime/conv/convolution.hpp"

namespace castor::detail {

/// How many tasks there are.
struct TaskTeams {
  int64_t teams = 1;
  int64_t members = 1;  ///< tasks of each team
  int64_t tasks() const { return teams * members; }
};

/// The teams of at most that many tasks, which are at least 1, that are done first.
TaskTeams choose_teams(const BoundConvolution& convolution, int64_t max_tasks);

/// Tiles of pixels that follow each other in a block: of its line, or, channels in the lanes, of
/// all its runs, one behind the other.
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

/// A block, or the part of one that a team does.
struct BlockPart {
  BlockPlace place;  ///< of the block
  const BlockTables* tables = nullptr;
  PixelTiles tiles;
};

/// Where a share of a part's channel tiles begins.
struct ShareBegin {
  int64_t channel_tile = 0;
  int64_t pixel_tile = 0;  ///< of that channel tile
};

/// Places of blocks, and of where one task's work ends and another's begins.
class ConvolutionBlocks {
 public:
  explicit ConvolutionBlocks(const BoundConvolution& convolution)
      : convolution_(convolution), plan_(convolution.plan) {}

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
  ShareBegin share_of(const BlockPart& part, int64_t member, int64_t members) const;

  /// The output pixels of some tiles.
  PixelRange pixels_of(const BlockTables& tables, const PixelTiles& tiles) const;
  /// The least part of a block, as a block of its own, that has these pixels: whole rows, or, of a
  /// single row, a piece.
  static BlockPlace part_with(const BlockPlace& place, const PixelRange& pixels);

 private:
  /// In front of a pixel tile.
  struct Cut {
    int64_t block = 0;
    int64_t tile = 0;
  };

  int64_t row_blocks() const;
  int64_t column_blocks() const;
  /// Images' spaces of output rows and columns.
  int64_t planes() const;
  BlockPlace place_of(int64_t block) const;
  const BlockTables& tables_of(const jit::CacheBlock& block) const;
  Cut cut_at(int64_t team, int64_t teams) const;
  int64_t tile_near(const BlockTables& tables, int64_t pixel) const;
  int64_t between_pixels(const BlockTables& tables, int64_t tile) const;

  const BoundConvolution& convolution_;
  const jit::DensePlan& plan_;
};

}  // namespace castor::detail
