// SPDX-License-Identifier: Apache-2.0
#include "jit/dump/dump_convolution.hpp"

#include <fmt/format.h>

#include <array>

#include "ir/text/text.hpp"
#include "jit/conv/conv_plan.hpp"
#include "jit/conv/depthwise_plan.hpp"
#include "jit/conv/fuse_convolutions.hpp"
#include "jit/conv/grouped_nhwc_plan.hpp"
#include "jit/plan/access_pattern.hpp"

namespace castor::jit {

namespace {

/// The geometry of a convolution's nest, as if unknown extents were long; for one without output
/// there is none.
Result<ConvolutionGeometry> likely_geometry(const Function& function, const Nest& nest) {
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
  return *geometry;
}

bool input_is_signed(const Function& function, const Nest& nest) {
  const ValueId x = function.operations[*nest.convolution].operands[0];
  return function.values[x].type.element == ElementType::i8;
}

/// The epilogue that kernels apply to their register tiles; nothing where a nest of its own applies
/// it, or where there is none.
std::optional<TileEpilogue> likely_epilogue(const Function& function, std::span<const Nest> nests,
                                            size_t index, const Target& target) {
  if (!nests[index].fusion || !nests[index].fusion->is_fused()) return std::nullopt;
  return likely_tile_epilogue(function, nests[index + 1], target);
}

std::string epilogue_text(const Function& function, const Nest& nest, bool is_applied) {
  return is_applied ? "the next nest, on each tile, by the kernel itself"
                    : text_of(function, *nest.fusion);
}

/// A pixel-vectorised depthwise plan, and the epilogue that its kernels apply, or null.
struct DepthwiseChoice {
  DepthwisePlan plan;
  const TileEpilogue* applied = nullptr;
};

/// Nothing where there is no plan.
std::optional<DepthwiseChoice> choose_depthwise(const ConvolutionGeometry& geometry,
                                                bool x_is_signed,
                                                const std::optional<TileEpilogue>& epilogue,
                                                const Target& target) {
  const auto serves = [&](const DepthwisePlan& plan) {
    return emit_kernel(plan.form, target, &*epilogue).ok();
  };
  if (epilogue) {
    auto plan = plan_depthwise_with(*epilogue, geometry, x_is_signed, target, serves);
    if (plan) return DepthwiseChoice{std::move(*plan), &*epilogue};
  }
  auto plan = plan_depthwise(geometry, x_is_signed, target);
  if (!plan) return std::nullopt;
  return DepthwiseChoice{std::move(*plan)};
}

/// A channel-vectorised grouped plan, and the epilogue that its kernels apply, or null.
struct NhwcChoice {
  GroupedNhwcPlan plan;
  const TileEpilogue* applied = nullptr;
};

/// There is a plan without the epilogue.
NhwcChoice choose_nhwc(const ConvolutionGeometry& geometry, bool x_is_signed,
                       const std::optional<TileEpilogue>& epilogue, const Target& target) {
  const TileEpilogue* applied = epilogue ? &*epilogue : nullptr;
  auto plan = plan_grouped_nhwc(geometry, x_is_signed, target, applied);
  if (plan) return {std::move(*plan), applied};
  return {*plan_grouped_nhwc(geometry, x_is_signed, target)};
}

}  // namespace

Result<std::string> convolution_text(const Function& function, std::span<const Nest> nests,
                                     size_t index, const Target& target) {
  const Nest& nest = nests[index];
  const Result<ConvolutionGeometry> geometry = likely_geometry(function, nest);
  if (!geometry) return geometry.error();
  const bool x_is_signed = input_is_signed(function, nest);
  const std::string operation = print(function, function.operations[*nest.convolution]);
  const auto epilogue = likely_epilogue(function, nests, index, target);
  if (const auto choice = choose_depthwise(*geometry, x_is_signed, epilogue, target)) {
    return fmt::format("  {}\n{}  epilogue {}\n", operation, print(choice->plan, target),
                       epilogue_text(function, nest, choice->applied != nullptr));
  }
  if (plan_grouped_nhwc(*geometry, x_is_signed, target)) {
    const NhwcChoice choice = choose_nhwc(*geometry, x_is_signed, epilogue, target);
    return fmt::format("  {}\n{}  epilogue {}\n", operation, print(choice.plan, target),
                       epilogue_text(function, nest, choice.applied != nullptr));
  }
  const ConvPlan plan = plan_convolution(*geometry, x_is_signed, target);
  return fmt::format("  {}\n{}  epilogue {}\n", operation, print(plan),
                     epilogue_text(function, nest, epilogue && can_apply(plan, *epilogue)));
}

Result<MachineCode> emit_convolution(const Function& function, std::span<const Nest> nests,
                                     size_t index, const Target& target) {
  const Nest& nest = nests[index];
  const Result<ConvolutionGeometry> geometry = likely_geometry(function, nest);
  if (!geometry) return geometry.error();
  const bool x_is_signed = input_is_signed(function, nest);
  std::optional<TileEpilogue> epilogue = likely_epilogue(function, nests, index, target);
  if (const auto choice = choose_depthwise(*geometry, x_is_signed, epilogue, target)) {
    return emit_kernel(choice->plan.form, target, choice->applied);
  }
  if (plan_grouped_nhwc(*geometry, x_is_signed, target)) {
    const NhwcChoice choice = choose_nhwc(*geometry, x_is_signed, epilogue, target);
    return emit_kernel(choice.plan.form, target, choice.applied);
  }
  const ConvPlan plan = plan_convolution(*geometry, x_is_signed, target);
  if (epilogue && !can_apply(plan, *epilogue)) epilogue.reset();
  const TileEpilogue* applied = epilogue ? &*epilogue : nullptr;
  return plan.lanes_hold == ConvLanes::pixels
             ? emit_kernel(kernel_tile(plan, applied != nullptr), target, applied)
             : emit_kernel(plan.channel_tile, target, applied);
}

}  // namespace castor::jit
