// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/epilogue/epilogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "ir/types/storage.hpp"
#include "jit/matmul/result_space.hpp"
#include "jit/plan/access_pattern.hpp"

namespace castor::jit {

// ---- how a nest takes slabs

namespace {

/// Consecutive axes of a result that count as one.
struct Axes {
  int begin = 0;
  int end = 0;
};

int64_t count_of(const Dims& extents, const Axes& axes) {
  int64_t count = 1;
  for (int axis = axes.begin; axis < axes.end; ++axis) count *= extents[axis];
  return count;
}

/// The stride of neighbouring axes as one; 0 where none has more than one element.
std::optional<int64_t> joint_stride(const Dims& extents, const Dims& strides, const Axes& axes) {
  std::optional<int64_t> stride;
  int64_t next = 0;  // where the axes so far would go on
  for (int axis = axes.end - 1; axis >= axes.begin; --axis) {
    if (extents[axis] == 1) continue;
    if (stride && strides[axis] != next) return std::nullopt;
    if (!stride) stride = strides[axis];
    if (__builtin_mul_overflow(strides[axis], extents[axis], &next)) return std::nullopt;
  }
  return stride.value_or(0);
}

/// Builds the walk operand by operand.
class WalkBuilder {
 public:
  WalkBuilder(const Nest& nest, const Dims& extents) : nest_(nest), extents_(extents) {
    const bool nhwc = nest.epilogue->layout == ConvolutionLayout::nhwc;
    const int rank = extents.rank();
    const Axes channels = nhwc ? Axes{rank - 1, rank} : Axes{1, 2};
    const Axes pixels = nhwc ? Axes{1, rank - 1} : Axes{2, rank};
    walk_.rows_of_channels =
        count_of(extents, pixels) == 1 || (nhwc && count_of(extents, channels) > 1);
    elements_ = walk_.rows_of_channels ? channels : pixels;
    rows_ = walk_.rows_of_channels ? pixels : channels;
  }

  /// Adds the next operand: fused, or why it cannot be taken.
  Fusion::Kind add(const Dims& strides) {
    const size_t operand = walk_.operands.size();
    if (operand == nest_.epilogue->source) {  // whose rows are those of the slabs
      walk_.operands.push_back({.element = 1});
      return Fusion::Kind::fused;
    }
    const auto row = joint_stride(extents_, strides, rows_);
    auto element = joint_stride(extents_, strides, elements_);
    if (!row || !element) return Fusion::Kind::partly_repeated;
    if (operand >= nest_.inputs.size() && count_of(extents_, elements_) == 1) element = 1;
    if (*element != 0 && nest_.is_table(operand)) return Fusion::Kind::tables;
    if (*element != 0 && *element != 1) return Fusion::Kind::partly_repeated;
    walk_.operands.push_back({extents_[0] == 1 ? 0 : strides[0], *row, *element});
    return has_whole_bytes(operand) ? Fusion::Kind::fused : Fusion::Kind::split_bytes;
  }

  EpilogueWalk finish() {
    IterationSpace& space = walk_.space;
    space.form.rank = 2;
    space.extents = {1, 1};
    for (size_t k = 0; k < walk_.operands.size(); ++k) {
      const PieceSteps& steps = walk_.operands[k];
      space.strides.push_back({steps.element, steps.row});
      space.form.access.push_back(nest_.is_table(k)    ? Access::table
                                  : steps.element == 0 ? Access::uniform
                                                       : Access::contiguous);
    }
    walk_.joining_row = joining_row();
    return std::move(walk_);
  }

 private:
  /// Rows of slabs are as long as the last axis of more than one element, or end with it.
  bool has_whole_bytes(size_t operand) const {
    const ElementType type = nest_.element(operand);
    const PieceSteps& steps = walk_.operands[operand];
    if (!is_sub_byte(type) || steps.element == 0) return true;
    int last = elements_.end - 1;
    while (last > elements_.begin && extents_[last] == 1) --last;
    const int64_t aligned = aligned_elements(type);
    return steps.image % aligned == 0 && steps.row % aligned == 0 && extents_[last] % aligned == 0;
  }

  int64_t joining_row() const {
    int64_t length = -1;
    for (size_t k = 0; k < nest_.operands(); ++k) {
      if (k == nest_.epilogue->source) continue;
      const PieceSteps& steps = walk_.operands[k];
      if (steps.element == 0 && steps.row == 0) continue;
      if (steps.element == 0 || (length >= 0 && steps.row != length)) return -1;
      length = steps.row;
    }
    return length;
  }

