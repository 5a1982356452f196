// SPDX-License-Identifier: Apache-2.0
#include "jit/dump/dump_convolution.hpp"

#include <fmt/format.h>

#include <array>

#include "ir/text/text.hpp"
#include "jit/conv/candidates.hpp"
#include "jit/conv/epilogue/epilogue.hpp"
#include "jit/plan/access_pattern.hpp"

namespace castor::jit {

namespace {

/// The problem of a convolution's nest, as if unknown extents were long; for one without output
/// there is none.
Result<ConvolutionProblem> likely_problem(const Function& function, const Nest& nest) {
  const Result<BoundShapes> shapes = likely_shapes(function);
  if (!shapes) return shapes.error();
  const Operation& operation = function.operations[*nest.convolution];
  std::array<const Dims*, 4> extents = {};
  for (size_t i = 0; i < operation.operands.size(); ++i) {
    if (operation.operands[i] != no_value) extents[i] = &shapes->values[operation.operands[i]];
  }
  const Result<ConvolutionGeometry> geometry =
      convolution_geometry(operation, *extents[0], *extents[1], extents[2], extents[3]);
  if (!geometry) return geometry.error();
  const bool is_empty = element_count(geometry->output_extents()).value_or(0) == 0;
  if (is_empty || geometry->group_channels() == 0) {
    return Error{ErrorCode::unsupported, "the convolution has nothing to multiply"};
  }
  if (Status status = check_filter(*geometry); !status) return status.error();
  const auto element = [&](size_t operand) {
    return function.values[operation.operands[operand]].type.element;
  };
  const bool has_zero_points = operation.operands.size() > 3 && operation.operands[3] != no_value;
  return ConvolutionProblem{.geometry = *geometry,
                            .x_is_signed = element(0) == ElementType::i8,
                            .w_is_signed = element(1) == ElementType::i8,
                            .has_weight_zero_points = has_zero_points};
}

/// The epilogue that kernels apply to their register tiles; nothing where a nest of its own applies
/// it, or where there is none.
std::optional<TileEpilogue> likely_epilogue(const Function& function, std::span<const Nest> nests,
                                            size_t index, const Target& target) {
  if (!nests[index].fusion || !nests[index].fusion->is_fused()) return std::nullopt;
  return likely_tile_epilogue(function, nests[index + 1], target);
}

Result<MachineCode> emit_microkernel(const Candidate& candidate, const Target& target,
                                     const TileEpilogue* epilogue) {
  if (const auto* plan = std::get_if<DepthwisePlan>(&candidate.plan)) {
    return emit_kernel(plan->spec, target, epilogue);
  }
  if (const auto* plan = std::get_if<GroupedNhwcPlan>(&candidate.plan)) {
    return emit_kernel(plan->spec, target, epilogue);
  }
  const auto& plan = std::get<DensePlan>(candidate.plan);
  return emit_kernel(kernel_tile(plan.tile, epilogue != nullptr), target, epilogue);
}

std::string epilogue_text(const Function& function, const Nest& nest, bool is_applied) {
  return is_applied ? "the next nest, on each tile, by the kernel itself"
                    : text_of(function, *nest.fusion);
}

}  // namespace

Result<std::string> convolution_text(const Function& function, std::span<const Nest> nests,
                                     size_t index, const Target& target) {
  const Nest& nest = nests[index];
  const Result<ConvolutionProblem> problem = likely_problem(function, nest);
  if (!problem) return problem.error();
  const std::string operation = print(function, function.operations[*nest.convolution]);
  const auto epilogue = likely_epilogue(function, nests, index, target);
  const std::vector<Candidate> all = candidates(*problem, target, epilogue ? &*epilogue : nullptr);
  return fmt::format("  {}\n{}  epilogue {}\n", operation, print(all, target),
                     epilogue_text(function, nest, all.front().applies_epilogue));
}

Result<MachineCode> emit_convolution(const Function& function, std::span<const Nest> nests,
                                     size_t index, const Target& target) {
  const Result<ConvolutionProblem> problem = likely_problem(function, nests[index]);
  if (!problem) return problem.error();
  const auto epilogue = likely_epilogue(function, nests, index, target);
  Candidate candidate = choose(*problem, target, epilogue ? &*epilogue : nullptr);
  for (;;) {
    Result<MachineCode> code =
        emit_microkernel(candidate, target, candidate.applies_epilogue ? &*epilogue : nullptr);
    if (code.ok() || !candidate.applies_epilogue) return code;
    candidate = without_room(std::move(candidate), *problem, target, *epilogue);
  }
}

}  // namespace castor::jit
