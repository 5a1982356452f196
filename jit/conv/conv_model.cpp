// SPDX-License-Identifier: Apache-2.0
// The model that tiles and forms are chosen by: cycles on a core that does one product of vectors
// of 512 bits a cycle or two of 256, two loads, and half a store.
#include <algorithm>

#include "jit/conv/conv_planning.hpp"
#include "jit/conv/last_taps.hpp"

namespace castor::jit {

namespace {

constexpr double load = 0.5;
constexpr double store = 2;

/// Of one product and its sum: of words an instruction each.
double product(const ConvPlan& plan) {
  const double instruction = plan.lanes == 16 ? 1 : 0.5;
  return plan.engine == ProductEngine::u8_i8_dot ? instruction : 2 * instruction;
}

/// Until the next product can be added to the same sum: five cycles, in which cores with two
/// multipliers have time for ten products.
double latency(const ConvPlan& plan) { return plan.engine == ProductEngine::u8_i8_dot ? 10 : 1; }

/// Whether stores write whole lines of the cache, where the output begins with one.
bool has_whole_lines(const ConvPlan& plan) {
  const bool is_one_line = plan.pitch == plan.block.columns;
  const int64_t pixels = is_one_line ? plan.block.rows * plan.block.columns : plan.block.columns;
  return (is_one_line || plan.rows_are_lines) && pixels * 4 % 64 == 0;
}

/// While all sums of a tile are stored at once (jit/conv/last_taps.hpp), if they are many.
double standing_still(const ConvPlan& plan, int vectors, bool has_gaps) {
  const bool are_many = plan.lanes == 16;
  return are_many && (has_gaps || rows_of_group(vectors) == 1) ? 12 : 0;
}

/// Tiles of output channels in units of whole ones.
double tiles_of(const ConvPlan& plan, int tile_channels) {
  const int64_t channels = plan.geometry.group_out_channels();
  const int64_t whole = channels / tile_channels;
  const double rest = static_cast<double>(channels % tile_channels) / tile_channels;
  constexpr double min_rest = 0.4;  // few channels have little to do for each load
  return static_cast<double>(whole) + (rest > 0 ? std::max(rest, min_rest) : 0);
}

}  // namespace

double unaligned_taps(const ConvPlan& plan) {
  const auto unaligned =
      std::ranges::count_if(plan.taps, [](int32_t tap) { return tap % 64 != 0; });
  return static_cast<double>(unaligned) / static_cast<double>(plan.taps.size());
}

/// Products, or what brings their operands, and a little for every load that is not free; then what
/// follows the taps.
double cycles_of_line(const ConvPlan& plan, double unaligned) {
  const double m = plan.tile.channels;
  const double v = plan.tile.vectors;
  constexpr double pixels_from_l1 = 1;
  constexpr double pixels_from_l2 = 2;  // once for all taps of a plane
  // Pixels begin anywhere in a line of the cache, so that most of their loads are two; where rows
  // are lines, those of many taps do not.
  const double any_pixels = 0.25 * unaligned;
  constexpr double any_weight = 0.1;
  const auto taps = static_cast<double>(plan.k_steps());
  const auto planes = static_cast<double>(plan.slices * plan.dwords * plan.phase_planes());
  const double plane_bytes = 4 * planes * static_cast<double>(plan.plane_dwords);
  const bool stays_near = plane_bytes <= 0.75 * static_cast<double>(plan.caches.l1);
  const double from_l2 = stays_near ? 0 : pixels_from_l2 * v * planes / taps;
  constexpr double not_hidden = 0.2;  // they are prefetched
  const double tap =
      std::max({m * v * product(plan), latency(plan), pixels_from_l1 * v + load * m}) +
      any_pixels * v + any_weight * m + not_hidden * from_l2;
  const double ends_of_a_product = has_whole_lines(plan) ? 2 : 3;
  const double end =
      m * v * ends_of_a_product + standing_still(plan, plan.tile.vectors, plan.line_has_gaps());
  const double line = static_cast<double>(plan.line_tiles(plan.block)) * (tap * taps + end);
  return line * tiles_of(plan, plan.tile.channels);
}

double cycles_of_block(const ConvPlan& plan, const ChannelTile& tile, const ConvBlock& block) {
  const double pixels = tile.pixels();
  const double v = static_cast<double>(ceil_div(tile.channels, plan.lanes));
  const auto taps = static_cast<double>(plan.k_steps());
  constexpr double any_load = 0.05;
  const double tap = std::max({pixels * v * product(plan), latency(plan), load * (pixels + v)}) +
                     any_load * (pixels + v);
  constexpr double start_of_a_product = 1;
  constexpr double turned_vector = 2;   // of a pixel, by way of the stack
  constexpr double turned_channel = 9;  // shuffles and a store
  const double ends =
      tile.turns ? v * (pixels * turned_vector + plan.lanes * turned_channel) : v * pixels * store;
  const auto tiles =
      static_cast<double>(ceil_div(block.rows, tile.rows) * ceil_div(block.columns, tile.columns));
  const double end =
      pixels * v * start_of_a_product + ends + standing_still(plan, static_cast<int>(v), false);
  return tiles * (tap * taps + end) * tiles_of(plan, tile.channels);
}

namespace {

/// Of one dword of a plane.
double filled_dword(const ConvPlan& plan) {
  constexpr double far_apart = 2;  // side by side, but far from the next pixel's
  constexpr double interleaved = 0.6;
  constexpr double interleaved_by_kernel = 0.3;
  if (plan.geometry.layout == ConvolutionLayout::nhwc) return far_apart;
  switch (plan.dwords_hold) {
    case DwordsHold::columns: return 0.2;  // one permutation of a row's bytes
    case DwordsHold::taps: return 0.25;    // two
    case DwordsHold::channels: break;
  }
  return plan.may_take_input ? interleaved_by_kernel : interleaved;
}

/// Of one block: what lays out its input.
double filling_cycles(const ConvPlan& plan) {
  constexpr double copied_byte = 1.0 / 24;
  constexpr double copied_row = 15;
  if (plan.source == ConvSource::planes) {
    return filled_dword(plan) *
           static_cast<double>(plan.slices * plan.dwords * plan.phase_planes()) *
           static_cast<double>(plan.block.rows + plan.row_phases.max_shift) *
           static_cast<double>(plan.block.columns + plan.column_phases.max_shift);
  }
  if (plan.source == ConvSource::input) return 0;
  return static_cast<double>(plan.input_rows.planes.size()) *
         static_cast<double>(plan.input_rows.rows) *
         (copied_row + copied_byte * static_cast<double>(plan.input_rows.row_bytes));
}

}  // namespace

void set_cycles(ConvPlan& plan, double of_a_block) {
  constexpr double transposed = 0.8;  // of an output
  const double outputs = static_cast<double>(plan.rows.output) *
                         static_cast<double>(plan.columns.output) *
                         static_cast<double>(plan.outer_outputs * plan.geometry.groups);
  const double blocks = outputs / static_cast<double>(plan.block.rows * plan.block.columns);
  double storing = 0;
  if (plan.transposes()) {
    storing = transposed * static_cast<double>(plan.block.rows * plan.block.columns *
                                               plan.geometry.group_out_channels());
  }
  plan.filling_cycles = filling_cycles(plan) * blocks;
  plan.cycles = (of_a_block + storing) * blocks + plan.filling_cycles;
}

}  // namespace castor::jit
