// SPDX-License-Identifier: Apache-2.0
// Costs of plans, by the events of cost_events.hpp.
#pragma once

#include "jit/conv/conv_plan.hpp"
#include "jit/conv/cost/cost_events.hpp"
#include "jit/conv/depthwise_plan.hpp"
#include "jit/conv/grouped_nhwc_plan.hpp"
#include "jit/conv/problem.hpp"

namespace castor::jit {

/// What bounds K loops on a core, and the cycles of all other events.
struct ConvolutionCosts {
  double product_512 = 1;    ///< cycles from one product of 512 bits to the next, of all pipes
  double product_256 = 0.5;  ///< the same of 256 bits
  double load = 0.5;         ///< cycles from one vector load to the next
  double latency = 10;  ///< products that fit between two that add to one accumulator, in cycles
  EventCycles cycles = {};
};
/// The costs on the target's core.
const ConvolutionCosts& costs_on(const Target& target);

/// Part of the k steps whose first pixel does not begin a cache line, 0 to 1.
double unaligned_fraction(const ConvPlan& plan);
/// A cache block's register tiles for all output channels of a group: `plan.tile` of pixels, or
/// that tile of channels. `unaligned` is the plan's unaligned_fraction.
Cost cost_of_line(const ConvPlan& plan, double unaligned, const ConvolutionCosts& costs);
Cost cost_of_block(const ConvPlan& plan, const DenseTile& tile, const ConvolutionCosts& costs);

/// Packing the input of one image.
Cost packing_cost(const ConvPlan& plan, const ConvolutionProblem& problem, const Target& target);

/// Everything that one call does for one image: packing, window sums, register tiles, and, where
/// weights are given at run time, their packing.
Cost cost_of(const ConvPlan& plan, const ConvolutionProblem& problem, const Target& target);
Cost cost_of(const DepthwisePlan& plan, const ConvolutionProblem& problem, const Target& target);
Cost cost_of(const GroupedNhwcPlan& plan, const ConvolutionProblem& problem, const Target& target);

}  // namespace castor::jit
