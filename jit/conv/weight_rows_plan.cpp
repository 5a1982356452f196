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

/// Pixels of a block: few, so that what is packed of them stays near. Blocks have about a size, and
/// begin with cache lines of pixels.
int64_t block_pixels(int64_t pixels, int64_t depth, const Target& target) {
  const TileCosts& costs = costs_on(target).tiles;
  const int64_t max = std::clamp(costs.block_column_bytes / depth, costs.min_block_columns,
                                 costs.max_block_columns);
  return std::min(ceil_div(ceil_div(pixels, ceil_div(pixels, max)), cache_line) * cache_line,
                  pixels);
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
    const bool has_equal_steps = 4 * plan.weight_k_groups() == geometry.group_channels();
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

/// All blocks but the last one have whole tiles of columns.
WeightRowsPlan with_whole_tiles(WeightRowsPlan plan) {
  DensePlan& product = plan.product;
  const int64_t whole = std::lcm(product.tile.channels, cache_line);
  const int64_t pixels = ceil_div(product.geometry.out_channels, whole) * whole;
  product.geometry.out_channels = std::min(pixels, plan.pixels);
  set_tile(product, product.tile);
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
  const bool is_possible =
      target.supports(Feature::amx_int8) && geometry.layout == ConvolutionLayout::nchw &&
      geometry.group_channels() % 4 == 0 && std::ranges::all_of(geometry.axes, is_pointwise);
  if (!is_possible) return std::nullopt;
  int64_t pixels = 1;
  for (const ConvolutionAxis& axis : geometry.axes) pixels = saturated_product(pixels, axis.output);
  if (pixels < DenseTile::tile_rows) return std::nullopt;
  const int64_t bytes = saturated_product(geometry.group_out_channels(), geometry.channels);
  if (std::max(bytes, pixels) > max_bytes) return std::nullopt;
  const int64_t of_block = block_pixels(pixels, geometry.group_channels(), target);
  std::optional<DensePlan> product = plan_product(problem, of_block, target);
  if (!product) return std::nullopt;
  return with_whole_tiles({geometry, std::move(*product), pixels});
}

std::vector<WeightRowsPlan> with_other_tiles(const WeightRowsPlan& plan, const Target& target) {
  std::vector<WeightRowsPlan> others;
  for (DensePlan& product : with_other_register_tiles(plan.product, target)) {
    others.push_back(with_whole_tiles({plan.geometry, std::move(product), plan.pixels}));
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
    cost[tile_results] += costs_on(target).tiles.summed_vector *
                          static_cast<double>(plan.pixels * plan.geometry.out_channels / 16);
  }
  cost[interleaved_pixels] = groups * static_cast<double>(plan.depth() / 4) *
                             static_cast<double>(ceil_div(plan.pixels, 64));
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
