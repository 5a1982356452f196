// SPDX-License-Identifier: Apache-2.0
// Plans of convolutions in words.
#include <fmt/format.h>

#include "jit/conv/conv_planning.hpp"

namespace castor::jit {

namespace {

std::string_view text_of(DwordsHold what) {
  switch (what) {
    case DwordsHold::channels: return "input channels";
    case DwordsHold::columns: return "neighbouring columns";
    case DwordsHold::taps: return "taps of a pixel";
  }
  return "";
}

std::string source_text(const ConvPlan& plan) {
  if (plan.source == ConvSource::planes) {
    constexpr std::string_view by_kernel = ", laid out by the first kernel but for window sums";
    return fmt::format("  planes   {} of {} dwords, {} {} a dword, pitch {}{}\n",
                       plan.slices * plan.dwords * plan.phase_planes(), plan.plane_dwords,
                       channels_of_k_group(plan.engine), text_of(plan.dwords_hold), plan.pitch,
                       plan.may_take_input ? by_kernel : "");
  }
  const ConvRows& rows = plan.input_rows;
  if (plan.source == ConvSource::input) {
    return fmt::format("  input    as it lies, {} B a row, {} B a column\n", rows.row_bytes,
                       rows.column_bytes);
  }
  return fmt::format("  copies   {} of {} input rows of {} B, {} B a column\n", rows.planes.size(),
                     rows.rows, rows.row_bytes, rows.column_bytes);
}

std::string bytes_text(const ConvPlan& plan) {
  if (plan.source == ConvSource::input) return "";
  return fmt::format(", {} B of {}", plan.source_bytes(),
                     plan.source == ConvSource::planes ? "planes" : "copied rows");
}

std::string tile_text(const ConvPlan& plan) {
  if (plan.lanes_hold == ConvLanes::pixels) {
    const int64_t lanes = plan.line_tiles(plan.block) * plan.tile.vectors * plan.lanes;
    const std::string line =
        plan.rows_are_lines
            ? fmt::format("  lines    {} rows of {} pixels, each in {} lanes\n", plan.block.rows,
                          plan.block.columns, lanes / plan.block.rows)
            : fmt::format("  line     {} pixels, {} of them stored, in {} lanes\n",
                          plan.line_pixels(plan.block), plan.block.rows * plan.block.columns,
                          lanes);
    return line + fmt::format("  tile     {} output channels by {} vectors of {} pixels, {} taps\n",
                              plan.tile.channels, plan.tile.vectors, plan.lanes, plan.k_steps());
  }
  const DenseTile& tile = plan.channel_tile;
  return fmt::format(
      "  tile     {} output channels in vectors of {}, by {} rows of {} pixels{}, {} taps\n",
      tile.channels, plan.lanes, tile.pixel_rows, tile.columns,
      tile.store == StorePolicy::transposed ? ", turned around" : "", plan.k_steps());
}

}  // namespace

std::string print(const ConvPlan& plan) {
  const ConvolutionGeometry& geometry = plan.geometry;
  return fmt::format("  groups   {} of {} to {} channels\n", geometry.groups,
                     geometry.group_channels(), geometry.group_out_channels()) +
         source_text(plan) +
         fmt::format("  block    {} of {} output rows, {} of {} columns{}\n", plan.block.rows,
                     plan.rows.output, plan.block.columns, plan.columns.output, bytes_text(plan)) +
         tile_text(plan) + fmt::format("  caches   {}\n", print(plan.caches));
}

}  // namespace castor::jit
