// SPDX-License-Identifier: Apache-2.0
// Costs of plans, by the events of cost_events.hpp.
#pragma once

#include <span>

#include "jit/conv/dense_plan.hpp"
#include "jit/conv/sliding/depthwise_plan.hpp"
#include "jit/conv/sliding/grouped_nhwc_plan.hpp"
#include "jit/core/core_tuning.hpp"

namespace castor::jit {

/// The costs on the target's core.
inline const ConvolutionCosts& costs_on(const Target& target) {
  return target.tuning().convolution;
}

/// The register tile with the lowest cost for a dense plan whose source and block are chosen.
DenseTile cheapest_tile(const DensePlan& plan, std::span<const DenseTile> tiles,
                        const Target& target);

/// Packing the input of one image.
EventCounts packing_cost(const DensePlan& plan, const ConvolutionProblem& problem,
                         const Target& target);

/// Everything that one call does for one image: packing, window sums, register tiles, and, where
/// weights are given at run time, their packing.
EventCounts cost_of(const DensePlan& plan, const ConvolutionProblem& problem, const Target& target);
EventCounts cost_of(const DepthwisePlan& plan, const ConvolutionProblem& problem,
                    const Target& target);
EventCounts cost_of(const GroupedNhwcPlan& plan, const ConvolutionProblem& problem,
                    const Target& target);

}  // namespace castor::jit