  const Nest& nest_;
  const Dims& extents_;
  EpilogueWalk walk_;
  Axes elements_;
  Axes rows_;
};

}  // namespace

std::optional<EpilogueWalk> epilogue_walk(const Nest& nest, const Dims& extents,
                                          std::span<const Dims> strides) {
  constexpr int min_rank = 2;  // products of vectors have neither rows nor channels
  if (extents.rank() < min_rank) return std::nullopt;
  WalkBuilder builder(nest, extents);
  for (const Dims& of_operand : strides) {
    if (builder.add(of_operand) != Fusion::Kind::fused) return std::nullopt;
  }
  return builder.finish();
}

// ---- which nests are epilogues

namespace {

constexpr size_t no_nest = ~size_t{0};

/// Who reads a convolution's result: `fused` where one nest does, which has it as an operand.
struct Reading {
  Fusion fusion = {Fusion::Kind::is_result};
  size_t nest = no_nest;
  size_t operand = 0;
};

/// By result of a convolution that is not the function's.
using Readings = std::unordered_map<ValueId, Reading>;

Readings readings_of(const Function& function, const std::vector<Nest>& nests) {
  Readings readings;
  for (const Nest& nest : nests) {
    if (nest.convolution && nest.outputs[0].is_scratch()) readings[nest.outputs[0].value] = {};
  }
  if (readings.empty()) return readings;
  const std::vector<ValueId> roots = reshape_roots(function);
  for (size_t n = 0; n < nests.size(); ++n) {
    for (size_t k = 0; k < nests[n].inputs.size(); ++k) {
      const ValueId value = nests[n].inputs[k].value;
      const auto found = readings.find(roots[value]);
      if (found == readings.end()) continue;
      Reading& reading = found->second;
      if (reading.nest != no_nest && !reading.fusion.is_fused()) continue;
      if (nests[n].program.folds()) {
        reading = {{Fusion::Kind::reduced, nests[n].outputs[0].value}, n, k};
      } else if (value != found->first) {
        reading = {{Fusion::Kind::reshaped, value}, n, k};
      } else if (reading.nest == no_nest) {
        reading = {{Fusion::Kind::fused, nests[n].outputs[0].value}, n, k};
      } else if (reading.nest != n) {
        reading.fusion = {Fusion::Kind::several_nests};
      }
    }
  }
  return readings;
}

/// Chooses the convolutions of one function that are fused.
class FusionPlanner {
 public:
  FusionPlanner(const Function& function, std::vector<Nest>& nests)
      : function_(function),
        nests_(nests),
        readings_(readings_of(function, nests)),
        matmuls_(function),
        before_(nests.size(), no_nest) {
    if (readings_.empty() || !has_known_extents()) return;
    if (Result<BoundShapes> shapes = likely_shapes(function); shapes.ok()) {
      shapes_ = std::move(shapes).value();
    }
  }

  /// Later convolutions first. Each that is fused moves directly in front of its epilogue.
  std::vector<Nest> plan() {
    for (size_t i = nests_.size(); i-- > 0;) {
      if (nests_[i].convolution) nests_[i].fusion = choose(i);
    }
    std::vector<Nest> ordered;
    ordered.reserve(nests_.size());
    for (size_t n = 0; n < nests_.size(); ++n) {
      if (nests_[n].fusion && nests_[n].fusion->is_fused()) continue;
      if (before_[n] != no_nest) ordered.push_back(std::move(nests_[before_[n]]));
      ordered.push_back(std::move(nests_[n]));
    }
    return ordered;
  }

 private:
  Fusion choose(size_t convolution) {
    const ValueId value = nests_[convolution].outputs[0].value;
    const auto found = readings_.find(value);
    if (found == readings_.end()) return {Fusion::Kind::is_result};
    const Reading& reading = found->second;
    if (!reading.fusion.is_fused()) return reading.fusion;
    Nest& nest = nests_[reading.nest];
    size_t& before = before_[reading.nest];
    if (before != no_nest) {
      return {Fusion::Kind::other_convolution, nests_[before].outputs[0].value};
    }
    for (const NestInput& input : nest.inputs) {
      if (input.value == value && !input.is_identity()) {
        return {Fusion::Kind::other_shape, nest.space};
      }
      if (input.has_blocks()) return {Fusion::Kind::blocked, input.value};
      if (input.tap) return {Fusion::Kind::pooled, input.value};
    }
    nest.epilogue = Epilogue{layout_of(nests_[convolution]), reading.operand};
    const Operation& operation = function_.operations[*nests_[convolution].convolution];
    const Fusion fusion = fusion_of(operation, nest, value);
    if (fusion.is_fused()) {
      before = convolution;
    } else {
      nest.epilogue.reset();
    }
    return fusion;
  }

