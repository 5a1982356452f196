// SPDX-License-Identifier: Apache-2.0
// Register tiles that are made of tile registers (AMX): the forms that a plan may give them, and
// the order in which kernels go through them.
#include <optional>

#include "jit/conv/candidates.hpp"

namespace castor::jit {

namespace {

constexpr int64_t cache_line = 64;

/// Lines of the next tile of channels' weights that each k step prefetches where they come from
/// beyond L2, so that the next one finds them there, and none of its pixel tiles waits for all.
int prefetched_lines(const DensePlan& plan, const DenseTile& tile, const Target& target) {
  if (tile.channels_inside || has_near_weights(plan, target)) return 0;
  const int64_t bytes = int64_t{tile.step_bytes} * tile.vectors_of(plan.lanes) * plan.lanes;
  return static_cast<int>(ceil_div(bytes / cache_line, plan.channel_vectorised_tiles(tile)));
}

/// Whole rows of pixels in that many tile registers, as one line with dead positions between them.
std::optional<DenseTile> tile_of_one_line(const DensePlan& plan, DenseTile tile, int registers) {
  const int64_t columns = plan.block.columns;
  const int64_t row_step = plan.source_row_step();
  const int64_t pixel_step = plan.source_column_step();
  if (columns < plan.columns.output || row_step % pixel_step != 0) return std::nullopt;
  const int64_t max_positions = int64_t{registers} * DenseTile::tile_rows;
  if (columns > max_positions) return std::nullopt;
  const int64_t pitch = row_step / pixel_step;
  const int64_t rows = (max_positions - columns) / pitch + 1;
  tile.columns = static_cast<int>(columns);
  tile.pixel_rows = static_cast<int>(even_part(plan.block.rows, std::min(rows, plan.block.rows)));
  tile.row_pitch = static_cast<int>(pitch);
  tile.row_step = static_cast<int32_t>(row_step);
  const bool has_rows = tile.pixel_rows > 1 && tile.pixel_tiles() == registers;
  return has_rows ? std::optional(tile) : std::nullopt;
}

/// Those in which tiles of channels follow each other for some pixels, or pixels for a tile of
/// channels.
void add_in_order(const DensePlan& plan, int vectors, bool channels_inside, const Target& target,
                  std::vector<DenseTile>& tiles) {
  DenseTile tile = plan.tile;
  tile.channels_inside = channels_inside;
  tile.channels = plan.channels_of_tile(vectors);
  tile.pixel_rows = 1;
  tile.row_step = tile.row_pitch = 0;
  for (int count = 1; count <= DenseTile::max_pixel_tiles; ++count) {
    DenseTile along = tile;
    along.columns =
        static_cast<int>(even_part(plan.block.columns, int64_t{count} * DenseTile::tile_rows));
    if (along.pixel_tiles() == count && fits(along, target)) tiles.push_back(along);
    const bool has_apart_rows =  // in the output: they cannot be transposed together
        tile.store == StorePolicy::transposed && plan.block.columns < plan.columns.output;
    if (const auto line = tile_of_one_line(plan, tile, count); line && fits(*line, target)) {
      tiles.push_back(*line);
    }
    if (count == 1 || has_apart_rows || plan.block.columns > DenseTile::tile_rows) continue;
    DenseTile across = tile;
    across.columns = static_cast<int>(plan.block.columns);
    across.pixel_rows = static_cast<int>(even_part(plan.block.rows, count));
    across.row_step = static_cast<int32_t>(plan.source_row_step());
    if (across.pixel_tiles() > 1 && fits(across, target)) tiles.push_back(across);
  }
}

}  // namespace

void add_register_tiles(const DensePlan& plan, int vectors, const Target& target,
                        std::vector<DenseTile>& tiles) {
  const bool is_one_tile = plan.channels_of_tile(vectors) == plan.geometry.group_out_channels();
  add_in_order(plan, vectors, false, target, tiles);
  if (!is_one_tile) add_in_order(plan, vectors, true, target, tiles);
}

void set_register_tile(DensePlan& plan, DenseTile tile, const Target& target) {
  tile.streams_weights = streams_weights(plan, tile, target);
  tile.fetches_weights = fetches_weights(plan, tile, target);
  tile.streams_pixels = streams_pixels(plan, tile, target);
  tile.prefetched_lines = prefetched_lines(plan, tile, target);
  tile.has_idle_products =
      static_cast<double>(plan.k_steps.size()) >= costs_on(target).tiles.min_idle_k_steps;
  set_tile(plan, tile);
}

}  // namespace castor::jit
