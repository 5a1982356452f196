// SPDX-License-Identifier: Apache-2.0
#include "jit/dump/dump_convolution.hpp"

#include <fmt/format.h>

#include <array>

#include "ir/rewrite/split_zero_points.hpp"
#include "ir/text/text.hpp"
#include "jit/conv/epilogue/folded_results.hpp"
#include "jit/dump/annotate.hpp"
#include "jit/matmul/matmul_convolution.hpp"
#include "jit/plan/access_pattern.hpp"

namespace castor::jit {

namespace {

/// What is multiplied: an image, by its operand's number, and the other operand as weights.
struct LikelyGeometry {
  ConvolutionGeometry geometry;
  size_t image = 0;
};

Result<LikelyGeometry> geometry_of_matmul(const Function& function, const Operation& operation,
                                          const BoundShapes& shapes) {
  const auto matmul = LikelyMatmuls(function).of(operation, shapes);
  if (!matmul) return Error{ErrorCode::unsupported, reason_not_split(function)};
  return LikelyGeometry{matmul->geometry, matmul->image == MatmulImage::a ? 0u : 1u};
}

/// As if unknown extents were long.
Result<LikelyGeometry> likely_geometry(const Function& function, const Operation& operation) {
  const Result<BoundShapes> shapes = likely_shapes(function);
  if (!shapes) return shapes.error();
  if (operation.op == OpKind::matmul_integer) {
    return geometry_of_matmul(function, operation, *shapes);
  }
  std::array<const Dims*, 4> extents = {};
  for (size_t i = 0; i < operation.operands.size(); ++i) {
    if (operation.operands[i] != no_value) extents[i] = &shapes->values[operation.operands[i]];
  }
  const Result<ConvolutionGeometry> geometry =
      convolution_geometry(operation, *extents[0], *extents[1], extents[2], extents[3]);
  if (!geometry) return geometry.error();
  return LikelyGeometry{*geometry};
}

bool is_fused(const Nest& nest) { return nest.fusion && nest.fusion->is_fused(); }

/// The problem of a convolution's nest; for one without output there is none.
Result<ConvolutionProblem> likely_problem(const Function& function, std::span<const Nest> nests,
                                          size_t index) {
  const Nest& nest = nests[index];
  const Operation& operation = function.operations[*nest.convolution];
  Result<LikelyGeometry> likely = likely_geometry(function, operation);
  if (!likely) return likely.error();
  ConvolutionGeometry* const geometry = &likely->geometry;
  const bool is_empty = element_count(geometry->output_extents()).value_or(0) == 0;
  if (is_empty || geometry->group_channels() == 0) {
    return Error{ErrorCode::unsupported, "the convolution has nothing to multiply"};
  }
  if (Status status = check_filter(*geometry); !status) return status.error();
  const ConvolutionGeometry joined = with_joined_images(*geometry);
  if (!is_fused(nest) || likely_joins_images(function, nests[index + 1], joined)) {
    *geometry = joined;
  }
  const auto element = [&](size_t operand) {
    return function.values[operation.operands[operand]].type.element;
  };
  const size_t image = likely->image;
  const size_t weights = 1 - image;
  return ConvolutionProblem{
      .geometry = *geometry,
      .x_is_signed = element(image) == ElementType::i8,
      .w_is_signed = element(weights) == ElementType::i8,
      .has_weight_zero_points = operation.operands[weights + 2] != no_value,
      .has_constant_weights = constant_values(function)[operation.operands[weights]]};
}

/// The ways in which kernels may apply the epilogue to their register tiles, in the order in which
/// binding tries them; none where a nest of its own applies it, or where there is none.
std::vector<TileEpilogue> likely_epilogues(const Function& function, std::span<const Nest> nests,
                                           size_t index, const Target& target) {
  if (!is_fused(nests[index])) return {};
  auto epilogue = likely_tile_epilogue(function, nests[index + 1], target);
  if (!epilogue) return {};
  return ways_to_apply(std::move(*epilogue), nests[index + 1], nests);
}

DenseTile kernel_of(const DensePlan& plan, bool has_epilogue) {
  return kernel_tile(plan.tile, has_epilogue);
}
DepthwiseSpec kernel_of(const DepthwisePlan& plan, bool) { return plan.spec; }
GroupedNhwcSpec kernel_of(const GroupedNhwcPlan& plan, bool) { return plan.spec; }
DotTile kernel_of(const DotPlan& plan, bool) { return plan.tile; }
DenseTile kernel_of(const WeightRowsPlan& plan, bool has_epilogue) {
  return kernel_tile(plan.product.tile, has_epilogue);
}

std::string epilogue_text(const Function& function, std::span<const Nest> nests, size_t index,
                          const TileEpilogue* applied) {
  if (applied == nullptr) return text_of(function, *nests[index].fusion);
  const std::string text = "the next nest, on each tile, by the kernel itself";
  if (applied->folds() == 0) return text;
  return text + fmt::format(", with the folds of nest {}", nests[index + 1].folded->nest);
}

}  // namespace

Result<DumpedConvolution> dumped_convolution(const Function& function, std::span<const Nest> nests,
                                             size_t index, const Target& target) {
  const Result<ConvolutionProblem> problem = likely_problem(function, nests, index);
  if (!problem) return problem.error();
  DumpedConvolution dumped = {*problem, {}, {}};
  for (TileEpilogue& way : likely_epilogues(function, nests, index, target)) {
    dumped.epilogue = std::move(way);
    dumped.candidates = candidates(*problem, target, &*dumped.epilogue);
    if (dumped.chosen().applies_epilogue) return dumped;
  }
  if (dumped.candidates.empty()) dumped.candidates = candidates(*problem, target);
  return dumped;
}

Result<std::string> convolution_text(const Function& function, std::span<const Nest> nests,
                                     size_t index, const Target& target) {
  const Nest& nest = nests[index];
  const auto dumped = dumped_convolution(function, nests, index, target);
  if (!dumped) return dumped.error();
  const std::string operation = print(function, function.operations[*nest.convolution]);
  return fmt::format("  {}\n{}  epilogue {}\n", operation, print(dumped->candidates, target),
                     epilogue_text(function, nests, index, dumped->applied()));
}

Result<MachineCode> emit_convolution(const Function& function, std::span<const Nest> nests,
                                     size_t index, const Target& target) {
  const auto dumped = dumped_convolution(function, nests, index, target);
  if (!dumped) return dumped.error();
  const TileEpilogue* applied = dumped->applied();
  const EmitOptions options = annotated_with(function);
  const auto emit = [&](const auto& plan) {
    return emit_any_kernel(kernel_of(plan, applied != nullptr), target, applied, options);
  };
  Result<MachineCode> code = std::visit(emit, dumped->chosen().plan);
  if (code) {
    note_operation(function, *nests[index].convolution, NotedCode::without_operation, *code);
  }
  return code;
}

Result<std::optional<MachineCode>> emit_input_packer(const Function& function, uint32_t operation,
                                                     const DumpedConvolution& convolution,
                                                     const Target& target) {
  const auto* plan = std::get_if<DensePlan>(&convolution.chosen().plan);
  if (plan == nullptr || !has_packing_code(*plan, target)) return std::optional<MachineCode>();
  Result<MachineCode> code = emit_kernel(pack_input_spec(*plan), target, annotated_with(function));
  if (!code) return code.error();
  note_operation(function, operation, NotedCode::all, *code);
  return std::optional(std::move(code).value());
}

}  // namespace castor::jit
