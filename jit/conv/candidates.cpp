// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/candidates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <span>
#include <utility>

namespace castor::jit {

namespace {

/// Vectors of results of an image.
template <class Plan>
double result_vectors(const Plan& plan) {
  auto results = static_cast<double>(plan.geometry.out_channels);
  for (const ConvolutionAxis& axis : plan.geometry.axes) {
    results *= static_cast<double>(axis.output);
  }
  return results / DenseTile::tile_rows;
}

// Cycles of results of tile registers that depend on whether kernels apply an epilogue.
double applied_result_cycles(const DensePlan& plan, bool applies_epilogue, const Target& target) {
  const bool transposes = plan.tile.has_tiles() && plan.tile.store == StorePolicy::transposed;
  const double cycles = costs_on(target).tiles.applied_vector;
  return transposes && applies_epilogue ? cycles * result_vectors(plan) : 0;
}
double applied_result_cycles(const WeightRowsPlan& plan, bool applies_epilogue,
                             const Target& target) {
  const TileCosts& costs = costs_on(target).tiles;
  const bool has_whole_rows = plan.pixels % DenseTile::tile_rows == 0;
  if (!applies_epilogue) {
    return (has_whole_rows ? costs.spread_vector : costs.split_vector) * result_vectors(plan);
  }
  const auto rows = static_cast<double>(plan.geometry.out_channels);
  return has_whole_rows ? 0 : costs.partial_vector * rows;
}
/// Plans without tile registers.
template <class Plan>
double applied_result_cycles(const Plan&, bool, const Target&) {
  return 0;
}

/// What a plan costs as a candidate, but for an epilogue that its kernels do not apply.
template <class Plan>
EventCounts full_cost(const Plan& plan, const ConvolutionProblem& problem, bool applies_epilogue,
                      const Target& target) {
  EventCounts cost = cost_of(plan, problem, target);
  cost[CostEvent::tile_results] += applied_result_cycles(plan, applies_epilogue, target);
  return cost;
}

/// All candidates, in no order.
std::vector<Candidate> collect(const ConvolutionProblem& problem, const Target& target,
                               const TileEpilogue* epilogue) {
  const ConvolutionGeometry& geometry = problem.geometry;
  std::vector<Candidate> all;
  const auto add = [&](auto plan, bool applies) {
    EventCounts cost = full_cost(plan, problem, applies, target);
    if (epilogue != nullptr && !applies) {  // which reads all results again
      auto outputs = static_cast<double>(geometry.out_channels);
      for (const ConvolutionAxis& axis : geometry.axes) outputs *= static_cast<double>(axis.output);
      cost[CostEvent::piecewise_output] = outputs;
    }
    all.push_back({std::move(plan), applies, cost, cost.cycles(costs_on(target).cycles)});
  };
  // The plan whose kernels apply the epilogue, if there is one; else, if there is one, the other.
  const auto add_either = [&](const auto& plan_with) {
    if (epilogue != nullptr) {
      if (auto applying = plan_with(epilogue)) return add(std::move(*applying), true);
    }
    if (auto alone = plan_with(nullptr)) add(std::move(*alone), false);
  };
  if (auto plan = plan_dot(problem, target)) add(std::move(*plan), false);
  if (geometry.has_weights_by_image) return all;
  for (DensePlan& plan : possible_plans(problem, target)) {
    const bool applies = epilogue != nullptr && can_apply(plan, *epilogue);
    add(std::move(plan), applies);
  }
  if (auto plan = plan_weight_rows(problem, target)) {
    add(std::move(*plan), epilogue != nullptr && !epilogue->rows_of_channels);
  }
  add_either([&](const TileEpilogue* with) { return plan_depthwise(problem, target, with); });
  add_either([&](const TileEpilogue* with) { return plan_grouped_nhwc(problem, target, with); });
  return all;
}

/// The event that takes most cycles.
std::string largest_part(const Candidate& candidate, const Target& target) {
  const EventCycles& cycles = costs_on(target).cycles;
  const auto part = [&](const CostEventInfo& info) {
    return candidate.cost[info.event] * cycles[static_cast<size_t>(info.event)];
  };
  const CostEventInfo& largest = *std::ranges::max_element(cost_event_table, {}, part);
  return fmt::format("{} {:.0f} %", largest.name, 100 * part(largest) / candidate.cycles);
}

std::string print_plan(const ConvolutionPlan& plan, const Target& target) {
  const std::string text = std::visit([](const auto& any) { return print(any); }, plan);
  const bool depends_on_caches =
      std::holds_alternative<DensePlan>(plan) || std::holds_alternative<WeightRowsPlan>(plan);
  if (!depends_on_caches) return text;
  return fmt::format("{}  caches   {}\n", text, print(target.caches));
}

}  // namespace

Candidate candidate_of(ConvolutionPlan plan, const ConvolutionProblem& problem,
                       const Target& target) {
  const EventCounts cost =
      std::visit([&](const auto& any) { return full_cost(any, problem, false, target); }, plan);
  return {std::move(plan), false, cost, cost.cycles(costs_on(target).cycles)};
}

std::vector<Candidate> candidates(const ConvolutionProblem& problem, const Target& target,
                                  const TileEpilogue* epilogue) {
  std::vector<Candidate> all = collect(problem, target, epilogue);
  std::ranges::stable_sort(all, {}, &Candidate::cycles);
  return all;
}

Candidate choose(const ConvolutionProblem& problem, const Target& target,
                 const TileEpilogue* epilogue) {
  std::vector<Candidate> all = candidates(problem, target, epilogue);
  assert(!all.empty());
  return std::move(all.front());
}

std::string name_of(const Candidate& candidate) {
  if (const auto* plan = std::get_if<DensePlan>(&candidate.plan)) {
    if (plan->tile.has_tiles()) return fmt::format("tiles {}", source_name(*plan));
    return fmt::format("{}_vectorised {}", plan->is_pixel_vectorised() ? "pixel" : "channel",
                       source_name(*plan));
  }
  if (std::holds_alternative<DotPlan>(candidate.plan)) return "dot";
  if (std::holds_alternative<WeightRowsPlan>(candidate.plan)) return "tiles weight_rows";
  return std::holds_alternative<DepthwisePlan>(candidate.plan) ? "depthwise" : "grouped_nhwc";
}

std::string print(std::span<const Candidate> all, const Target& target) {
  std::string text = print_plan(all.front().plan, target);
  text += fmt::format("  chosen   {}: {:.0f} cycles an image, of which {}\n", name_of(all.front()),
                      all.front().cycles, largest_part(all.front(), target));
  for (const Candidate& other : all.subspan(1)) {
    text += fmt::format("  costlier {}: {:.2f} times as many, of which {}\n", name_of(other),
                        other.cycles / all.front().cycles, largest_part(other, target));
  }
  return text;
}

}  // namespace castor::jit
