// SPDX-License-Identifier: Apache-2.0
// The register tiles of a dense plan's blocks: where each reads and stores.
#include <bit>

#include "jit/conv/dense_plan.hpp"

namespace castor::jit {

DenseTile kernel_tile(DenseTile tile, bool has_epilogue) {
  tile.prefetches_output = tile.prefetches_output && !has_epilogue;
  tile.has_idle_products = tile.has_idle_products && !has_epilogue;
  tile.transposes_registers = tile.transposes_registers && !has_epilogue;
  if (tile.transposes_registers) {  // which needs all sums at the same time
    tile.peeled_k_steps = DenseTile{}.peeled_k_steps;
    tile.group_rows = DenseTile{}.group_rows;
  }
  if (tile.has_tiles()) {
    tile.pixel_step = DenseTile{}.pixel_step;
    tile.row_step = DenseTile{}.row_step;
  }
  return tile;
}

bool sums_lanes_first(const DensePlan& plan) {
  const auto* input = plan.planes();
  const bool has_channels = input != nullptr && input->layout == PackedLayout::nchw4c;
  const bool shares_lanes = has_channels && input->taps() > input->stride_phases();
  return shares_lanes && !plan.tile.loops_k_groups;
}

DenseTile window_sum_tile(const DensePlan& plan) {
  DenseTile tile = {.engine = plan.engine, .vectors = vectors_of_window_sums};
  if (plan.is_pixel_vectorised() || sums_lanes_first(plan)) return tile;
  tile.vectors =
      static_cast<int>(std::min<int64_t>(plan.vectors_of(plan.block), vectors_of_window_sums));
  if (plan.has_dead_lanes()) tile.store = StorePolicy::compressed;
  return tile;
}

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

}  // namespace

std::vector<ConvStore> vector_stores(const DensePlan& plan, const CacheBlock& block, int vectors) {
  const PackedPlanes& planes = *plan.planes();
  // Rows of one sequence of lanes, and sequences.
  const int64_t rows = planes.has_aligned_rows ? 1 : block.rows;
  const int64_t sequences = block.rows / rows;
  const int64_t vectors_of_sequence = plan.tiles_of(block, vectors) * vectors / sequences;
  std::vector<ConvStore> stores;
  stores.reserve(static_cast<size_t>(sequences * vectors_of_sequence));
  int64_t stored_before = 0;
  for (int64_t sequence = 0; sequence < sequences; ++sequence) {
    for (int64_t lane = 0; lane < vectors_of_sequence * plan.lanes; lane += plan.lanes) {
      uint32_t mask = 0;
      for (int i = 0; i < plan.lanes; ++i) {
        const int64_t row = rows == 1 ? 0 : (lane + i) / planes.pitch;
        const int64_t column = lane + i - row * planes.pitch;
        mask |= static_cast<uint32_t>(row < rows && column < block.columns) << i;
      }
      stores.push_back(store_of(stored_before, 4 * (sequence * planes.pitch + lane), mask));
      stored_before += std::popcount(mask);
    }
  }
  return stores;
}

std::vector<ConvStore> window_sum_stores(const DensePlan& plan, const CacheBlock& block) {
  const bool by_lane = sums_lanes_first(plan);
  if (!plan.is_pixel_vectorised() && !by_lane) {
    return vector_stores(plan, block, window_sum_tile(plan).vectors);
  }
  static_assert(ConvStore::max_lanes * vectors_of_window_sums <= max_lanes_read_behind);
  const int64_t lanes_of_tile = int64_t{plan.lanes} * vectors_of_window_sums;
  const int64_t lanes = plan.lane_count(block) + (by_lane ? plan.planes()->window_reach() : 0);
  const int64_t tiles = ceil_div(lanes, lanes_of_tile);
  std::vector<ConvStore> stores;
  for (int64_t lane = 0; lane < tiles * lanes_of_tile; lane += plan.lanes) {
    stores.push_back(store_of(lane, 4 * lane, (1u << plan.lanes) - 1));
  }
  return stores;
}

namespace {

/// Appends channel-vectorised tiles of `rows` rows from `first` on, as many as there are. Parts of
/// rows have one width; the last one of a row begins inside the one before, or is narrower.
class ChannelTiles {
 public:
  ChannelTiles(const DensePlan& plan, const CacheBlock& block, bool may_share_pixels)
      : plan_(plan), block_(block), may_share_(may_share_pixels) {}

  void add(int64_t first, int64_t rows, std::vector<TileRun>& runs) const {
    const int64_t columns = block_.columns;
    const int64_t width = ceil_div(columns, ceil_div(columns, plan_.tile.columns));
    bool is_new = true;
    for (int64_t row = first; row + rows <= block_.rows; row += rows) {
      for (int64_t column = 0; column < columns; column += width) {
        const bool is_narrower = column + width > columns && !may_share_;
        if (is_new || is_narrower) {
          runs.push_back(run_of(is_narrower ? columns - column : width, rows));
        }
        is_new = is_narrower;
        add_tile(row, is_narrower ? column : std::min(column, columns - width), runs.back());
      }
    }
  }

 private:
  TileRun run_of(int64_t columns, int64_t rows) const {
    TileRun run = {.tile = plan_.tile, .stores = {}, .places = {}};
    run.tile.columns = static_cast<int>(columns);
    run.tile.pixel_rows = static_cast<int>(rows);
    if (rows == 1) run.tile.row_step = 0;
    return run;
  }

  void add_tile(int64_t row, int64_t column, TileRun& to) const {
    to.places.push_back({row * plan_.columns.output + column,
                         row * plan_.source_row_step() + column * plan_.source_column_step()});
    ++to.count;
  }

  const DensePlan& plan_;
  const CacheBlock& block_;
  const bool may_share_;
};

}  // namespace

std::vector<TileRun> tile_runs(const DensePlan& plan, const CacheBlock& block,
                               bool may_share_pixels) {
  if (plan.is_pixel_vectorised()) {
    return {{.tile = plan.tile,
             .stores = vector_stores(plan, block, plan.tile.vectors),
             .places = {},
             .count = plan.tiles_of(block, plan.tile.vectors)}};
  }
  const int64_t rows = plan.tile.pixel_rows;
  const int64_t rest = block.rows % rows;
  std::vector<TileRun> runs;
  const ChannelTiles tiles(plan, block, may_share_pixels);
  if (block.rows >= rows) tiles.add(0, rows, runs);
  if (rest > 0) tiles.add(block.rows - rest, rest, runs);
  return runs;
}

int rows_of_group(int vectors, const Target& target) {
  return std::max(1, target.tuning().dense.stored_group_vectors / vectors);
}

/// An even number of k steps is left, unless all are peeled.
void peel_k_steps(DenseTile& tile, size_t k_steps, const Target& target) {
  const auto max = static_cast<size_t>(target.tuning().dense.max_peeled_k_steps);
  const int rows = rows_of_group(tile.vectors_of(target.vector_bits() / 32), target);
  if (!target.has_avx512() || rows == 1) return;
  tile.peeled_k_steps = static_cast<int>(k_steps <= max ? k_steps : max - (k_steps - max) % 2);
  tile.group_rows = rows;
}

}  // namespace castor::jit