  ConvolutionLayout layout_of(const Nest& convolution) const {
    const Operation& operation = function_.operations[*convolution.convolution];
    if (operation.op == OpKind::matmul_integer) {
      const auto matmul = shapes_ ? matmuls_.of(operation, *shapes_) : std::nullopt;
      return matmul ? matmul->geometry.layout : ConvolutionLayout::nchw;
    }
    const auto axes = static_cast<int>(function_.type_of(operation.results[0]).shape.size()) - 2;
    const Result<ConvolutionOptions> options = convolution_options(operation, axes);
    return options.ok() ? options->layout : ConvolutionLayout::nchw;
  }

  bool has_known_extents() const {
    return std::ranges::all_of(function_.parameters, [&](ValueId parameter) {
      return std::ranges::all_of(function_.type_of(parameter).shape, &Dim::is_fixed);
    });
  }

  /// Whether the nest can take that result. Where extents are unknown, binding decides it.
  Fusion fusion_of(const Operation& convolution, const Nest& nest, ValueId value) const {
    const Fusion fused = {Fusion::Kind::fused, nest.outputs[0].value};
    if (!shapes_) return fused;
    const Dims& space = shapes_->values[nest.space];
    if (shapes_->values[value] != space) return {Fusion::Kind::other_shape, nest.space};
    if (element_count(space).value_or(0) == 0) return fused;
    const ResultSpace result = likely_result_space(matmuls_, convolution, nest, *shapes_);
    WalkBuilder builder(nest, result.extents);
    for (size_t k = 0; k < nest.operands(); ++k) {
      const std::optional<Dims>& strides = result.strides[k];
      const Fusion::Kind kind = strides ? builder.add(*strides) : Fusion::Kind::partly_repeated;
      if (kind != Fusion::Kind::fused) return {kind, value_of(nest, k)};
    }
    return fused;
  }

  static ValueId value_of(const Nest& nest, size_t operand) {
    const size_t inputs = nest.inputs.size();
    return operand < inputs ? nest.inputs[operand].value : nest.outputs[operand - inputs].value;
  }

