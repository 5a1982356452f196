// SPDX-License-Identifier: Apache-2.0
// Which output pixels are done at a time, where the input is laid out in planes.
#include <algorithm>

#include "jit/conv/conv_planning.hpp"

namespace castor::jit {

namespace {

/// So shall the outputs of a block, where they are put in another order behind the kernels.
int64_t max_output_bytes(const ConvPlan& plan) { return second_cache(plan.caches) / 4; }

/// The least pitch at which no pixel's taps meet another row's data. Where a row ends in padding
/// and the next one begins with some, the two share it.
int64_t min_pitch(const ConvolutionAxis& axis, const ConvPhases& phases) {
  const int64_t width = axis.output + phases.max_shift;
  int64_t pitch = 1;
  for (int64_t phase : phases.phases) {
    const int64_t first = axis.pad_begin - phase;  // of the data, before strides
    const int64_t left =
        std::clamp<int64_t>(ceil_div(std::max<int64_t>(first, 0), axis.stride), 0, width);
    const int64_t data_end = std::clamp<int64_t>(
        ceil_div(std::max<int64_t>(axis.input + first, 0), axis.stride), 0, width);
    pitch = std::max(pitch, width - std::min(left, width - data_end));
  }
  return std::max(pitch, axis.output);
}

/// Of a part of a row, if there are as many: a vector.
constexpr int64_t min_columns = 16;

/// Pixels of a block at the most.
int64_t pixels_of_block(const ConvPlan& plan) {
  if (plan.geometry.layout != ConvolutionLayout::nhwc) return max_block_pixels;
  const int64_t pixels = max_output_bytes(plan) / 4 / plan.geometry.group_out_channels();
  return std::clamp(pixels, min_columns, max_block_pixels);
}

/// Rows of a block of few channels, so that there is enough to do with each tile of channels, and
/// little is laid out twice.
int64_t min_near_rows(const ConvPlan& plan) {
  constexpr int64_t min_pixels = 1024;
  return std::max(ceil_div(min_pixels, plan.columns.output), 3 * plan.row_phases.max_shift);
}

/// Rows whose windows stay near the first cache, from where they are written until they are read,
/// while outputs pass through it; not so few that each tile of channels has little to do.
int64_t window_rows(const ConvPlan& plan) {
  constexpr int64_t min_pixels = 1536;
  const int64_t near = 2 * plan.caches.l1 / 4 / plan.dwords / plan.pitch;
  return std::max(near, ceil_div(min_pixels, plan.columns.output));
}

/// Tiles of the usual two vectors in all blocks of so many rows, each block one line.
int64_t tiles_of_blocks(const ConvPlan& plan, int64_t rows) {
  const auto tiles = [&](int64_t of) {
    return ceil_div(of * plan.block.columns, int64_t{2} * plan.lanes);
  };
  return plan.rows.output / rows * tiles(rows) + tiles(plan.rows.output % rows);
}

/// All blocks of about a size; where rows follow each other without gaps, whole tiles if possible.
int64_t rows_of_block(const ConvPlan& plan, int64_t max_rows) {
  int64_t best = ceil_div(plan.rows.output, ceil_div(plan.rows.output, max_rows));
  const bool is_one_line = plan.pitch == plan.block.columns && !plan.rows_are_lines;
  if (!is_one_line || plan.lanes_hold != ConvLanes::pixels) return best;
  int64_t min = tiles_of_blocks(plan, best);
  for (int64_t rows = max_rows / 2 + 1; rows <= max_rows; ++rows) {
    if (tiles_of_blocks(plan, rows) >= min) continue;
    best = rows;
    min = tiles_of_blocks(plan, rows);
  }
  return best;
}

}  // namespace

void choose_block(ConvPlan& plan) {
  const int64_t planes = plan.slices * plan.dwords * plan.phase_planes();
  const int64_t max_dwords = max_source_bytes(plan.caches) / 4 / planes;
  const int64_t extra_rows = plan.row_phases.max_shift;
  const int64_t rows = plan.rows.output;
  const int64_t columns = plan.columns.output;
  plan.block = {.rows = 1, .columns = columns};
  plan.pitch = plan.dwords_hold == DwordsHold::channels
                   ? min_pitch(plan.columns, plan.column_phases)
                   : columns + plan.column_phases.max_shift;
  if (plan.rows_are_lines) plan.pitch = ceil_div(plan.pitch, plan.lanes) * plan.lanes;
  const int64_t fitting = max_dwords / plan.pitch - extra_rows;
  const int64_t max_pixels = pixels_of_block(plan);
  if (fitting >= 1 && columns <= max_pixels) {
    const int64_t near = near_source_bytes(plan.caches) / 4 / planes / plan.pitch - extra_rows;
    const bool stays_near = plan.rows_are_lines && near >= min_near_rows(plan);
    int64_t max_rows = std::min({stays_near ? near : fitting, rows, max_pixels / columns});
    if (plan.dwords_hold == DwordsHold::taps) max_rows = std::min(max_rows, window_rows(plan));
    plan.block.rows = rows_of_block(plan, max_rows);
  } else {
    const int64_t fitting_part = max_dwords / (1 + extra_rows) - plan.column_phases.max_shift;
    const int64_t part = std::min(fitting_part, max_pixels);
    const int64_t parts =
        ceil_div(columns, std::clamp(part, std::min(min_columns, columns), columns));
    plan.block.columns = ceil_div(columns, parts);
    plan.pitch = plan.block.columns + plan.column_phases.max_shift;
  }
  plan.plane_dwords = (plan.block.rows + extra_rows) * plan.pitch + plan.column_phases.max_shift;
  constexpr int64_t min_vectors = 4;  // smaller planes would grow much
  if (plan.lanes_hold == ConvLanes::pixels && plan.plane_dwords >= min_vectors * plan.lanes) {
    plan.plane_dwords = ceil_div(plan.plane_dwords, plan.lanes) * plan.lanes;
  }
}

}  // namespace castor::jit
