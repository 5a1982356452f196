// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/convolution_blocks.hpp"

#include <algorithm>

#include "ir/support/integer_math.hpp"
#include "jit/float_environment.hpp"

namespace castor::detail {

namespace {

/// a * b / c, to the nearest.
int64_t nearest(int64_t a, int64_t b, int64_t c) { return (a * b + c / 2) / c; }

/// Pixels of a tile, channels in the lanes.
PixelRange pixels_of_tile(const BlockTables& tables, int64_t tile) {
  for (const BoundTileRun& run : tables.runs) {
    const auto count = static_cast<int64_t>(run.tiles.places.size());
    if (tile < count) {
      const int64_t first = run.tiles.places[static_cast<size_t>(tile)].pixel;
      return {first, first + run.tiles.tile.pixels()};
    }
    tile -= count;
  }
  return {};
}

}  // namespace

int64_t ConvolutionBlocks::row_blocks() const {
  return ceil_div(plan_.rows.output, plan_.block.rows);
}

int64_t ConvolutionBlocks::column_blocks() const {
  return ceil_div(plan_.columns.output, plan_.block.columns);
}

int64_t ConvolutionBlocks::planes() const {
  return plan_.geometry.batch * plan_.geometry.groups * plan_.outer_outputs;
}

/// Blocks are numbered along columns first, then rows, outer positions, groups and images.
BlockPlace ConvolutionBlocks::place_of(int64_t block) const {
  const auto next = [&](int64_t extent) {
    const int64_t index = block % extent;
    block /= extent;
    return index;
  };
  BlockPlace place;
  place.column = next(column_blocks()) * plan_.block.columns;
  place.row = next(row_blocks()) * plan_.block.rows;
  place.outer = next(plan_.outer_outputs);
  place.group = next(plan_.geometry.groups);
  place.image = block;
  place.block = {.rows = std::min(plan_.block.rows, plan_.rows.output - place.row),
                 .columns = std::min(plan_.block.columns, plan_.columns.output - place.column)};
  return place;
}

const BlockTables& ConvolutionBlocks::tables_of(const jit::CacheBlock& block) const {
  return *std::ranges::find_if(convolution_.blocks, [&](const BlockTables& of) {
    return of.block.rows == block.rows && of.block.columns == block.columns;
  });
}

/// Near to an equal number of pixels for each team. A block of several rows has whole ones.
ConvolutionBlocks::Cut ConvolutionBlocks::cut_at(int64_t team, int64_t teams) const {
  const int64_t rows = plan_.rows.output;
  const int64_t columns = plan_.columns.output;
  const int64_t pixel = nearest(planes() * rows * columns, team, teams);
  int64_t left = pixel % (rows * columns);
  const int64_t row_block = left / (plan_.block.rows * columns);
  left -= row_block * plan_.block.rows * columns;
  const int64_t rows_here = std::min(plan_.block.rows, rows - row_block * plan_.block.rows);
  const int64_t column_block = left / (rows_here * plan_.block.columns);
  left -= column_block * rows_here * plan_.block.columns;
  Cut cut;
  cut.block =
      (pixel / (rows * columns) * row_blocks() + row_block) * column_blocks() + column_block;
  if (left == 0) return cut;
  const BlockTables& tables = tables_of(place_of(cut.block).block);
  cut.tile = tile_near(tables, left);
  return cut.tile == tables.pixel_tiles ? Cut{cut.block + 1, 0} : cut;
}

/// The tile that begins near a pixel of a block, and with a pixel that is in no other tile.
int64_t ConvolutionBlocks::tile_near(const BlockTables& tables, int64_t pixel) const {
  const jit::CacheBlock& block = tables.block;
  if (plan_.is_pixel_vectorised()) {
    const int64_t row = pixel / block.columns;
    const int64_t column = pixel % block.columns;
    const int64_t lanes = plan_.tile.vectors * plan_.lanes;
    const int64_t tile =
        plan_.planes()->has_aligned_rows
            ? row * plan_.tiles_of_row(block, plan_.tile.vectors) + nearest(column, 1, lanes)
            : nearest(row * plan_.planes()->pitch + column, 1, lanes);
    return std::min(tile, tables.pixel_tiles);
  }
  return between_pixels(tables, nearest(pixel, tables.pixel_tiles, block.rows * block.columns));
}

/// Channels in the lanes, the last tile of a row may have pixels of the one before.
int64_t ConvolutionBlocks::between_pixels(const BlockTables& tables, int64_t tile) const {
  if (plan_.is_pixel_vectorised()) return tile;
  while (tile > 0 && tile < tables.pixel_tiles &&
         pixels_of_tile(tables, tile).begin < pixels_of_tile(tables, tile - 1).end) {
    --tile;
  }
  return tile;
}

ShareBegin ConvolutionBlocks::share_of(const BlockPart& part, int64_t member,
                                       int64_t members) const {
  if (member == 0) return {0, part.tiles.begin};
  if (member == members) return {plan_.channel_tiles, part.tiles.begin};
  const int64_t channels = plan_.tile.channels;
  const int64_t pixel_tiles = part.tiles.count();
  // Pixel tiles of one channel each.
  const int64_t before = plan_.geometry.group_out_channels() * pixel_tiles * member / members;
  const int64_t tile = std::min(before / (channels * pixel_tiles), plan_.channel_tiles - 1);
  const bool is_last = tile + 1 == plan_.channel_tiles;
  const int64_t in_tile = nearest(before - tile * channels * pixel_tiles, 1,
                                  is_last ? plan_.last_channels() : channels);
  if (in_tile >= pixel_tiles) return {tile + 1, part.tiles.begin};
  const int64_t pixel_tile = between_pixels(*part.tables, part.tiles.begin + in_tile);
  return {tile, std::max(pixel_tile, part.tiles.begin)};
}

PixelRange ConvolutionBlocks::pixels_of(const BlockTables& tables, const PixelTiles& tiles) const {
  if (tiles.count() == tables.pixel_tiles) return {0, tables.block.rows * tables.block.columns};
  if (!plan_.is_pixel_vectorised()) {
    return {pixels_of_tile(tables, tiles.begin).begin, pixels_of_tile(tables, tiles.end - 1).end};
  }
  const auto first_pixel = [&](int64_t tile) {
    if (tile == tables.pixel_tiles) return tables.block.rows * tables.block.columns;
    return tables.output[static_cast<size_t>(tile * plan_.tile.vectors)].pixel;
  };
  return {first_pixel(tiles.begin), first_pixel(tiles.end)};
}

BlockPlace ConvolutionBlocks::part_with(const BlockPlace& place, const PixelRange& pixels) {
  BlockPlace part = place;
  const int64_t columns = place.block.columns;
  if (pixels.end - pixels.begin == place.block.rows * columns) return part;
  if (place.block.rows == 1) {
    part.column += pixels.begin;
    part.block.columns = pixels.end - pixels.begin;
  } else {
    const int64_t first = pixels.begin / columns;
    part.row += first;
    part.block.rows = ceil_div(pixels.end, columns) - first;
  }
  return part;
}

namespace {

/// Estimates how long the slowest task takes, in units of the whole image's time on one.
class TeamModel {
 public:
  explicit TeamModel(const BoundConvolution& convolution) : convolution_(convolution) {
    const jit::DensePlan& plan = convolution.plan;
    const BlockTables& largest = convolution.blocks.front();
    const double pixels_of_a_tile =
        static_cast<double>(largest.block.rows * largest.block.columns) /
        static_cast<double>(largest.pixel_tiles);
    const auto planes =
        static_cast<double>(plan.geometry.batch * plan.geometry.groups * plan.outer_outputs);
    rows_ = planes * static_cast<double>(plan.rows.output);
    pixel_tiles_ = rows_ * static_cast<double>(plan.columns.output) / pixels_of_a_tile;
    filling_ = convolution.packing_cycles / convolution.cycles;
    if (convolution.packs_by_tile) {
      packing_ = static_cast<double>(packed_dwords(plan)) / convolution.cycles;
    }
  }