  const Function& function_;
  std::vector<Nest>& nests_;
  const Readings readings_;
  const LikelyMatmuls matmuls_;
  std::optional<BoundShapes> shapes_;  ///< where they are known
  std::vector<size_t> before_;         ///< by nest: the convolution whose epilogue it is
};

}  // namespace

void fuse_convolutions(const Function& function, std::vector<Nest>& nests) {
  if (std::ranges::none_of(nests, [](const Nest& nest) { return nest.convolution.has_value(); })) {
    return;
  }
  nests = FusionPlanner(function, nests).plan();
}

std::string text_of(const Function& function, const Fusion& fusion) {
  static constexpr std::string_view texts[] = {
      "the next nest, piece by piece",
      "none: the i32 result is the function's",
      "none: %{} is a reshape of the i32 result",
      "none: several nests read the i32 result",
      "none: the nest that reads the i32 result is that of %{}",
      "none: %{}, which is computed from the i32 result, has another shape",
      "none: %{} lies along some of the spatial axes only",
      "none: %{} is read by blocks",
      "none: rows of %{} end inside bytes",
      "none: the i32 result is folded into %{}",
      "none: %{} has a table for each element of a row",
      "none: the nest that reads the i32 result pools %{}",
  };
  static_assert(std::size(texts) == static_cast<size_t>(Fusion::Kind::pooled) + 1);
  const std::string name = fusion.value == no_value ? "" : function.values[fusion.value].name;
  return fmt::format(fmt::runtime(texts[static_cast<size_t>(fusion.kind)]), name);
}

// ---- what kernels apply

namespace {

constexpr size_t max_instructions = 64;
constexpr int max_lane_bits = 32;

/// Registers that an epilogue has at least, and one that encodes by tables or looks up.
constexpr int min_vectors = 10;
constexpr int min_table_vectors = 16;

/// Whether the operation goes lane by lane, through general registers, or reads a whole tensor.
bool is_scalar(LaneOp op) {
  return op == LaneOp::divide_each || op == LaneOp::remainder_each ||
         op == LaneOp::float_remainder_each || op == LaneOp::gather;
}

bool has_tables(const LaneInst& inst) {
  return looks_up(inst.narrowing) ||
         (encodes(inst.narrowing) && inst.narrowing != Narrowing::magnitude_code);
}

/// Whether kernels can address the operand: results are stored element by element, and what a row
/// repeats is broadcast from memory.
bool may_address(ElementType element, const TileOperand& operand, bool is_input) {
  return !is_sub_byte(element) && (is_input || !operand.repeats);
}

}  // namespace

bool is_applicable(const LaneProgram& program) {
  return program.code.size() <= max_instructions && program.widest_bits() <= max_lane_bits &&
         std::ranges::none_of(program.code,
                              [](const LaneInst& inst) { return is_scalar(inst.op); });
}

bool is_packable(const LaneProgram& program, const LaneInst& inst) {
  return inst.op == LaneOp::store && !has_tables(inst) && bits_of(inst.type) == 32 &&
         bits_of(program.sinks[static_cast<size_t>(inst.imm)].element) == 8;
}

/// Two chunks in one vector, and a third, of each result.
int vectors_of_packs(const TileEpilogue& epilogue) {
  const LaneProgram& program = epilogue.program;
  return 2 * static_cast<int>(std::ranges::count_if(
                 program.code, [&](const LaneInst& inst) { return is_packable(program, inst); }));
}

int vectors_for(const TileEpilogue* epilogue) {
  if (epilogue == nullptr) return 0;
  const bool looks_up = std::ranges::any_of(epilogue->program.code, has_tables);
  return (looks_up ? min_table_vectors : min_vectors) + static_cast<int>(epilogue->folds());
}

std::optional<TileEpilogue> tile_epilogue(const Nest& nest, const EpilogueWalk& walk,
                                          const Target& target) {
  if (!target.has_avx512() || !is_applicable(nest.program)) return std::nullopt;
  if (nest.operands() > max_tile_operands + 1) return std::nullopt;
  TileEpilogue epilogue = {.program = nest.program,
                           .source = nest.epilogue->source,
                           .operands = {},
                           .rows_of_channels = walk.rows_of_channels};
  for (const PieceSteps& steps : walk.operands) {
    const size_t k = epilogue.operands.size();
    epilogue.operands.push_back({.repeats = steps.element == 0, .same_in_rows = steps.row == 0});
    const bool is_input = k < epilogue.inputs();
    if (!may_address(nest.element(k), epilogue.operands[k], is_input)) return std::nullopt;
  }
  return epilogue;
}

namespace {

/// The result that the nest takes, if all its operands can be seen over it.
std::optional<ResultSpace> likely_space(const Function& function, const Nest& nest) {
  const Result<BoundShapes> shapes = likely_shapes(function);
  if (!shapes) return std::nullopt;
  const ValueId value = nest.inputs[nest.epilogue->source].value;
  const auto convolution = std::ranges::find_if(
      function.operations,
      [&](const Operation& operation) { return operation.results[0] == value; });
  ResultSpace result = likely_result_space(LikelyMatmuls(function), *convolution, nest, *shapes);
  const auto has_strides = [](const std::optional<Dims>& strides) { return strides.has_value(); };
  if (!std::ranges::all_of(result.strides, has_strides)) return std::nullopt;
  return result;
}

}  // namespace

std::optional<TileEpilogue> likely_tile_epilogue(const Function& function, const Nest& nest,
                                                 const Target& target) {
  const auto result = likely_space(function, nest);
  if (!result) return std::nullopt;
  std::vector<Dims> strides;
  for (const std::optional<Dims>& of_operand : result->strides) strides.push_back(*of_operand);
  const auto walk = epilogue_walk(nest, result->extents, strides);
  return walk ? tile_epilogue(nest, *walk, target) : std::nullopt;
}

bool likely_joins_images(const Function& function, const Nest& nest,
                         const ConvolutionGeometry& joined) {
  const auto result = likely_space(function, nest);
  return result && std::ranges::all_of(result->strides, [&](const std::optional<Dims>& strides) {
           return reshaped_strides(result->extents, *strides, joined.output_extents()).has_value();
         });
}

}  // namespace castor::jit
