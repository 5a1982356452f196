// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/weight_rows_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "jit/conv/candidates.hpp"

namespace castor::jit {

namespace {

constexpr int64_t cache_line = 64;

ConvolutionAxis pixels_of(int64_t count) { return {.input = count, .kernel = 1, .output = count}; }

/// Pixels of a block: few enough for what is packed of them to stay near. Blocks have about a size,
/// of whole tiles of that many columns, and begin with cache lines of pixels.
int64_t block_pixels(int64_t pixels, int64_t depth, int64_t tile, const Target& target) {
  const TileCosts& costs = costs_on(target).tiles;
  const int64_t step = std::lcm(tile, cache_line);
  const int64_t max = std::clamp(costs.block_column_bytes / depth, costs.min_block_columns,
                                 costs.max_block_columns);
  const int64_t max_steps =
      std::max<int64_t>(std::min(max, WeightRowsPlan::max_block_pixels) / step, 1);
  const int64_t steps = ceil_div(pixels, step);
  return std::min(ceil_div(steps, ceil_div(steps, max_steps)) * step, pixels);
}

/// The product of a block with that many pixels, with constant weights as they are kept: a cache
/// line for each k step of a row.
std::optional<DensePlan> plan_product(const ConvolutionProblem& problem, int64_t pixels,
                                      const Target& target) {
  const ConvolutionGeometry& geometry = problem.geometry;
  const int64_t rows = geometry.group_out_channels();
  const ConvolutionProblem exchanged = {.geometry = {.layout = ConvolutionLayout::nhwc,
                                                     .batch = 1,
                                                     .channels = geometry.group_channels(),
                                                     .out_channels = pixels,
                                                     .axes = {pixels_of(rows)}},
                                        .x_is_signed = problem.w_is_signed,
                                        .w_is_signed = problem.x_is_signed};
  for (DensePlan& plan : plan_tiles(begin_plan(exchanged, target), exchanged, target)) {
    if (!std::holds_alternative<DirectInput>(plan.source)) continue;
    const bool has_equal_steps =
        k_group_bytes * plan.weight_k_groups() == geometry.group_channels();
    if (!has_equal_steps) return std::nullopt;
    plan.block = {.rows = 1, .columns = rows};
    if (problem.has_constant_weights) {
      std::get<DirectInput>(plan.source).column_bytes = cache_line;
      plan.tile.pixel_step = cache_line;
      for (size_t step = 0; step < plan.k_steps.size(); ++step) {
        plan.k_steps[step] = static_cast<int32_t>(static_cast<int64_t>(step) * rows * cache_line);
      }
    }
    plan.tile.has_first_values_by_pixel = true;
    return std::move(plan);
  }
  return std::nullopt;
}

/// The plan with blocks of whole tiles of columns, but for the last one.
WeightRowsPlan with_whole_tiles(WeightRowsPlan plan, const Target& target) {
  DensePlan& product = plan.product;
  product.geometry.out_channels =
      block_pixels(plan.pixels, plan.depth(), product.tile.channels, target);
  set_register_tile(product, product.tile, target);
  return plan;
}

}  // namespace

int64_t WeightRowsPlan::weight_bytes() const {
  const int64_t rows = geometry.group_out_channels();
  return row_step() == cache_line ? steps() * rows * cache_line : rows * depth();
}

std::optional<WeightRowsPlan> plan_weight_rows(const ConvolutionProblem& problem,
                                               const Target& target) {
  constexpr int64_t max_bytes = int64_t{1} << 30;
  const ConvolutionGeometry& geometry = problem.geometry;
  const bool is_possible = target.supports(Feature::amx_int8) &&
                           geometry.layout == ConvolutionLayout::nchw &&
                           geometry.group_channels() % k_group_bytes == 0 &&
                           std::ranges::all_of(geometry.axes, is_pointwise);
  if (!is_possible) return std::nullopt;
  int64_t pixels = 1;
  for (const ConvolutionAxis& axis : geometry.axes) pixels = saturated_product(pixels, axis.output);
  if (pixels < DenseTile::tile_rows) return std::nullopt;
  // Rows of weights and of first values have a cache line at least; blocks, 64 pixels.
  const int64_t depth = std::max(geometry.group_channels(), cache_line);
  const int64_t bytes = saturated_product(geometry.out_channels, depth);
  if (std::max({bytes, pixels, saturated_product(cache_line, depth)}) > max_bytes) {
    return std::nullopt;
  }
  const int64_t of_block = block_pixels(pixels, geometry.group_channels(), cache_line, target);
  std::optional<DensePlan> product = plan_product(problem, of_block, target);
  if (!product) return std::nullopt;
  return with_whole_tiles({geometry, std::move(*product), pixels}, target);
}

std::vector<WeightRowsPlan> with_other_tiles(const WeightRowsPlan& plan, const Target& target) {
  std::vector<WeightRowsPlan> others;
  for (DensePlan& product : with_other_register_tiles(plan.product, target)) {
    others.push_back(with_whole_tiles({plan.geometry, std::move(product), plan.pixels}, target));
  }
  return others;
}

EventCounts cost_of(const WeightRowsPlan& plan, const ConvolutionProblem& problem,
                    const Target& target) {
  using enum CostEvent;
  const auto groups = static_cast<double>(plan.geometry.groups);
  const auto blocks = static_cast<double>(plan.pixels) / static_cast<double>(plan.block_pixels());
  EventCounts cost = products_cost(plan.product, target);
  cost[cache_block] = 1;
  cost[kernel_call] = costs_on(target).tiles.calls;
  const int64_t weights = plan.weight_bytes();
  if (weights > near_weight_bytes(target)) {
    cost[far_weights] = static_cast<double>(weights) / static_cast<double>(cache_line);
  }
  cost = cost * (blocks * groups);
  if (problem.has_weight_zero_points) {
    const auto results = static_cast<double>(plan.pixels * plan.geometry.out_channels);
    cost[tile_results] += costs_on(target).tiles.summed_vector * results / DenseTile::tile_rows;
  }
  const int64_t k_groups = plan.depth() / k_group_bytes;
  const double added_up = costs_on(target).tiles.summed_interleaving;
  cost[interleaved_pixels] = (problem.has_weight_zero_points ? added_up : 1) * groups *
                             static_cast<double>(k_groups) *
                             static_cast<double>(ceil_div(plan.pixels, cache_line));
  return cost;
}

std::string print(const WeightRowsPlan& plan) {
  const DenseTile& tile = plan.product.tile;
  return fmt::format(
      "  groups   {} of {} to {} channels\n"
      "  block    {} of {} pixels, {} B packed\n"
      "  tile     {} output channels in tile registers of {}, by {} pixels, {} k steps of {} B\n",
      plan.geometry.groups, plan.depth(), plan.geometry.group_out_channels(), plan.block_pixels(),
      plan.pixels, plan.product.channel_tiles * plan.packed_tile_bytes(), tile.pixels(),
      tile.pixels_of_tile(), tile.channels, plan.steps(), plan.step_bytes());
}

}  // namespace castor::jit