  /// Tiles of channels and pixels: more tasks than those are of no use.
  int64_t tiles() const {
    return std::max<int64_t>(
        static_cast<int64_t>(pixel_tiles_ * static_cast<double>(convolution_.plan.channel_tiles)),
        1);
  }

  /// Cuts lie between tiles, half a tile from where they should at the most. Rows near a cut are
  /// laid out on both sides of it. All members lay out all rows of their team.
  double time_of(const TaskTeams& tasks) const {
    const jit::DensePlan& plan = convolution_.plan;
    const auto teams = static_cast<double>(tasks.teams);
    const auto members = static_cast<double>(tasks.members);
    const double half_a_tile = 0.5 / pixel_tiles_;
    const double of_a_team = 1 / teams + (tasks.teams > 1 ? half_a_tile : 0);
    const double products =
        of_a_team / members +
        (tasks.members > 1 ? half_a_tile / static_cast<double>(plan.channel_tiles) : 0);
    const auto rows_of_both =
        static_cast<double>(std::max<int64_t>(plan.rows.window() / plan.rows.stride - 1, 0));
    const double laid_out = of_a_team + (tasks.teams > 1 ? rows_of_both / rows_ : 0);
    return (1 - filling_) * products + filling_ * laid_out + packing_ / members;
  }

 private:
  const BoundConvolution& convolution_;
  double rows_ = 0;         ///< of the output
  double pixel_tiles_ = 0;  ///< of all blocks
  double filling_ = 0;      ///< part of the time in which input is laid out
  double packing_ = 0;      ///< time in which weights are packed tile by tile
};

}  // namespace

TaskTeams choose_teams(const BoundConvolution& convolution, int64_t max_tasks) {
  if (max_tasks == 1) return {};
  const jit::KernelFloatEnvironment environment;  // times are compared in floats
  const TeamModel model(convolution);
  const int64_t tasks = std::min(max_tasks, model.tiles());
  TaskTeams best = {.teams = tasks};
  for (int64_t members = 2; members <= tasks; ++members) {
    const TaskTeams each = {tasks / members, members};
    if (each.tasks() == tasks && model.time_of(each) < model.time_of(best)) best = each;
  }
  return best;
}

}  // namespace castor::detail
