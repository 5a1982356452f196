// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/convolution.hpp"

#include <cstring>

namespace castor::detail {

namespace {

/// Whether there is any output.
bool has_outputs(const ConvolutionGeometry& geometry) {
  return element_count(geometry.output_extents()).value_or(0) > 0;
}

/// The operands of a convolution that is bound, and where it finds code.
struct Binding {
  const ConvolutionOperands& operands;
  std::span<const std::byte* const> constants;
  const jit::Target& target;
  CodeCache& cache;
  const ConvolutionChoice& choice;
};

/// Binds a convolution to one candidate. Fails (unsupported) where that is to apply the epilogue
/// and its kernels have no room for it.
Status bind_candidate(BoundConvolution& convolution, const jit::Candidate& candidate,
                      const jit::ConvolutionProblem& problem, const Binding& by) {
  convolution.applies_epilogue = candidate.applies_epilogue;
  const jit::TileEpilogue* epilogue = candidate.applies_epilogue ? by.choice.epilogue : nullptr;
  const auto bind = [&](const auto& plan) -> Status {
    auto bound = bind_sliding(plan, by.operands, by.constants, by.target, by.cache, epilogue,
                              by.choice.weights);
    if (!bound.ok()) return bound.error();
    convolution.scratch_bytes = (*bound)->scratch_bytes;
    convolution.form = std::move(bound).value();
    return {};
  };
  if (const auto* plan = std::get_if<jit::DepthwisePlan>(&candidate.plan)) return bind(*plan);
  if (const auto* plan = std::get_if<jit::GroupedNhwcPlan>(&candidate.plan)) return bind(*plan);
  auto bound = bind_dense(candidate, problem, by.operands, by.constants, by.target, by.cache,
                          epilogue, by.choice.weights);
  if (!bound.ok()) return bound.error();
  convolution.scratch_bytes = bound->parts.end;
  convolution.form = std::move(bound).value();
  return {};
}

/// By the candidate that is asked for, or the one with the lowest cost; `convolution` has its
/// geometry, and outputs.
Status bind_best(BoundConvolution& convolution, const Binding& by) {
  const jit::ConvolutionProblem problem = {.geometry = convolution.geometry,
                                           .x_is_signed = by.operands.x_is_signed,
                                           .w_is_signed = by.operands.w_is_signed,
                                           .has_weight_zero_points = by.operands.w_zero_point >= 0,
                                           .has_constant_weights = by.constants[1] != nullptr};
  if (Status status = jit::check_filter(problem.geometry); !status) return status;
  jit::Candidate candidate = by.choice.candidate != nullptr
                                 ? *by.choice.candidate
                                 : choose(problem, by.target, by.choice.epilogue);
  for (;;) {
    Status status = bind_candidate(convolution, candidate, problem, by);
    const bool is_refused = !status && status.error().code == ErrorCode::unsupported;
    if (!is_refused || !candidate.applies_epilogue) return status;
    candidate = without_room(std::move(candidate), problem, by.target, *by.choice.epilogue);
  }
}

}  // namespace

Result<std::shared_ptr<const BoundConvolution>> bind_convolution(
    const ConvolutionGeometry& geometry, const ConvolutionOperands& operands,
    std::span<const std::byte* const> constants, const jit::Target& target, CodeCache& cache,
    ScratchPlan& scratch, const ConvolutionChoice& choice) {
  auto bound = std::make_shared<BoundConvolution>();
  bound->geometry = geometry;
  if (has_outputs(geometry) && geometry.group_channels() > 0) {
    const Binding by = {operands, constants, target, cache, choice};
    if (Status status = bind_best(*bound, by); !status) return status.error();
    if (bound->scratch_bytes > 0) bound->scratch = scratch.take(bound->scratch_bytes);
  }
  return std::shared_ptr<const BoundConvolution>(std::move(bound));
}

void run_convolution(const ConvolutionStep& step, const CallMemory& memory) {
  const BoundConvolution& convolution = *step.convolution;
  const size_t scratch = convolution.scratch;
  if (const auto* dense = convolution.dense()) return run_dense(*dense, scratch, step, memory);
  if (const auto* depthwise = convolution.depthwise()) {
    return run_depthwise(*depthwise, scratch, step, memory);
  }
  if (const auto* grouped = convolution.grouped_nhwc()) {
    return run_grouped_nhwc(*grouped, scratch, step, memory);
  }
  const int64_t count = element_count(convolution.geometry.output_extents()).value_or(0);
  void* to = reinterpret_cast<void*>(address(step.operands.back(), memory));
  if (count > 0) std::memset(to, 0, static_cast<size_t>(count) * 4);
}

}  // namespace castor::detail
