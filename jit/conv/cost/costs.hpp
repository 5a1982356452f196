// SPDX-License-Identifier: Apache-2.0
// Costs of plans, by the events of cost_events.hpp.
#pragma once

#include "jit/conv/conv_plan.hpp"
#include "jit/conv/problem.hpp"
#include "jit/conv/sliding/depthwise_plan.hpp"
#include "jit/conv/sliding/grouped_nhwc_plan.hpp"
#include "jit/core/core_tuning.hpp"

namespace castor::jit {

/// The costs on the target's core.
inline const ConvolutionCosts& costs_on(const Target& target) {
  return target.tuning().convolution;
}

/// Part of the k steps whose first pixel does not begin a cache line, 0 to 1.
double unaligned_fraction(const ConvPlan& plan);
/// A cache block's register tiles for all output channels of a group: `plan.tile` of pixels, or
/// that tile of channels. `unaligned` is the plan's unaligned_fraction.
EventCounts cost_of_line(const ConvPlan& plan, double unaligned, const ConvolutionCosts& costs);
EventCounts cost_of_block(const ConvPlan& plan, const DenseTile& tile,
                          const ConvolutionCosts& costs);

/// Packing the input of one image.
EventCounts packing_cost(const ConvPlan& plan, const ConvolutionProblem& problem,
                         const Target& target);

/// Everything that one call does for one image: packing, window sums, register tiles, and, where
/// weights are given at run time, their packing.
EventCounts cost_of(const ConvPlan& plan, const ConvolutionProblem& problem, const Target& target);
EventCounts cost_of(const DepthwisePlan& plan, const ConvolutionProblem& problem,
                    const Target& target);
EventCounts cost_of(const GroupedNhwcPlan& plan, const ConvolutionProblem& problem,
                    const Target& target);

}  // namespace castor::jit
