// SPDX-License-Identifier: Apache-2.0
// Where the results of a block's tiles go.
#include <algorithm>
#include <bit>

#include "jit/conv/conv_planning.hpp"

namespace castor::jit {

namespace {

ConvStore store_of(int64_t pixel, int64_t source, uint32_t lanes) {
  ConvStore store;
  store.pixel = pixel;
  store.source = source;
  store.lanes = lanes;
  store.first_lanes = (1u << std::popcount(lanes)) - 1;
  int stored = 0;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    store.order[stored] = std::countr_zero(left);
    store.stored[stored] = -1;
    ++stored;
  }
  return store;
}

/// Where each row is a line.
std::vector<ConvStore> row_stores(const ConvPlan& plan, const ConvBlock& block) {
  const int64_t lanes = plan.lanes;
  const int64_t vectors = plan.row_tiles(block) * plan.tile.vectors;
  std::vector<ConvStore> stores;
  stores.reserve(static_cast<size_t>(block.rows * vectors));
  for (int64_t row = 0; row < block.rows; ++row) {
    for (int64_t vector = 0; vector < vectors; ++vector) {
      const int64_t column = vector * lanes;
      const int64_t stored = std::clamp<int64_t>(block.columns - column, 0, lanes);
      stores.push_back(store_of(row * block.columns + std::min(column, block.columns),
                                4 * (row * plan.pitch + column), (1u << stored) - 1));
    }
  }
  return stores;
}

}  // namespace

std::vector<ConvStore> line_stores(const ConvPlan& plan, const ConvBlock& block) {
  if (plan.rows_are_lines) return row_stores(plan, block);
  const int lanes = plan.lanes;
  const int64_t vectors = plan.line_tiles(block) * plan.tile.vectors;
  std::vector<ConvStore> stores;
  stores.reserve(static_cast<size_t>(vectors));
  int64_t stored_before = 0;
  int64_t row = 0;
  int64_t column = 0;
  for (int64_t vector = 0; vector < vectors; ++vector) {
    uint32_t mask = 0;
    for (int lane = 0; lane < lanes; ++lane) {
      const bool is_pixel = row < block.rows && column < block.columns;
      mask |= static_cast<uint32_t>(is_pixel) << lane;
      if (++column < plan.pitch) continue;
      column = 0;
      ++row;
    }
    stores.push_back(store_of(stored_before, 4 * vector * lanes, mask));
    stored_before += std::popcount(mask);
  }
  return stores;
}

std::vector<ConvStore> plain_stores(const ConvPlan& plan, const ConvBlock& block) {
  constexpr int64_t lanes_of_a_tile = ConvStore::max_lanes * vectors_of_window_sums;
  const int64_t vectors = ceil_div(plan.line_pixels(block), plan.lanes);
  const int64_t tiles = ceil_div(vectors, vectors_of_window_sums);
  static_assert(lanes_of_a_tile <= max_lanes_read_behind);
  std::vector<ConvStore> stores;
  for (int64_t vector = 0; vector < tiles * vectors_of_window_sums; ++vector) {
    const int64_t pixel = plan.lanes * vector;
    stores.push_back(store_of(pixel, 4 * pixel, (1u << plan.lanes) - 1));
  }
  return stores;
}

namespace {

/// Parts of rows: all of one width; the last one of a row may begin inside the one before.
ChannelTileRun parts_of_rows(const ConvPlan& plan, const ConvBlock& block) {
  ChannelTileRun run = {.tile = plan.channel_tile, .places = {}};
  const int64_t tiles = ceil_div(block.columns, plan.channel_tile.columns);
  const int64_t width = ceil_div(block.columns, tiles);
  run.tile.columns = static_cast<int>(width);
  for (int64_t row = 0; row < block.rows; ++row) {
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t column = std::min(i * width, block.columns - width);
      run.places.push_back({row * plan.output_columns() + column,
                            row * plan.source_row_step() + column * plan.source_column_step()});
    }
  }
  return run;
}

/// Tiles of whole rows from `first` on.
ChannelTileRun whole_rows(const ConvPlan& plan, int64_t first, int64_t tiles, int rows) {
  ChannelTileRun run = {.tile = plan.channel_tile, .places = {}};
  run.tile.pixel_rows = rows;
  if (rows == 1) run.tile.row_step = 0;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t row = first + i * rows;
    run.places.push_back({row * plan.output_columns(), row * plan.source_row_step()});
  }
  return run;
}

}  // namespace

std::vector<ChannelTileRun> channel_tile_runs(const ConvPlan& plan, const ConvBlock& block) {
  const int rows = plan.channel_tile.pixel_rows;
  if (rows == 1) return {parts_of_rows(plan, block)};
  std::vector<ChannelTileRun> runs;
  const int64_t whole = block.rows / rows;
  const auto rest = static_cast<int>(block.rows % rows);
  if (whole > 0) runs.push_back(whole_rows(plan, 0, whole, rows));
  if (rest > 0) runs.push_back(whole_rows(plan, whole * rows, 1, rest));
  return runs;
}

}  // namespace castor::jit
