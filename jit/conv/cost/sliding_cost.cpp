// SPDX-License-Identifier: Apache-2.0
// What plans of depthwise and grouped layers cost.
#include <algorithm>

#include "ir/support/integer_math.hpp"
#include "jit/conv/candidates.hpp"

namespace castor::jit {

namespace {

using enum CostEvent;

/// Instructions of a product of one k group: pairs of i16 hold half as many values.
double instructions_of(ProductEngine engine) { return engine == ProductEngine::u8_i8_dot ? 1 : 4; }

/// Weights that a call packs, for each image.
double weights_of_image(const ConvolutionProblem& problem) {
  if (problem.has_constant_weights) return 0;
  const ConvolutionGeometry& geometry = problem.geometry;
  double weights = static_cast<double>(geometry.out_channels * geometry.group_channels());
  for (const ConvolutionAxis& axis : geometry.axes) weights *= static_cast<double>(axis.kernel);
  return weights / static_cast<double>(geometry.batch);
}

/// One block of rows at one column position.
EventCounts cost_of_position(const DepthwiseForm& form, const SlidingBlock& block,
                             bool sums_windows) {
  const double input_rows = form.input_rows(block);
  const double rows = input_rows - block.above - block.below;
  const double outputs = block.outputs;
  EventCounts cost;
  cost[slide_load] = rows * (form.dword_step == 0 ? 1 : form.dwords);
  cost[slide_shuffle] = rows * form.dwords;
  cost[slide_product] = outputs * form.rows * form.dwords;
  if (sums_windows) cost[slide_product] += input_rows * (form.dwords + 1) + outputs;
  cost[slide_store] = outputs * (form.adds ? 2 : 1);
  cost[slide_position] = 1;
  return cost;
}

}  // namespace

EventCounts cost_of(const DepthwisePlan& plan, const ConvolutionProblem& problem,
                    const Target& target) {
  const bool sums_windows =
      problem.needs_window_sums() && plan.form.engine == ProductEngine::u8_i8_dot;
  EventCounts plane;
  for (const auto& range : plan.bands) {
    double positions = 0;
    for (size_t i = 0; i < range.columns; ++i) {
      positions += static_cast<double>(plan.columns_of_bands[range.first_columns + i].count);
    }
    plane += cost_of_position(plan.form, plan.form.blocks[range.block], sums_windows) *
             (positions * static_cast<double>(range.blocks));
    plane[slide_row_range] += 1;
  }
  plane[slide_product] *= instructions_of(plan.form.engine) * costs_on(target).product_512;
  EventCounts image = plane * (static_cast<double>(plan.geometry.out_channels) *
                               static_cast<double>(plan.slices * plan.outer_outputs));
  image[gathered_weight] = weights_of_image(problem);
  return image;
}

namespace {

/// Cycles of one product: accumulators of few sums wait for each other.
double product_of(const GroupedNhwcPlan& plan, const Target& target) {
  const GroupedNhwcForm& form = plan.form;
  if (form.parts == 0) return instructions_of(form.engine);
  if (form.engine == ProductEngine::i16_pairs) return 2;
  const double sums = form.outputs * std::min(plan.block_outputs, form.sum_rows());
  return std::max(1.0, costs_on(target).latency * 0.8 / sums);
}

/// Instructions that bring what was loaded of a pixel to the lanes, beside the load.
double shuffles_of_row(const GroupedNhwcForm& form, const Target& target) {
  const int flips = form.flips_input ? 1 : 0;
  if (form.parts > 0) return form.pixels() * (flips + form.parts);
  const int transposes = target.supports(Feature::avx512_vbmi) ? 1 : (target.has_avx512() ? 2 : 3);
  return form.pixels() - form.quads() + form.quads() * (transposes + flips);
}

}  // namespace

EventCounts cost_of(const GroupedNhwcPlan& plan, const ConvolutionProblem& problem,
                    const Target& target) {
  const GroupedNhwcForm& form = plan.form;
  const SlidingBlock block = {.outputs = plan.block_outputs};
  const double input_rows = form.input_rows(block);
  const bool sums_windows = problem.needs_window_sums() && form.engine == ProductEngine::u8_i8_dot;
  const double in_row = form.products();
  EventCounts one;
  one[gather_load] = input_rows * form.pixels();
  one[gather_shuffle] = input_rows * shuffles_of_row(form, target);
  one[gather_product] = product_of(plan, target) * block.outputs * form.rows * in_row;
  if (sums_windows) one[gather_product] += input_rows * in_row;
  one[gather_store] = static_cast<double>(block.outputs * form.outputs);
  one[gather_position] = 1;
  const auto blocks = static_cast<double>(plan.rows.output) / plan.block_outputs;
  const double lanes_factor = plan.lanes == 16 ? 1 : costs_on(target).product_256 * 2;
  EventCounts image =
      one * (blocks * static_cast<double>(plan.places.size() * plan.vectors.size()) *
             static_cast<double>(plan.slices * plan.outer_outputs));
  image[gather_product] *= lanes_factor * costs_on(target).product_512;
  image[gathered_weight] = weights_of_image(problem);
  return image;
}

}  // namespace castor::jit
