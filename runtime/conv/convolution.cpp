// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/convolution.hpp"

#include <cstring>
#include <utility>

#include "jit/tile_permission.hpp"

namespace castor::detail {

namespace {

/// Whether there is any output.
bool has_outputs(const ConvolutionGeometry& geometry) {
  return element_count(geometry.output_extents()).value_or(0) > 0;
}

bool has_tiles(const jit::Candidate& candidate) {
  if (std::holds_alternative<jit::WeightRowsPlan>(candidate.plan)) return true;
  const auto* dense = std::get_if<jit::DensePlan>(&candidate.plan);
  return dense != nullptr && dense->tile.has_tiles();
}

/// The candidate with the lowest cost for the convolution's target. Tiles are asked for here, when
/// they are wanted; where they are refused, the target is lowered to the next tier.
jit::Candidate choose_permitted(const jit::ConvolutionProblem& problem,
                                const jit::TileEpilogue* epilogue, BoundConvolution& convolution) {
  jit::Candidate chosen = choose(problem, convolution.target, epilogue);
  if (!has_tiles(chosen)) return chosen;
  jit::PermittedTier permitted = jit::permitted_tier(convolution.target.tier);
  if (permitted.lower_because.empty()) return chosen;
  convolution.target.tier = permitted.tier;
  convolution.lower_tier_because = std::move(permitted.lower_because);
  return choose(problem, convolution.target, epilogue);
}

/// Binds by a candidate's plan.
Status bind_candidate(BoundConvolution& convolution, const jit::Candidate& candidate,
                      const ConvolutionBinding& by) {
  convolution.applies_epilogue = candidate.applies_epilogue;
  const auto bind = [&](const auto& plan) -> Status {
    auto bound = bind_plan(plan, by);
    if (!bound.ok()) return bound.error();
    convolution.scratch_bytes = (*bound)->scratch_bytes;
    convolution.form = std::move(bound).value();
    return {};
  };
  return std::visit(bind, candidate.plan);
}

}  // namespace

Result<std::shared_ptr<const BoundConvolution>> bind_convolution(
    const ConvolutionGeometry& geometry, const ConvolutionOperands& operands,
    std::span<const std::byte* const> constants, const jit::Target& target, CodeCache& cache,
    ScratchPlan& scratch, const ConvolutionChoice& choice) {
  auto bound = std::make_shared<BoundConvolution>();
  bound->geometry = geometry;
  bound->target = target;
  if (!has_outputs(geometry) || geometry.group_channels() == 0) {
    return std::shared_ptr<const BoundConvolution>(std::move(bound));
  }
  if (Status status = jit::check_filter(geometry); !status) return status.error();
  const jit::ConvolutionProblem problem = {.geometry = geometry,
                                           .x_is_signed = operands.x_is_signed,
                                           .w_is_signed = operands.w_is_signed,
                                           .has_weight_zero_points = operands.w_zero_point >= 0,
                                           .has_constant_weights = constants[1] != nullptr};
  const jit::Candidate candidate = choice.candidate != nullptr
                                       ? *choice.candidate
                                       : choose_permitted(problem, choice.epilogue, *bound);
  const auto* epilogue = candidate.applies_epilogue ? choice.epilogue : nullptr;
  const ConvolutionBinding by = {problem, operands, constants,           bound->target,
                                 cache,   epilogue, choice.has_residual, choice.weights};
  if (Status status = bind_candidate(*bound, candidate, by); !status) return status.error();
  if (bound->scratch_bytes > 0) bound->scratch = scratch.take(bound->scratch_bytes);
  return std::shared_ptr<const BoundConvolution>(std::move(bound));
}

void run_convolution(const ConvolutionStep& step, const CallMemory& memory) {
  const BoundConvolution& convolution = *step.convolution;
  const auto run = [&](const auto& bound) {
    if constexpr (std::is_same_v<decltype(bound), const NothingToMultiply&>) {
      const int64_t count = element_count(convolution.geometry.output_extents()).value_or(0);
      void* to = reinterpret_cast<void*>(address(step.operands.back(), memory));
      if (count > 0) std::memset(to, 0, static_cast<size_t>(count) * 4);
    } else {
      run_plan(*bound, convolution.scratch, step, memory);
    }
  };
  std::visit(run, convolution.form);
}

}  // namespace castor::detail
