// SPDX-License-Identifier: Apache-2.0
// Binding of convolutions and matrix products, with the nest after them where it is fused.
#include <array>

#include "jit/conv/epilogue/folded_results.hpp"
#include "jit/core/core_tuning.hpp"
#include "jit/plan/access_pattern.hpp"
#include "runtime/bind/bind_matmul.hpp"
#include "runtime/bind/nest_binder.hpp"
#include "runtime/bind/work_estimate.hpp"
#include "runtime/cache/code_store.hpp"
#include "runtime/conv/convolution.hpp"
#include "runtime/memory/runtime_memory.hpp"

namespace castor::detail {

Result<NestBinder::FusedResult> NestBinder::fused_result(const jit::Nest& convolution) {
  const Operation& operation = compiled_.canonical->operations[*convolution.convolution];
  if (operation.op != OpKind::matmul_integer) {
    auto geometry = geometry_of(operation);
    if (!geometry.ok()) return geometry.error();
    FusedResult result = {geometry->out_channels, geometry->channels == 0, {}};
    if (result.sums_nothing) return result;
    const ConvolutionGeometry joined = jit::with_joined_images(*geometry);
    result.may_join_images = joined != *geometry;
    if (result.may_join_images) result.view = ResultView{joined.layout, joined.output_extents()};
    return result;
  }
  auto matmul = bind_matmul(operation, *compiled_.canonical, origins_, bound_.target);
  if (!matmul.ok()) return matmul.error();
  const ConvolutionGeometry& geometry = matmul->geometry;
  return FusedResult{geometry.out_channels, geometry.channels == 0,
                     ResultView{geometry.layout, matmul->result}};
}

/// How the nest takes a result that kernels see as `view`; `strides` are its operands' over these
/// extents.
std::optional<jit::EpilogueWalk> NestBinder::epilogue_over(const jit::Nest& nest,
                                                           const Dims& extents,
                                                           const ResultView& view,
                                                           std::vector<Dims> strides) {
  jit::Nest consumer = nest;
  consumer.epilogue->layout = view.layout;
  for (size_t k = 0; k < strides.size(); ++k) {
    if (k == nest.epilogue->source) continue;
    auto reshaped = jit::reshaped_strides(extents, strides[k], view.extents);
    if (!reshaped) return std::nullopt;
    strides[k] = *reshaped;
  }
  return jit::epilogue_walk(consumer, view.extents, strides);
}

/// Binds a convolution and the nest after it as one. False, and nothing is bound, where that is
/// not planned, or the tensors' extents and strides do not allow it.
Result<bool> NestBinder::bind_fused(const jit::Nest& convolution) {
  if (!convolution.fusion || !convolution.fusion->is_fused()) return false;
  const jit::Nest& nest = compiled_.nests[at_ + 1];
  const Dims& extents = origins_.extents_of(convolution.space);
  const Result<FusedResult> result = fused_result(convolution);
  if (!result.ok()) return result.error();
  if (origins_.extents_of(nest.space) != extents || result->sums_nothing) return false;
  if (Status status = copy_what_is_not_dense(nest); !status) return status.error();
  std::vector<Dims> strides;
  BoundEpilogue epilogue;
  epilogue.nest = at_ + 1;
  epilogue.first_output = nest.inputs.size();
  add_epilogue_operands(epilogue, nest, strides);
  std::optional<jit::EpilogueWalk> walk;
  if (result->view) walk = epilogue_over(nest, extents, *result->view, strides);
  const bool joins_images = walk && result->may_join_images;
  if (!walk && (!result->view || result->may_join_images)) {
    walk = jit::epilogue_walk(nest, extents, strides);
  }
  if (!walk) return false;
  epilogue.walk = std::move(*walk);
  epilogue.source = nest.epilogue->source;
  const std::vector<jit::TileEpilogue> tiles = tile_epilogues(nest, epilogue);
  epilogue.max_elements = compiled_.target.tuning().partition.max_epilogue_elements;
  const size_t slab = origins_.scratch().take(piece_bytes(epilogue, result->channels));
  Status status =
      bind_convolution_into(convolution, {.kind = OperandOrigin::Kind::scratch, .offset = slab},
                            joins_images, &epilogue, tiles);
  origins_.scratch().give_back(slab);
  if (!status) return status.error();
  return true;
}

/// The ways in which kernels may apply the epilogue, if they can. What they may fold gets memory
/// here, before the convolution's scratch is free for others again.
std::vector<jit::TileEpilogue> NestBinder::tile_epilogues(const jit::Nest& nest,
                                                          BoundEpilogue& bound) {
  auto tile = jit::tile_epilogue(nest, bound.walk, compiled_.target);
  if (!tile) return {};
  auto ways = jit::ways_to_apply(std::move(*tile), nest, compiled_.nests);
  if (ways.front().folds() == 0) return ways;
  const jit::Nest& folding = compiled_.nests[nest.folded->nest];
  for (size_t k = 0; k < folding.outputs.size(); ++k) {
    const jit::NestOutput& output = folding.outputs[k];
    const jit::MemoryOperand& sink = folding.program.sinks[k];
    bound.folds.push_back(
        {origins_.of_accumulator(output.value, output.accumulator, sink.element).origin, sink.fold,
         static_cast<uint32_t>(output.initial)});
  }
  return ways;
}

/// Adds the operands of an epilogue, and their strides over its space; its source has none.
void NestBinder::add_epilogue_operands(LaneStep& result, const jit::Nest& nest,
                                       std::vector<Dims>& strides) {
  const Dims& space = origins_.extents_of(nest.space);
  for (size_t k = 0; k < nest.inputs.size(); ++k) {
    if (k == nest.epilogue->source) {
      strides.emplace_back();
      add_operand(result, {.kind = OperandOrigin::Kind::scratch}, ElementType::i32, true);
      continue;
    }
    const TensorOrigin tensor = tensor_of(nest, k);
    const Dims& axes = nest.inputs[k].axes;
    strides.push_back(jit::strides_in_space(axes, tensor.extents, tensor.strides, space));
    add_operand(result, tensor.origin, nest.element(k), matches_space(nest, k));
  }
  add_outputs(result, nest, strides);
}

/// An output that is not dense is copied afterwards.
Status NestBinder::bind_convolution_nest(const jit::Nest& nest) {
  const TensorOrigin output =
      origins_.of_output(nest.outputs[0], ElementType::i32, origins_.extents_of(nest.space));
  const bool is_direct = origins_.is_dense(nest.space, output);
  const TensorOrigin to =
      is_direct ? output : origins_.in_scratch(nest.space, ElementType::i32, output.extents);
  if (Status status = bind_convolution_into(nest, to.origin, true, nullptr, {}); !status)
    return status;
  return is_direct ? Status() : copy_to(output, to, nest.space);
}

/// Whether an epilogue reads a tensor that differs from pixel to pixel, besides the sums.
bool NestBinder::reads_pixels(const BoundEpilogue& epilogue) const {
  const jit::EpilogueWalk& walk = epilogue.walk;
  for (size_t k = 0; k < compiled_.nests[epilogue.nest].inputs.size(); ++k) {
    const auto& steps = walk.operands[k];
    const int64_t along_pixels = walk.rows_of_channels ? steps.row : steps.element;
    if (k != epilogue.source && along_pixels != 0) return true;
  }
  return false;
}

/// Convolutions take dense tensors: others are copied first. Whether images may be joined, the
/// epilogue decides, which may be null; else y is where a slice is stored. `tiles`: the same
/// epilogue for kernels to apply, in the ways that there are; they get the first one that they can.
Status NestBinder::bind_convolution_into(const jit::Nest& nest, const OperandOrigin& y,
                                         bool joins_images, BoundEpilogue* epilogue,
                                         std::span<const jit::TileEpilogue> tiles) {
  auto result = new_step<ConvolutionStep>();
  Result<ConvolutionTensors> tensors = add_tensors(nest, result);
  if (!tensors.ok()) return tensors.error();
  if (joins_images) tensors->geometry = jit::with_joined_images(tensors->geometry);
  add_operand(result, y, ElementType::i32, true);
  const bool has_residual = epilogue != nullptr && reads_pixels(*epilogue);
  size_t way = 0;
  do {
    const jit::TileEpilogue* tile = way < tiles.size() ? &tiles[way] : nullptr;
    if (Status status = find_convolution(*tensors, tile, has_residual, result); !status) {
      return status;
    }
  } while (!result.convolution->applies_epilogue && ++way < tiles.size());
  if (epilogue != nullptr) {
    if (way < tiles.size() && tiles[way].folds() > 0) {
      is_folded_[compiled_.nests[at_ + 1].folded->nest] = true;
    } else {
      epilogue->folds.clear();
    }
    if (!result.convolution->applies_epilogue) {
      const jit::Nest& consumer = compiled_.nests[at_ + 1];
      Status status =
          codes_.bind_epilogue(consumer, likely(at_ + 1), epilogue->walk.space, *epilogue);
      if (!status) return status;
    }
    epilogue->piece_offset = static_cast<ptrdiff_t>(y.offset - result.convolution->scratch);
    result.epilogue = std::make_shared<const BoundEpilogue>(std::move(*epilogue));
  }
  bound_.steps.emplace_back(std::move(result));
  for (const size_t copy : tensors->copies) origins_.scratch().give_back(copy);
  return {};
}

/// Adds what a convolution reads to its step.
Result<ConvolutionTensors> NestBinder::add_tensors(const jit::Nest& nest, ConvolutionStep& step) {
  const Function& function = *compiled_.canonical;
  const Operation& operation = function.operations[*nest.convolution];
  if (operation.op != OpKind::matmul_integer) return add_convolution_tensors(nest, step);
  const auto matmul = bind_matmul(operation, function, origins_, bound_.target);
  if (!matmul.ok()) return matmul.error();
  const auto copy = [&](const TensorOrigin& from, const TensorOrigin& to, ElementType element) {
    const int rank = to.extents.rank();
    return bind_copy_step(jit::copy_nest(element, 0, rank, compiled_.target), from, to, false);
  };
  return add_matmul_tensors(operation, function, *matmul, origins_, copy, step);
}

/// The operands of a `conv_integer`, in the order of its nest.
Result<ConvolutionTensors> NestBinder::add_convolution_tensors(const jit::Nest& nest,
                                                               ConvolutionStep& step) {
  const Operation& operation = compiled_.canonical->operations[*nest.convolution];
  ConvolutionTensors tensors;
  for (size_t k = 0; k < nest.inputs.size(); ++k) {
    const ValueId value = nest.inputs[k].value;
    Status status = add_dense_operand(step, value, nest.element(k));
    if (!status) return status.error();
    tensors.constants.push_back(step.operands.back().origin.constant);
    if (tensors.constants.back() == nullptr) continue;
    tensors.sharing.contents[k] = origins_.content_of(origins_.root_of(value)).words();
  }
  std::array<int, 4> numbers = {-1, -1, -1, -1};
  int next = 0;
  for (size_t i = 0; i < operation.operands.size(); ++i) {
    if (operation.operands[i] != no_value) numbers[i] = next++;
  }
  const Result<ConvolutionGeometry> geometry = geometry_of(operation);
  if (!geometry.ok()) return geometry.error();
  tensors.geometry = *geometry;
  const Dims* w_zero_points = extents_of(operation, 3);
  tensors.operands = {
      .x_is_signed = step.operands[0].element == ElementType::i8,
      .w_is_signed = step.operands[1].element == ElementType::i8,
      .x_zero_point = numbers[2],
      .w_zero_point = numbers[3],
      .zero_points_per_channel = w_zero_points && element_count(*w_zero_points).value_or(0) > 1};
  return tensors;
}

/// Extents of an operand; null where it is absent.
const Dims* NestBinder::extents_of(const Operation& operation, size_t operand) const {
  if (operand >= operation.operands.size()) return nullptr;
  const ValueId value = operation.operands[operand];
  return value == no_value ? nullptr : &origins_.extents_of(value);
}

/// The geometry of a `conv_integer`.
Result<ConvolutionGeometry> NestBinder::geometry_of(const Operation& operation) const {
  return convolution_geometry(operation, *extents_of(operation, 0), *extents_of(operation, 1),
                              extents_of(operation, 2), extents_of(operation, 3));
}

/// `tile`: what kernels may apply, or null.
Status NestBinder::find_convolution(ConvolutionTensors& tensors, const jit::TileEpilogue* tile,
                                    bool has_residual, ConvolutionStep& result) {
  tensors.sharing.store = compiled_.memory->weights.get();
  auto convolution = bind_convolution(
      tensors.geometry, tensors.operands, tensors.constants, bound_.target, compiled_.store->cache,
      origins_.scratch(),
      {.epilogue = tile, .has_residual = has_residual, .weights = tensors.sharing});
  if (!convolution.ok()) return convolution.error();
  result.convolution = std::move(convolution).value();
  if (!result.convolution->lower_tier_because.empty()) {
    bound_.target = result.convolution->target;
    bound_.lower_tier_because = result.convolution->lower_tier_because;
  }
  result.nanoseconds = convolution_ns(tensors.geometry, bound_.target);
  if (result.convolution->scratch_bytes > 0)
    origins_.scratch().give_back(result.convolution->scratch);
  return {};
}

}  // namespace castor::detail
