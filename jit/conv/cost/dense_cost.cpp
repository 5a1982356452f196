// SPDX-License-Identifier: Apache-2.0
// What dense plans cost.
#include <algorithm>

#include "jit/conv/conv_planning.hpp"
#include "jit/conv/cost/costs.hpp"

namespace castor::jit {

namespace {

using enum CostEvent;

/// Of one product and its sum, two instructions for pairs of i16.
double product(const ConvPlan& plan, const ConvolutionCosts& costs) {
  const double instruction = plan.lanes == 16 ? costs.product_512 : costs.product_256;
  return plan.engine == ProductEngine::u8_i8_dot ? instruction : 2 * instruction;
}

/// Until the next product can be added to the same accumulator.
double latency(const ConvPlan& plan, const ConvolutionCosts& costs) {
  return plan.engine == ProductEngine::u8_i8_dot ? costs.latency : 1;
}

/// Whether stores write whole cache lines, where the output begins with one.
bool has_whole_lines(const ConvPlan& plan) {
  const bool is_one_line = plan.pitch == plan.block.columns;
  const int64_t pixels = is_one_line ? plan.block.rows * plan.block.columns : plan.block.columns;
  return (is_one_line || plan.rows_are_lines) && pixels * 4 % 64 == 0;
}

/// Whether all accumulators of a tile are stored at once (peeled_k_steps_of), if they are
/// many.
bool stalls(const ConvPlan& plan, int vectors, bool has_dead_lanes) {
  return plan.lanes == 16 && (has_dead_lanes || rows_of_group(vectors) == 1);
}

/// Tiles of output channels in units of whole ones.
double tiles_of(const ConvPlan& plan, int tile_channels) {
  const int64_t channels = plan.geometry.group_out_channels();
  const int64_t whole = channels / tile_channels;
  const double rest = static_cast<double>(channels % tile_channels) / tile_channels;
  constexpr double min_rest = 0.4;  // few channels have little to do for each load
  return static_cast<double>(whole) + (rest > 0 ? std::max(rest, min_rest) : 0);
}

double blocks_of(const ConvPlan& plan) {
  const double outputs = static_cast<double>(plan.rows.output) *
                         static_cast<double>(plan.columns.output) *
                         static_cast<double>(plan.outer_outputs * plan.geometry.groups);
  return outputs / static_cast<double>(plan.block.rows * plan.block.columns);
}

}  // namespace

double unaligned_fraction(const ConvPlan& plan) {
  const auto unaligned =
      std::ranges::count_if(plan.taps, [](int32_t tap) { return tap % 64 != 0; });
  return static_cast<double>(unaligned) / static_cast<double>(plan.taps.size());
}

EventCounts cost_of_line(const ConvPlan& plan, double unaligned, const ConvolutionCosts& costs) {
  const double m = plan.tile.channels;
  const double v = plan.tile.vectors;
  const auto k_steps = static_cast<double>(plan.k_steps());
  const auto planes = static_cast<double>(plan.slices * plan.dwords * plan.phase_planes());
  const double plane_bytes = 4 * planes * static_cast<double>(plan.plane_dwords);
  const bool stays_in_l1 = plane_bytes <= 0.75 * static_cast<double>(plan.caches.l1);
  EventCounts tile;
  tile[k_loop] = k_steps * std::max({m * v * product(plan, costs), latency(plan, costs),
                                     2 * costs.load * v + costs.load * m});
  tile[unaligned_load] = unaligned * v * k_steps;
  tile[weight_broadcast] = m * k_steps;
  if (!stays_in_l1) tile[l2_vector] = v * planes;  // once for all k steps of a plane
  tile[has_whole_lines(plan) ? stored_vector : split_stored_vector] = m * v;
  tile[stalled_tile] = stalls(plan, plan.tile.vectors, plan.line_has_gaps()) ? 1 : 0;
  return tile *
         (static_cast<double>(plan.line_tiles(plan.block)) * tiles_of(plan, plan.tile.channels));
}

EventCounts cost_of_block(const ConvPlan& plan, const DenseTile& tile,
                          const ConvolutionCosts& costs) {
  const double pixels = tile.pixels();
  const double v = static_cast<double>(ceil_div(tile.channels, plan.lanes));
  const auto k_steps = static_cast<double>(plan.k_steps());
  EventCounts one;
  one[k_loop] = k_steps * std::max({pixels * v * product(plan, costs), latency(plan, costs),
                                    costs.load * (pixels + v)});
  one[operand_load] = k_steps * (pixels + v);
  one[tile.store == StorePolicy::transposed ? staged_vector : nhwc_stored_vector] = pixels * v;
  if (tile.store == StorePolicy::transposed) one[transposed_channel] = v * plan.lanes;
  one[stalled_tile] = stalls(plan, static_cast<int>(v), false) ? 1 : 0;
  const auto tiles = static_cast<double>(ceil_div(plan.block.rows, tile.pixel_rows) *
                                         ceil_div(plan.block.columns, tile.columns));
  return one * (tiles * tiles_of(plan, tile.channels));
}

namespace {

/// How k groups of packed input are made: by code where there is code (jit/conv/pack).
CostEvent packing_event(const ConvPlan& plan, const Target& target) {
  if (plan.dwords_hold == DwordsHold::taps) return packed_im2col;
  const bool in_bytes = plan.engine == ProductEngine::u8_i8_dot;
  if (plan.geometry.layout == ConvolutionLayout::nhwc) {
    return in_bytes ? packed_nhwc : packed_one_by_one;
  }
  const bool holds_columns = plan.dwords_hold == DwordsHold::columns;
  if (!in_bytes || !fits(pack_input_spec(plan), target)) {
    return plan.columns.stride <= 2 && !holds_columns ? packed_by_loops : packed_one_by_one;
  }
  if (holds_columns) return packed_columns4;
  return plan.may_take_input ? packed_by_kernel : packed_nchw4c;
}

/// Window sums of a cache block, which a tile of one channel of ones computes on packed input, and
/// loops on rows.
EventCounts window_sum_cost(const ConvPlan& plan, const ConvolutionCosts& costs) {
  EventCounts cost;
  if (plan.source != ConvSource::planes) {
    const double rows = static_cast<double>((plan.block.rows - 1) * plan.rows.stride) +
                        static_cast<double>(plan.rows.window());
    const double columns = static_cast<double>((plan.block.columns - 1) * plan.columns.stride) +
                           static_cast<double>(plan.columns.window());
    cost[summed_byte] = rows * columns * static_cast<double>(plan.slices) *
                        static_cast<double>(plan.geometry.group_channels());
    return cost;
  }
  const auto vectors = static_cast<double>(ceil_div(plan.line_pixels(plan.block), plan.lanes));
  const double tile = std::max(vectors_of_window_sums * product(plan, costs), latency(plan, costs));
  cost[k_loop] =
      tile * static_cast<double>(plan.k_steps()) * std::max(vectors / vectors_of_window_sums, 1.0);
  return cost;
}

}  // namespace

EventCounts packing_cost(const ConvPlan& plan, const ConvolutionProblem& problem,
                         const Target& target) {
  EventCounts cost;
  if (plan.source == ConvSource::planes) {
    const double rows = static_cast<double>(plan.slices * plan.dwords * plan.phase_planes()) *
                        static_cast<double>(plan.block.rows + plan.row_phases.max_shift);
    cost[packed_row] = rows;
    cost[packing_event(plan, target)] =
        rows * static_cast<double>(plan.block.columns + plan.column_phases.max_shift);
  } else if (plan.source == ConvSource::rows) {
    const double rows = static_cast<double>(plan.input_rows.planes.size()) *
                        static_cast<double>(plan.input_rows.rows);
    cost[copied_row] = rows;
    const double bytes = rows * static_cast<double>(plan.input_rows.row_bytes);
    const bool is_copy = plan.engine == ProductEngine::u8_i8_dot && !problem.x_is_signed;
    cost[is_copy ? copied_byte : converted_byte] = bytes;
    if (plan.geometry.layout == ConvolutionLayout::nhwc && plan.geometry.groups > 1) {
      cost[copied_column] = rows * static_cast<double>(plan.input_rows.columns);
    }
  }
  return cost * blocks_of(plan);
}

EventCounts cost_of(const ConvPlan& plan, const ConvolutionProblem& problem, const Target& target) {
  const ConvolutionCosts& costs = costs_on(target);
  EventCounts block = plan.lanes_hold == ConvLanes::pixels
                          ? cost_of_line(plan, unaligned_fraction(plan), costs)
                          : cost_of_block(plan, plan.channel_tile, costs);
  block[cache_block] = 1;
  block[kernel_call] = static_cast<double>(plan.channel_tiles);
  if (plan.transposes()) {
    block[transposed_output] += static_cast<double>(plan.block.rows * plan.block.columns) *
                                static_cast<double>(plan.geometry.group_out_channels());
  }
  if (problem.needs_window_sums() && plan.engine == ProductEngine::u8_i8_dot) {
    block += window_sum_cost(plan, costs);
  }
  EventCounts image = block * blocks_of(plan);
  image += packing_cost(plan, problem, target);
  if (!problem.has_constant_weights) {
    image[plan.tap_weights.empty() ? packed_weight : listed_weight] +=
        static_cast<double>(plan.geometry.out_channels) * static_cast<double>(plan.k_steps()) /
        static_cast<double>(plan.geometry.batch);
  }
  return image;
}

}  // namespace castor::jit
