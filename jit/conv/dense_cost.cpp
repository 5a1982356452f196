// SPDX-License-Identifier: Apache-2.0
// What dense plans cost.
#include "jit/conv/candidates.hpp"

namespace castor::jit {

namespace {

using enum CostEvent;

/// Cycles of one product and its sum, two instructions for i16 pairs.
double product(const DensePlan& plan, const ConvolutionCosts& costs) {
  const double instruction = plan.lanes == 16 ? costs.product_512 : costs.product_256;
  return multiplies_bytes(plan.engine) ? instruction : 2 * instruction;
}

/// Cycles until the next product can be added to the same accumulator.
double latency(const DensePlan& plan, const ConvolutionCosts& costs) {
  return multiplies_bytes(plan.engine) ? costs.latency : costs.add_latency;
}

/// Whether stores write whole cache lines, where the output begins with one.
bool has_whole_lines(const DensePlan& plan) {
  const bool is_dense = plan.planes()->pitch == plan.block.columns;
  const int64_t pixels = is_dense ? plan.block.pixels() : plan.block.columns;
  return (is_dense || plan.planes()->has_aligned_rows) && pixels * 4 % 64 == 0;
}

/// Fraction of the vectors of pixels some lanes of which are not stored: one for each end of a row
/// with dead lanes after it, else the last one of a row or block, which costs nothing with opmasks.
double compressed_fraction(const DensePlan& plan, const Target& target) {
  if (plan.has_dead_lanes()) {
    return std::min(1.0,
                    static_cast<double>(plan.lanes) / static_cast<double>(plan.planes()->pitch));
  }
  const int64_t lanes =
      plan.planes()->has_aligned_rows ? plan.block.columns : plan.lane_count(plan.block);
  if (target.has_avx512() || lanes % plan.lanes == 0) return 0;
  return 1 / static_cast<double>(ceil_div(lanes, plan.lanes));
}

/// 1 where all accumulators of a tile are stored at once (peel_k_steps), if they are many.
double stalls(const DensePlan& plan, int vectors, bool has_dead_lanes, const Target& target) {
  const bool is_one_group = rows_of_group(vectors, target) == 1;
  return plan.lanes == 16 && (has_dead_lanes || is_one_group) ? 1 : 0;
}

double blocks_of(const DensePlan& plan) {
  const double outputs = static_cast<double>(plan.rows.output) *
                         static_cast<double>(plan.columns.output) *
                         static_cast<double>(plan.outer_outputs * plan.geometry.groups);
  return outputs / static_cast<double>(plan.block.pixels());
}

double planes_of(const DensePlan& plan) {
  return static_cast<double>(plan.slices * plan.k_groups * plan.planes()->stride_phases());
}

/// Bytes of a block's packed input.
double packed_bytes(const DensePlan& plan) {
  return 4 * planes_of(plan) * static_cast<double>(plan.planes()->plane_size);
}

/// Bytes that stay in L1 from one use to the next.
double l1_bytes(const Target& target) {
  return target.tuning().dense.l1_planes_share * static_cast<double>(target.caches.l1);
}

/// Part of the k steps whose first pixel does not begin a cache line, where pixels are vectors.
double unaligned_fraction(const DensePlan& plan) {
  if (!plan.is_pixel_vectorised()) return 0;
  const auto unaligned =
      std::ranges::count_if(plan.k_steps, [](int32_t offset) { return offset % 64 != 0; });
  return static_cast<double>(unaligned) / static_cast<double>(plan.k_steps.size());
}

/// Instructions of a tile's k step: those of its offset and of the loop beside loads and products.
double k_step_instructions(const DensePlan& plan, double products, double loads) {
  constexpr double of_step = 3.5;  // two of the offset, half of the loop's three
  return of_step + loads + (multiplies_bytes(plan.engine) ? products : 2 * products);
}

/// Cycles of a tile's K loop at its bound; `loads` instructions load `loaded` vectors.
double k_loop_cycles(const DensePlan& plan, double products, double loads, double loaded,
                     const ConvolutionCosts& costs) {
  return static_cast<double>(plan.weight_k_groups()) *
         std::max({products * product(plan, costs), latency(plan, costs), costs.load * loaded,
                   costs.instruction * k_step_instructions(plan, products, loads)});
}

EventCounts pixel_tile_cost(const DensePlan& plan, const DenseTile& tile, double unaligned,
                            const Target& target) {
  const double m = tile.channels;
  const double v = tile.vectors;
  const auto k_steps = static_cast<double>(plan.weight_k_groups());
  EventCounts cost;
  cost[k_loop] = k_loop_cycles(plan, m * v, v + m, 2 * v + m, costs_on(target));
  cost[unaligned_load] = unaligned * v * k_steps;
  cost[weight_broadcast] = m * k_steps;
  if (packed_bytes(plan) > l1_bytes(target))
    cost[l2_vector] = v * planes_of(plan);  // once for a plane's k steps
  cost[has_whole_lines(plan) ? stored_vector : split_stored_vector] = m * v;
  cost[compressed_vector] = m * v * compressed_fraction(plan, target);
  cost[stalled_tile] = stalls(plan, tile.vectors, plan.has_dead_lanes(), target);
  return cost;
}

/// Vectors that a channel-vectorised tile takes from L2: its weights where they do not stay in L1
/// from one tile of pixels to the next, and its part of packed input that does not stay there from
/// one tile of channels to the next.
double l2_operand_vectors(const DensePlan& plan, const DenseTile& tile, const Target& target) {
  const auto k_groups = static_cast<double>(plan.weight_k_groups());
  const int vectors = tile.vectors_of(plan.lanes);
  const double weights = streams_weights(plan, tile, target) ? k_groups * vectors : 0;
  if (plan.planes() == nullptr) return weights;
  const double packed = packed_bytes(plan);
  const double together = packed + static_cast<double>(plan.weight_bytes(vectors));
  if (together <= l1_bytes(target)) return weights;
  const auto pixel_tiles = static_cast<double>(plan.channel_vectorised_tiles(tile));
  return weights + packed / (4 * plan.lanes * pixel_tiles);
}

EventCounts channel_tile_cost(const DensePlan& plan, const DenseTile& tile, const Target& target) {
  const double pixels = tile.pixels();
  const auto v = static_cast<double>(tile.vectors_of(plan.lanes));
  const bool is_transposed = tile.store == StorePolicy::transposed;
  EventCounts cost;
  cost[k_loop] = k_loop_cycles(plan, pixels * v, pixels + v, pixels + v, costs_on(target));
  cost[operand_load] = static_cast<double>(plan.weight_k_groups()) * (pixels + v);
  cost[l2_operand_vector] = l2_operand_vectors(plan, tile, target);
  if (tile.has_sign_flip) {
    cost[sign_flipped_operand] = static_cast<double>(plan.weight_k_groups()) * pixels;
  }
  cost[is_transposed ? staged_vector : nhwc_stored_vector] = pixels * v;
  if (is_transposed) cost[transposed_channel] = v * plan.lanes;
  cost[stalled_tile] = stalls(plan, tile.vectors_of(plan.lanes), false, target);
  return cost;
}

/// Part of the rows of pixel tiles that cross cache lines, if the source begins with one.
double split_row_fraction(const DensePlan& plan, const DenseTile& tile) {
  constexpr size_t max_looked_at = 64;
  const size_t steps = std::min(plan.k_steps.size(), max_looked_at);
  int64_t split = 0;
  for (size_t k = 0; k < steps; ++k) {
    for (int64_t pixel = 0; pixel < tile.pixels_of_tile(); ++pixel) {
      const int64_t first = plan.k_steps[k] + pixel * tile.pixel_step;
      split += first / 64 != (first + tile.step_bytes - 1) / 64 ? 1 : 0;
    }
  }
  return static_cast<double>(split) /
         static_cast<double>(static_cast<int64_t>(steps) * tile.pixels_of_tile());
}

/// Positions of the input that the taps of that many neighbouring outputs take.
double taken_positions(const ConvolutionAxis& axis, int64_t outputs) {
  const int64_t step = std::min(axis.stride, axis.window());
  return static_cast<double>((outputs - 1) * step + axis.window());
}

/// Bytes of the source that some neighbouring outputs take.
double pixel_bytes(const DensePlan& plan, int64_t rows, int64_t columns) {
  const auto of_position = static_cast<double>(plan.weight_k_groups() * k_group_bytes) /
                           static_cast<double>(plan.rows.kernel * plan.columns.kernel);
  return taken_positions(plan.rows, rows) * taken_positions(plan.columns, columns) * of_position;
}

/// Whether pixels stay in L1 from one tile of channels to the next: those of a register tile, or,
/// where tiles of channels are outside, of a block.
bool stay_in_l1(const DensePlan& plan, const DenseTile& tile, const Target& target) {
  const double bytes = tile.channels_inside
                           ? pixel_bytes(plan, tile.pixel_rows, tile.columns)
                           : pixel_bytes(plan, plan.block.rows, plan.block.columns);
  return bytes <= l1_bytes(target);
}

/// Fractions of an operand's loads that come from these caches.
struct LoadedFrom {
  double l2 = 0;
  double beyond_l2 = 0;
};

/// Weights of one tile of channels come once for a block from where they are, and for other pixels
/// from L1 or L2.
LoadedFrom weights_from(const DensePlan& plan, const DenseTile& tile, const Target& target) {
  const double first = 1 / static_cast<double>(plan.channel_vectorised_tiles(tile));
  const double again = streams_weights(plan, tile, target) ? 1 : 0;
  if (has_near_weights(plan, target)) return {.l2 = std::max(first, again)};
  return tile.channels_inside ? LoadedFrom{.beyond_l2 = 1}
                              : LoadedFrom{.l2 = again * (1 - first), .beyond_l2 = first};
}

/// Pixels come from L2 when they are new to L1: where tiles of channels follow each other for the
/// first of them, else for each one, unless L1 holds those of a block.
LoadedFrom pixels_from(const DensePlan& plan, const DenseTile& tile, const Target& target) {
  const double loaded = static_cast<double>(plan.weight_k_groups() * k_group_bytes) * tile.pixels();
  const double fresh = std::min(pixel_bytes(plan, tile.pixel_rows, tile.columns) / loaded, 1.0);
  const auto channel_tiles =
      static_cast<double>(ceil_div(plan.geometry.group_out_channels(), tile.channels));
  return {.l2 = stay_in_l1(plan, tile, target) ? fresh / channel_tiles : fresh};
}

/// Cycles of a register tile's products, beside which are loads from L2 and beyond.
double tile_product_cycles(const DensePlan& plan, const DenseTile& tile, const Target& target) {
  const TileCosts& costs = costs_on(target).tiles;
  const double p = tile.pixel_tiles();
  const double v = tile.vectors_of(plan.lanes);
  const LoadedFrom weights = weights_from(plan, tile, target);
  const LoadedFrom pixels = pixels_from(plan, tile, target);
  const double from_l2 = costs.l2_load * (p * pixels.l2 + v * weights.l2);
  const double loads = costs.load * (p + v) + from_l2 + costs.far_load * v * weights.beyond_l2 +
                       costs.split_load * p * split_row_fraction(plan, tile);
  const double rows = std::max<double>(tile.pixels_of_tile(), costs.min_product_rows);
  const double products = costs.product_row * p * v * rows + costs.shown_share * from_l2;
  return static_cast<double>(plan.k_steps.size()) * (std::max(products, loads) + costs.step) +
         costs.tile;
}

/// Cycles in which its results are stored.
double tile_result_cycles(const DensePlan& plan, const DenseTile& tile, const Target& target) {
  const TileCosts& costs = costs_on(target).tiles;
  const double pixels = tile.pixels();
  const double vectors = pixels * tile.vectors_of(plan.lanes);
  const bool is_one_tile = tile.channels >= plan.geometry.group_out_channels();
  if (tile.store == StorePolicy::transposed) {
    const bool is_spread = tile.channels_inside && !is_one_tile;
    const auto pixel_vectors = static_cast<double>(ceil_div(tile.pixels(), plan.lanes));
    const double spread = is_spread ? costs.spread_channel * tile.channels : 0;
    return (costs.transposed_vector * tile.vectors_of(plan.lanes) * plan.lanes + spread) *
           pixel_vectors;
  }
  const bool is_spread = !tile.channels_inside && !is_one_tile;
  const bool has_far_pixels =
      !tile.has_first_values_by_pixel && plan.geometry.out_channels >= costs.far_spread_channels;
  const double spread = has_far_pixels ? costs.far_spread_pixel : costs.spread_pixel;
  return costs.stored_vector * vectors + (costs.stored_pixel + (is_spread ? spread : 0)) * pixels;
}

/// A register tile of tile registers. Results are stored beside the next tile's products: what
/// takes longer than these is left.
EventCounts register_tile_cost(const DensePlan& plan, const DenseTile& tile, const Target& target) {
  const double products = tile_product_cycles(plan, tile, target);
  const double results = tile_result_cycles(plan, tile, target);
  EventCounts cost;
  cost[k_loop] = products;
  cost[tile_results] = std::max(results - costs_on(target).tiles.hidden_share * products, 0.0);
  return cost;
}

EventCounts tile_cost(const DensePlan& plan, const DenseTile& tile, double unaligned,
                      const Target& target) {
  if (plan.is_pixel_vectorised()) return pixel_tile_cost(plan, tile, unaligned, target);
  return tile.has_tiles() ? register_tile_cost(plan, tile, target)
                          : channel_tile_cost(plan, tile, target);
}

/// A cache block's tiles of that form for all output channels of a group. The last tile of channels
/// may have fewer of them, but it takes all pixels, and, channel-vectorised, whole vectors.
EventCounts tiles_cost(const DensePlan& plan, const DenseTile& tile, double unaligned,
                       const Target& target) {
  const int64_t channels = plan.geometry.group_out_channels();
  const int64_t whole = channels / tile.channels;
  EventCounts cost = tile_cost(plan, tile, unaligned, target) * static_cast<double>(whole);
  if (channels % tile.channels > 0) {
    DenseTile last = tile;
    last.channels = static_cast<int>(channels % tile.channels);
    cost += tile_cost(plan, last, unaligned, target);
  }
  const int64_t pixel_tiles = plan.is_pixel_vectorised() ? plan.tiles_of(plan.block, tile.vectors)
                                                         : plan.channel_vectorised_tiles(tile);
  return cost * static_cast<double>(pixel_tiles);
}

/// How k groups of packed input are made: by code where there is code (jit/conv/pack).
CostEvent packing_event(const DensePlan& plan, const Target& target) {
  const PackedLayout layout = plan.planes()->layout;
  if (layout == PackedLayout::im2col) return packed_im2col;
  if (plan.planes()->packed_by != PackedBy::packer) {
    return target.has_avx512() ? packed_by_kernel : packed_by_narrow_kernel;
  }
  if (plan.geometry.layout == ConvolutionLayout::nhwc) {
    const int64_t pixels =
        plan.takes_whole_rows()
            ? plan.block.pixels()
            : std::min(plan.block.columns + plan.planes()->column_phases.max_shift,
                       ceil_div(plan.columns.input, plan.columns.stride));
    return transposes_pixels(plan, pixels) || multiplies_bytes(plan.engine) ? packed_nhwc
                                                                            : packed_one_by_one;
  }
  const bool holds_columns = layout == PackedLayout::columns4;
  if (!has_packing_code(plan, target)) {
    return plan.columns.stride <= 2 && !holds_columns ? packed_by_loops : packed_one_by_one;
  }
  return holds_columns ? packed_columns4 : packed_nchw4c;
}

/// Window sums of a cache block, which a tile of one channel of ones computes on packed input, or
/// of which it computes the lanes' sums, and loops on rows.
EventCounts window_sum_cost(const DensePlan& plan, const ConvolutionCosts& costs) {
  EventCounts cost;
  if (plan.planes() == nullptr) {
    cost[summed_pixel] = taken_positions(plan.rows, plan.block.rows) *
                         taken_positions(plan.columns, plan.block.columns) *
                         static_cast<double>(plan.slices);
    cost[summed_byte] = cost[summed_pixel] * static_cast<double>(plan.geometry.group_channels());
    return cost;
  }
  const auto& input = *plan.planes();
  const bool by_lane = sums_lanes_first(plan);
  const int64_t lanes = plan.lane_count(plan.block) + (by_lane ? input.window_reach() : 0);
  const auto vectors = static_cast<double>(ceil_div(lanes, plan.lanes));
  const double tile = std::max(vectors_of_window_sums * product(plan, costs), latency(plan, costs));
  const int64_t k_steps =
      by_lane ? plan.slices * plan.k_groups * input.stride_phases() : plan.weight_k_groups();
  cost[k_loop] =
      tile * static_cast<double>(k_steps) * std::max(vectors / vectors_of_window_sums, 1.0);
  if (by_lane) cost[summed_lane] = static_cast<double>(input.added_lanes() * lanes);
  return cost;
}

}  // namespace

bool uses_weights_once(const DensePlan& plan) {
  return plan.geometry.batch * plan.outer_outputs == 1 &&
         plan.block.pixels() == plan.rows.output * plan.columns.output;
}

int64_t near_weight_bytes(const Target& target) {
  return target.caches.l2 * target.tuning().block.near_weights_l2_eighths / 8;
}

bool has_near_weights(const DensePlan& plan, const Target& target) {
  const int64_t vectors = ceil_div(plan.geometry.group_out_channels(), plan.lanes);
  return plan.weight_bytes(vectors) <= near_weight_bytes(target);
}

bool streams_weights(const DensePlan& plan, const DenseTile& tile, const Target& target) {
  const int64_t vectors = tile.channels_inside
                              ? ceil_div(plan.geometry.group_out_channels(), plan.lanes)
                              : tile.vectors_of(plan.lanes);
  const auto bytes = static_cast<double>(plan.weight_bytes(vectors));
  const bool is_read_once = plan.rows.kernel * plan.columns.kernel == 1;
  if (!tile.has_tiles() || is_read_once) return bytes > l1_bytes(target);
  const double beside = pixel_bytes(plan, tile.pixel_rows, tile.columns);
  return bytes + beside >
         costs_on(target).tiles.window_l1_share * static_cast<double>(target.caches.l1);
}

bool fetches_weights(const DensePlan& plan, const DenseTile& tile, const Target& target) {
  const auto max = static_cast<double>(target.caches.l1) * costs_on(target).tiles.fetched_l1_share;
  return streams_weights(plan, tile, target) &&
         pixel_bytes(plan, tile.pixel_rows, tile.columns) <= max;
}

bool streams_pixels(const DensePlan& plan, const DenseTile& tile, const Target& target) {
  const bool is_read_once = plan.rows.kernel * plan.columns.kernel == 1;
  return is_read_once && !tile.channels_inside && !streams_weights(plan, tile, target) &&
         !stay_in_l1(plan, tile, target);
}

DenseTile cheapest_tile(const DensePlan& plan, std::span<const DenseTile> tiles,
                        const Target& target) {
  const double unaligned = unaligned_fraction(plan);
  return *std::ranges::min_element(tiles, {}, [&](const DenseTile& tile) {
    return tiles_cost(plan, tile, unaligned, target).cycles(costs_on(target).cycles);
  });
}

EventCounts products_cost(const DensePlan& plan, const Target& target) {
  return tiles_cost(plan, plan.tile, unaligned_fraction(plan), target);
}

EventCounts packing_cost(const DensePlan& plan, const ConvolutionProblem& problem,
                         const Target& target) {
  EventCounts cost;
  if (const PackedPlanes* planes = plan.planes()) {
    const double rows =
        planes_of(plan) * static_cast<double>(plan.block.rows + planes->row_phases.max_shift);
    const bool is_nhwc = plan.geometry.layout == ConvolutionLayout::nhwc;
    const double k_groups =
        rows * static_cast<double>(plan.block.columns + planes->column_phases.max_shift);
    const CostEvent event = packing_event(plan, target);
    const bool copies_columns =
        event == packed_one_by_one && planes->layout == PackedLayout::columns4;
    cost[is_nhwc ? packed_nhwc_row : copies_columns ? packed_columns_row : packed_row] = rows;
    cost[event] = k_groups;
    if (cost[packed_nhwc] > 0) {
      cost[packed_nhwc_pixel] = k_groups / static_cast<double>(plan.k_groups);
    }
  } else if (const auto* copied = std::get_if<CopiedRows>(&plan.source)) {
    const double rows = static_cast<double>(std::ssize(copied->planes)) *
                        taken_positions(plan.rows, plan.block.rows);
    const bool has_sign_flip = takes_u8_by_i8(plan.engine) && problem.x_is_signed;
    const CostEvent unwidened = has_sign_flip ? sign_flipped_byte : copied_byte;
    const bool is_widened = !multiplies_bytes(plan.engine);
    cost[copied_row] = rows;
    if (plan.tile.has_tiles() && plan.geometry.layout == ConvolutionLayout::nchw) {
      constexpr int64_t channels = 64;
      constexpr int64_t pixels = 16;
      const double vectors = rows * static_cast<double>(ceil_div(copied->columns, pixels));
      const int64_t whole = copied->channels / channels;
      cost[gathered_block] = vectors * static_cast<double>(whole);
      if (copied->channels % channels > 0) cost[gathered_tail] = vectors;
    } else {
      cost[is_widened ? widened_byte : unwidened] = rows * static_cast<double>(copied->row_bytes);
    }
    const bool is_spread = plan.geometry.groups > 1 || copied->has_aligned_pixels;
    if (plan.geometry.layout == ConvolutionLayout::nhwc && is_spread) {
      cost[copied_column] = rows * static_cast<double>(copied->columns);
    }
  }
  return cost * blocks_of(plan);
}

EventCounts cost_of(const DensePlan& plan, const ConvolutionProblem& problem,
                    const Target& target) {
  EventCounts block = products_cost(plan, target);
  block[cache_block] = 1;
  block[kernel_call] = plan.tile.has_tiles() ? costs_on(target).tiles.calls
                                             : static_cast<double>(plan.channel_tiles);
  if (plan.transposes()) {
    block[transposed_output] += static_cast<double>(plan.block.pixels()) *
                                static_cast<double>(plan.geometry.group_out_channels());
  }
  const bool has_window_sums = subtracts_window_sums(plan.engine, problem);
  const bool sums_itself = plan.planes() && plan.planes()->packed_by == PackedBy::nobody;
  // Also where the first tile of channels adds them up: a problem does not tell one zero point of
  // all weights from several.
  if (has_window_sums && !sums_itself) block += window_sum_cost(plan, costs_on(target));
  if (has_window_sums && plan.tile.has_tiles()) {
    block[tile_results] += costs_on(target).tiles.summed_vector *
                           static_cast<double>(plan.block.pixels() * plan.channel_tiles *
                                               plan.tile.vectors_of(plan.lanes));
  }
  if (problem.has_constant_weights && !has_near_weights(plan, target)) {
    constexpr double line_bytes = 64;
    block[far_weights] =
        static_cast<double>(k_group_bytes * plan.weight_k_groups() * plan.packed_group_width()) /
        line_bytes;
  }
  EventCounts image = block * blocks_of(plan);
  image += packing_cost(plan, problem, target);
  if (!problem.has_constant_weights) {
    image[plan.has_weights_in_order() ? packed_weight : listed_weight] +=
        static_cast<double>(plan.geometry.out_channels) *
        static_cast<double>(plan.weight_k_groups()) / static_cast<double>(plan.geometry.batch);
  }
  return image;
}

}  // namespace castor::jit
