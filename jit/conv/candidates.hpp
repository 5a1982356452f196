// SPDX-License-Identifier: Apache-2.0
// How a convolution is done is decided here alone: every plan that is possible is a
// candidate with a cost, and the one with the lowest cost is chosen. The runtime, dumps, tests and
// the benchmark ask here.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "jit/conv/dense_plan.hpp"
#include "jit/conv/dot/dot_plan.hpp"
#include "jit/conv/sliding/sliding_plan.hpp"
#include "jit/conv/weight_rows_plan.hpp"
#include "jit/core/core_tuning.hpp"

namespace castor::jit {

/// The costs on the target's core.
inline const ConvolutionCosts& costs_on(const Target& target) {
  return target.tuning().convolution;
}

/// The register tiles of one block.
EventCounts products_cost(const DensePlan& plan, const Target& target);

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
EventCounts cost_of(const DotPlan& plan, const ConvolutionProblem& problem, const Target& target);
EventCounts cost_of(const WeightRowsPlan& plan, const ConvolutionProblem& problem,
                    const Target& target);

using ConvolutionPlan =
    std::variant<DensePlan, DepthwisePlan, GroupedNhwcPlan, DotPlan, WeightRowsPlan>;

/// One way to do a convolution.
struct Candidate {
  ConvolutionPlan plan;
  bool applies_epilogue = false;  ///< its kernels apply the epilogue, if there is one
  EventCounts cost;               ///< of one image
  double cycles = 0;              ///< the same on the target's core
};

/// The candidate that a plan is, without an epilogue.
Candidate candidate_of(ConvolutionPlan plan, const ConvolutionProblem& problem,
                       const Target& target);

/// All candidates by ascending cycles; at least one, unless each image has weights of its own and
/// there is no dot plan. `epilogue` is what follows the convolution and
/// kernels may apply, or null. A pure function of its arguments, so that equal problems get equal
/// plans on machines with equal targets.
std::vector<Candidate> candidates(const ConvolutionProblem& problem, const Target& target,
                                  const TileEpilogue* epilogue = nullptr);

/// The candidate with the lowest cost.
Candidate choose(const ConvolutionProblem& problem, const Target& target,
                 const TileEpilogue* epilogue = nullptr);

/// "pixel_vectorised nchw4c", "channel_vectorised input", "depthwise", "grouped_nhwc", "dot",
/// "tiles weight_rows".
std::string name_of(const Candidate& candidate);
/// The chosen plan in words, then every candidate with its cycles and what the largest part of them
/// is.
std::string print(std::span<const Candidate> all, const Target& target);

}  // namespace castor::jit
