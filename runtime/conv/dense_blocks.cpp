// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "ir/support/integer_math.hpp"
#include "jit/conv/candidates.hpp"
#include "jit/float_environment.hpp"
#include "runtime/conv/dense.hpp"

namespace castor::detail {

namespace {

/// a * b / c, to the nearest.
int64_t nearest(int64_t a, int64_t b, int64_t c) { return (a * b + c / 2) / c; }

/// The tile before which pixels are cut, at or before `tile`: where tiles share pixels, those of
/// one are in no other.
int64_t between_pixels(const BlockTables& tables, int64_t tile) {
  while (tile > 0 && tile < tables.pixel_tiles &&
         tables.pixels_of({tile, tile + 1}).begin < tables.pixels_of({tile - 1, tile}).end) {
    --tile;
  }
  return tile;
}

/// The tile that begins nearest to a pixel of a block, and with a pixel that is in no other tile.
int64_t tile_near(const BlockTables& tables, int64_t pixel) {
  const auto pixels_of = [&](int64_t tile) { return tables.pixels_of({tile, tile + 1}); };
  int64_t tile = pixel * tables.pixel_tiles / tables.block.pixels();  // the last ones may be short
  while (pixels_of(tile).begin > pixel) --tile;
  while (tile + 1 < tables.pixel_tiles && pixels_of(tile + 1).begin <= pixel) ++tile;
  const PixelRange pixels = pixels_of(tile);
  return between_pixels(tables, 2 * pixel < pixels.begin + pixels.end ? tile : tile + 1);
}

}  // namespace

PixelRange BoundTiles::pixels_of(const PixelTiles& tiles) const {
  if (run.places.empty()) {
    const jit::ConvStore& first = run.stores[static_cast<size_t>(tiles.begin * run.tile.vectors)];
    const jit::ConvStore& last = run.stores[static_cast<size_t>(tiles.end * run.tile.vectors - 1)];
    return {first.pixel, last.pixel + std::popcount(last.lanes)};
  }
  return {run.places[static_cast<size_t>(tiles.begin)].pixel,
          run.places[static_cast<size_t>(tiles.end - 1)].pixel + run.tile.pixels()};
}

PixelRange BlockTables::pixels_of(const PixelTiles& of) const {
  if (of.count() == pixel_tiles) return {0, block.pixels()};
  PixelRange pixels;
  for_each_run(of, [&](const BoundTiles& run, const PixelTiles& here) {
    const PixelRange of_run = run.pixels_of(here);
    if (pixels.begin == pixels.end) pixels.begin = of_run.begin;
    pixels.end = of_run.end;
  });
  return pixels;
}

DenseBlocks::DenseBlocks(const BoundDense& bound)
    : bound_(bound),
      plan_(bound.plan),
      row_blocks_(ceil_div(plan_.rows.output, plan_.block.rows)),
      column_blocks_(ceil_div(plan_.columns.output, plan_.block.columns)) {}

/// Blocks are numbered along columns first, then rows, outer positions, groups and images.
BlockPlace DenseBlocks::place_of(int64_t block) const {
  const auto next = [&](int64_t extent) {
    const int64_t index = block % extent;
    block /= extent;
    return index;
  };
  BlockPlace place;
  place.column = next(column_blocks_) * plan_.block.columns;
  place.row = next(row_blocks_) * plan_.block.rows;
  place.outer = next(plan_.outer_outputs);
  place.group = next(plan_.geometry.groups);
  place.image = block;
  place.block = {.rows = std::min(plan_.block.rows, plan_.rows.output - place.row),
                 .columns = std::min(plan_.block.columns, plan_.columns.output - place.column)};
  return place;
}

const BlockTables& DenseBlocks::tables_of(const jit::CacheBlock& block) const {
  return *std::ranges::find(bound_.blocks, block, &BlockTables::block);
}

/// Near to an equal number of pixels for each team. A block of several rows has whole ones.
DenseBlocks::Cut DenseBlocks::cut_at(int64_t team, int64_t teams) const {
  const int64_t rows = plan_.rows.output;
  const int64_t columns = plan_.columns.output;
  const int64_t planes = plan_.geometry.batch * plan_.geometry.groups * plan_.outer_outputs;
  const int64_t pixel = nearest(planes * rows * columns, team, teams);
  int64_t left = pixel % (rows * columns);
  const int64_t row_block = left / (plan_.block.rows * columns);
  left -= row_block * plan_.block.rows * columns;
  const int64_t rows_here = std::min(plan_.block.rows, rows - row_block * plan_.block.rows);
  const int64_t column_block = left / (rows_here * plan_.block.columns);
  left -= column_block * rows_here * plan_.block.columns;
  Cut cut;
  cut.block = (pixel / (rows * columns) * row_blocks_ + row_block) * column_blocks_ + column_block;
  if (left == 0) return cut;
  const BlockTables& tables = tables_of(place_of(cut.block).block);
  cut.tile = tile_near(tables, left);
  return cut.tile == tables.pixel_tiles ? Cut{cut.block + 1, 0} : cut;
}

ShareStart DenseBlocks::share_of(const BlockPart& part, int64_t member, int64_t members) const {
  if (member == 0) return {0, part.tiles.begin};
  if (member == members) return {plan_.channel_tiles, part.tiles.begin};
  const int64_t channels = plan_.tile.channels;
  const int64_t pixel_tiles = part.tiles.count();
  // Pixel tiles of one channel each.
  const int64_t before = plan_.geometry.group_out_channels() * pixel_tiles * member / members;
  const int64_t tile = std::min(before / (channels * pixel_tiles), plan_.channel_tiles - 1);
  const int64_t in_tile =
      nearest(before - tile * channels * pixel_tiles, 1, plan_.channels_of(tile));
  // What is transposed is so for all channels of a share.
  if (plan_.transposes()) return {2 * in_tile < pixel_tiles ? tile : tile + 1, part.tiles.begin};
  if (in_tile >= pixel_tiles) return {tile + 1, part.tiles.begin};
  const int64_t pixel_tile = between_pixels(*part.tables, part.tiles.begin + in_tile);
  return {tile, std::max(pixel_tile, part.tiles.begin)};
}

BlockPlace DenseBlocks::part_with(const BlockPlace& place, const PixelRange& pixels) {
  BlockPlace part = place;
  const int64_t columns = place.block.columns;
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
  explicit TeamModel(const BoundDense& bound) {
    const jit::DensePlan& plan = bound.plan;
    const BlockTables& largest = bound.blocks.front();
    const auto planes =
        static_cast<double>(plan.geometry.batch * plan.geometry.groups * plan.outer_outputs);
    rows_ = planes * static_cast<double>(plan.rows.output);
    pixel_tiles_ = rows_ * static_cast<double>(plan.columns.output) *
                   static_cast<double>(largest.pixel_tiles) /
                   static_cast<double>(largest.block.pixels());
    channel_tiles_ = static_cast<double>(plan.channel_tiles);
    shared_rows_ =
        static_cast<double>(std::max<int64_t>(plan.rows.window() / plan.rows.stride - 1, 0));
    packing_ = bound.packing_cycles / bound.cycles;
    if (bound.packs_by_tile) {
      const jit::CostEvent event = plan.has_weights_in_order() ? jit::CostEvent::packed_weight
                                                               : jit::CostEvent::listed_weight;
      const double cycles = jit::costs_on(bound.target).cycles[static_cast<size_t>(event)];
      weight_packing_ = cycles * static_cast<double>(packed_k_groups(plan)) / bound.cycles;
    }
  }

  /// Tiles of channels and pixels: more tasks than those are of no use.
  int64_t tiles() const {
    return std::max<int64_t>(static_cast<int64_t>(pixel_tiles_ * channel_tiles_), 1);
  }

  /// Cuts lie between tiles, half a tile from where they should at the most. Rows near a cut are
  /// packed on both sides of it. All members pack all rows of their team.
  double time_of(const TaskTeams& tasks) const {
    const double team = 1 / static_cast<double>(tasks.teams);
    const double member = 1 / static_cast<double>(tasks.members);
    const double half_a_tile = 0.5 / pixel_tiles_;
    double products = team * member;
    double packed = team;
    if (tasks.teams > 1) {
      products += half_a_tile * member;
      packed += half_a_tile + shared_rows_ / rows_;
    }
    if (tasks.members > 1) products += half_a_tile / channel_tiles_;
    return (1 - packing_) * products + packing_ * packed + weight_packing_ * member;
  }

 private:
  double rows_ = 0;  ///< of the output
  double pixel_tiles_ = 0;
  double channel_tiles_ = 0;
  double shared_rows_ = 0;     ///< that outputs on both sides of a cut read
  double packing_ = 0;         ///< part of the time in which input is packed
  double weight_packing_ = 0;  ///< time in which weights are packed tile by tile
};

}  // namespace

TaskTeams choose_teams(const BoundDense& bound, int64_t max_tasks) {
  if (max_tasks == 1) return {};
  const jit::KernelFloatEnvironment environment;  // times are compared in floats
  const TeamModel model(bound);
  const int64_t tasks = std::min(max_tasks, model.tiles());
  TaskTeams best = {.teams = tasks};
  for (int64_t members = 2; members <= tasks; ++members) {
    const TaskTeams each = {tasks / members, members};
    if (each.tasks() == tasks && model.time_of(each) < model.time_of(best)) best = each;
  }
  return best;
}

}  // namespace castor::detail
