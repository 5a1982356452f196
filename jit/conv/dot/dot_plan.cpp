// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/dot/dot_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "jit/conv/candidates.hpp"

namespace castor::jit {

namespace {

/// The most pixels of a block: an epilogue's scratch has room for all channels of a panel.
constexpr int64_t max_pixels_of_block = 256;

/// How many pixels there are, if they are rows of adjacent channels, as a single one always is, and
/// each output takes the one at its position; else 0.
int64_t pixels_of(const ConvolutionGeometry& geometry) {
  const bool is_one = geometry.batch == 1 || geometry.has_weights_by_image;
  if (!is_one || !std::ranges::all_of(geometry.axes, is_pointwise)) return 0;
  int64_t pixels = 1;
  for (const ConvolutionAxis& axis : geometry.axes) {
    pixels = saturated_product(pixels, axis.output);
  }
  return geometry.layout == ConvolutionLayout::nhwc || pixels == 1 ? pixels : 0;
}

/// The tile with the most pixels that there are registers for, divided evenly.
DotTile tile_of(const ConvolutionProblem& problem, int64_t pixels, const Target& target) {
  DotTile tile = {.engine = dot_engine(problem.w_is_signed, target)};
  const bool multiplies = multiplies_bytes(tile.engine);
  tile.has_tail = problem.geometry.group_channels() % dot_step(tile.engine, target) != 0;
  tile.w_is_signed = problem.w_is_signed && !multiplies;
  tile.sums_weights = multiplies;
  tile.has_zero_points = problem.has_weight_zero_points;
  tile.pixels = DotTile::max_pixels;
  while (!fits(tile, target)) --tile.pixels;
  tile.pixels = static_cast<int>(ceil_div(pixels, ceil_div(pixels, tile.pixels)));
  return tile;
}

}  // namespace

std::optional<DotPlan> plan_dot(const ConvolutionProblem& problem, const Target& target) {
  DotPlan plan;
  plan.geometry = problem.geometry;
  plan.pixels = pixels_of(plan.geometry);
  if (plan.pixels == 0) return std::nullopt;
  plan.tile = tile_of(problem, plan.pixels, target);
  const bool takes_constants =
      !multiplies_bytes(plan.tile.engine) && !plan.geometry.has_weights_by_image;
  if (problem.has_constant_weights && !takes_constants) return std::nullopt;
  plan.step = dot_step(plan.tile.engine, target);
  if (plan.whole_steps() == 0 || plan.panels() == 0) return std::nullopt;
  const int64_t near_bytes = l2_share(target, target.tuning().block.packed_l2_eighths);
  const int64_t near_pixels = std::min(near_bytes / plan.pixel_bytes(), max_pixels_of_block);
  const int64_t block_tiles = std::max<int64_t>(near_pixels / plan.tile.pixels, 2);
  plan.blocks = ceil_div(plan.tiles(), block_tiles);
  return plan;
}

EventCounts cost_of(const DotPlan& plan, const ConvolutionProblem& problem, const Target& target) {
  using enum CostEvent;
  const ConvolutionCosts& costs = costs_on(target);
  const double product = target.has_avx512() ? costs.product_512 : costs.product_256;
  const double rows = plan.tile.rows();
  const bool widens = !multiplies_bytes(plan.tile.engine);
  const double instructions = widens ? 2 * rows + 2 : rows;  // for a vector of weights
  const double step = std::max(DotTile::channels * instructions * product,
                               (DotTile::channels + plan.tile.pixels) * costs.load);
  const auto groups = static_cast<double>(plan.geometry.groups);
  const auto blocks = static_cast<double>(plan.blocks);
  const int64_t panels = ceil_div(plan.geometry.group_out_channels(), DotTile::channels);
  const double tiles = groups * static_cast<double>(panels * plan.tiles());
  const auto pixels = static_cast<double>(plan.pixels);
  EventCounts cost;
  cost[cache_block] = cost[kernel_call] = groups * blocks;
  cost[k_loop] = tiles * static_cast<double>(plan.steps()) * step;
  cost[dot_result] = tiles * rows;
  cost[dot_weight] =
      blocks * static_cast<double>(plan.geometry.out_channels) * static_cast<double>(plan.depth());
  cost[dot_pixel] = groups * pixels;
  const CostEvent byte = widens                ? widened_byte
                         : problem.x_is_signed ? sign_flipped_byte
                                               : copied_byte;
  cost[byte] = pixels * static_cast<double>(plan.geometry.channels);
  return cost;
}

std::string print(const DotPlan& plan) {
  return fmt::format(
      "  groups   {} of {} to {} channels\n"
      "  block    {} of {} pixels, {} B packed\n"
      "  tile     {} output channels, whose weights are read as stored, by {} pixels\n"
      "  steps    {} of {} along K\n",
      plan.geometry.groups, plan.depth(), plan.geometry.group_out_channels(),
      std::min(plan.block_tiles() * plan.tile.pixels, plan.pixels), plan.pixels,
      plan.block_tiles() * plan.tile.pixels * plan.pixel_bytes(), DotTile::channels,
      plan.tile.pixels, plan.steps(), plan.step);
}

}  // namespace castor::jit
