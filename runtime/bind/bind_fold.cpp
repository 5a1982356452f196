// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind/bind_fold.hpp"

#include <algorithm>

#include "ir/support/integer_math.hpp"
#include "ir/types/storage.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/bind/fold_tiles.hpp"
#include "runtime/bind/work_estimate.hpp"
#include "runtime/compiled.hpp"

namespace castor::detail {

namespace {

/// Tasks share the partitions of an axis; there are a few for each.
constexpr int64_t shared_partitions = 64;

bool any_of(const std::vector<bool>& axes) { return std::ranges::find(axes, true) != axes.end(); }

/// Neighbouring axes that are folded together.
struct Group {
  int begin;
  int end;
};

/// The last group of reduced axes.
Group last_group(const std::vector<bool>& reduced) {
  auto end = static_cast<int>(reduced.size());
  while (!reduced[static_cast<size_t>(end - 1)]) --end;
  int begin = end - 1;
  while (begin > 0 && reduced[static_cast<size_t>(begin - 1)]) --begin;
  return {begin, end};
}

/// The stride of a group's elements in row-major order, or nothing where they have no single one.
std::optional<int64_t> merged_stride(const Group& group, const Dims& extents, const Dims& strides) {
  std::optional<int64_t> stride;
  int64_t next = 0;
  for (int axis = group.end - 1; axis >= group.begin; --axis) {
    if (extents[axis] == 1) continue;
    if (stride && strides[axis] != next) return std::nullopt;
    if (!stride) stride = strides[axis];
    if (__builtin_mul_overflow(strides[axis], extents[axis], &next)) return std::nullopt;
  }
  return stride.value_or(0);
}

/// Makes the group one axis, its first. False where an input's strides do not allow that.
bool merge(const Group& group, Dims& extents, FoldInputs& inputs) {
  std::vector<int64_t> merged;
  for (const Dims& strides : inputs.strides) {
    const std::optional<int64_t> stride = merged_stride(group, extents, strides);
    if (!stride) return false;
    merged.push_back(*stride);
  }
  int64_t count = 1;
  for (int axis = group.begin; axis < group.end; ++axis) {
    count *= extents[axis];
    extents[axis] = 1;
    for (Dims& strides : inputs.strides) strides[axis] = 0;
  }
  extents[group.begin] = count;
  for (size_t k = 0; k < merged.size(); ++k) inputs.strides[k][group.begin] = merged[k];
  return true;
}

int64_t argument_step(jit::Access access, ElementType element, int64_t elements) {
  return jit::counts_elements(access, element) ? elements : storage_byte(element, elements);
}

FoldStep::Cut cut_of(const FoldStep& step, int axis, int64_t partition) {
  FoldStep::Cut cut = {axis, partition, ceil_div(step.space.extents[axis], partition), {}, {}};
  for (size_t k = 0; k < step.operands.size(); ++k) {
    const int64_t stride = step.space.strides[k][static_cast<size_t>(axis)];
    cut.strides.push_back(
        argument_step(step.space.form.access[k], step.operands[k].element, stride));
    cut.steps.push_back(partition * cut.strides.back());
  }
  return cut;
}

/// The outermost axis along which accumulators have elements of their own.
std::optional<int> shared_axis(const FoldStep& step) {
  for (int axis = step.space.form.rank - 1; axis >= 0; --axis) {
    if (step.space.strides.back()[static_cast<size_t>(axis)] != 0) return axis;
  }
  return std::nullopt;
}

}  // namespace

FoldBinder::FoldBinder(BoundState& bound, ValueOrigins& origins, NestBinding& codes, size_t nest,
                       Copy copy)
    : bound_(bound),
      origins_(origins),
      codes_(codes),
      at_(nest),
      nest_(bound.kernel->compiled->nests[nest]),
      copy_(std::move(copy)) {}

std::vector<OperandOrigin> FoldBinder::results() {
  std::vector<OperandOrigin> origins;
  for (size_t k = 0; k < nest_.outputs.size(); ++k) {
    const jit::NestOutput& output = nest_.outputs[k];
    const ElementType element = nest_.program.sinks[k].element;
    origins.push_back(origins_.of_accumulator(output.value, output.accumulator, element).origin);
  }
  return origins;
}

std::vector<OperandOrigin> FoldBinder::take_scratch(int64_t elements) {
  std::vector<OperandOrigin> origins;
  for (const jit::MemoryOperand& sink : nest_.program.sinks) {
    const auto bytes = static_cast<size_t>(byte_size(sink.element, elements).value_or(INT64_MAX));
    scratch_.push_back(origins_.scratch().take(bytes));
    origins.push_back({.kind = OperandOrigin::Kind::scratch, .offset = scratch_.back()});
  }
  return origins;
}

void FoldBinder::give_back_scratch() {
  for (const size_t offset : scratch_) origins_.scratch().give_back(offset);
  scratch_.clear();
}

/// The accumulators of an empty space are what they begin as.
void FoldBinder::start_results() {
  FoldStep step;
  step.nest = at_;
  const std::vector<OperandOrigin> origins = results();
  for (size_t k = 0; k < origins.size(); ++k) {
    const jit::NestOutput& output = nest_.outputs[k];
    const int64_t elements = element_count(origins_.extents_of(output.value)).value_or(0);
    step.operands.push_back({origins[k], nest_.program.sinks[k].element, false});
    step.starts.push_back({k, output.initial, elements});
  }
  bound_.steps.emplace_back(std::move(step));
}

Status FoldBinder::bind(FoldInputs inputs, const Dims& extents) {
  if (element_count(extents).value_or(0) == 0) {
    start_results();
    return {};
  }
  Status status;
  if (jit::folds_in_order(nest_.program)) {
    status = bind_in_order(std::move(inputs), extents);
  } else {
    Dims left = extents;
    FoldInputs partial;
    status = bind_passes(nest_, std::move(inputs), left, nest_.reduced, true, partial);
  }
  give_back_scratch();
  return status;
}

/// Groups of axes from the last to the first; the sums of one are what the next one adds.
Status FoldBinder::bind_in_order(FoldInputs inputs, Dims extents) {
  const Axes none(nest_.reduced.size(), false);
  Axes left = nest_.reduced;
  FoldInputs partial;
  if (!any_of(left)) return bind_passes(nest_, std::move(inputs), extents, none, true, partial);
  jit::Nest nest = nest_;
  while (any_of(left)) {
    const Group group = last_group(left);
    for (int axis = group.begin; axis < group.end; ++axis) left[static_cast<size_t>(axis)] = false;
    if (!merge(group, extents, inputs)) {
      if (Status status = bind_unfolded(nest, inputs, extents); !status) return status;
      nest = jit::combining_nest(nest_, bound_.target);
      merge(group, extents, inputs);
    }
    Axes reduced = none;
    reduced[static_cast<size_t>(group.begin)] = true;
    Status status = bind_passes(nest, std::move(inputs), extents, reduced, !any_of(left), partial);
    if (!status) return status;
    inputs = std::move(partial);
    nest = jit::combining_nest(nest_, bound_.target);
  }
  return {};
}

/// Stores what the nest would fold in a dense tensor, which becomes the only input.
Status FoldBinder::bind_unfolded(const jit::Nest& nest, FoldInputs& inputs, const Dims& extents) {
  ElementwiseStep step;
  step.nest = at_;
  step.operands = std::move(inputs.operands);
  std::vector<Dims> strides = std::move(inputs.strides);
  inputs = {};
  const std::vector<OperandOrigin> origins = take_scratch(element_count(extents).value());
  for (size_t k = 0; k < origins.size(); ++k) {
    step.operands.push_back({origins[k], nest.program.sinks[k].element, false});
    strides.push_back(dense_strides(extents));
    inputs.operands.push_back(step.operands.back());
    inputs.strides.push_back(strides.back());
  }
  Status status = codes_.bind(jit::unfolded_nest(nest), nullptr, extents, strides, step);
  if (!status) return status;
  bound_.steps.emplace_back(std::move(step));
  return {};
}

/// Folds until one element is left along the reduced axes. `partial`: the accumulators as inputs of
/// what comes next, unless this is the last.
Status FoldBinder::bind_passes(const jit::Nest& nest, FoldInputs inputs, Dims& extents,
                               const Axes& reduced, bool is_last, FoldInputs& partial) {
  const auto rank = static_cast<size_t>(extents.rank());
  const jit::Nest* folding = &nest;
  jit::Nest combining;
  Axes left = reduced;
  while (true) {
    const jit::FoldSpace fold =
        jit::fold_space(*folding, extents, left, inputs.strides, bound_.kernel->compiled->target);
    const bool is_final = is_last && fold.parts == 1;
    Dims kept = extents;
    for (size_t axis = 0; axis < rank; ++axis) {
      if (left[axis]) kept[static_cast<int>(axis)] = 1;
    }
    Dims dense = dense_strides(kept);
    for (size_t axis = 0; axis < rank; ++axis) {
      if (kept[static_cast<int>(axis)] == 1) dense[static_cast<int>(axis)] = 0;
    }
    const bool is_direct = is_final && fold.accumulator_strides == dense;
    const std::vector<OperandOrigin> accumulators =
        is_direct ? results() : take_scratch(fold.accumulator_elements);
    if (Status status = bind_pass(*folding, inputs, fold, accumulators); !status) return status;
    if (is_final) {
      return is_direct ? Status() : copy_to_results(fold, kept, accumulators);
    }
    // What has been folded is an axis of partial results, on the first one's axis.
    const auto first = std::ranges::find(left, true) - left.begin();
    FoldInputs next;
    for (size_t k = 0; k < accumulators.size(); ++k) {
      next.operands.push_back({accumulators[k], nest_.program.sinks[k].element, false});
      next.strides.push_back(fold.accumulator_strides);
      if (fold.parts > 1) next.strides.back()[static_cast<int>(first)] = 1;
    }
    extents = kept;
    if (fold.parts == 1) {
      partial = std::move(next);
      return {};
    }
    extents[static_cast<int>(first)] = fold.parts;
    left.assign(rank, false);
    left[static_cast<size_t>(first)] = true;
    inputs = std::move(next);
    combining = jit::combining_nest(nest_, bound_.target);
    folding = &combining;
  }
}

Status FoldBinder::bind_pass(const jit::Nest& nest, const FoldInputs& inputs,
                             const jit::FoldSpace& fold,
                             std::span<const OperandOrigin> accumulators) {
  FoldStep step;
  step.nest = at_;
  step.space = fold.space;
  step.operands = inputs.operands;
  step.first_output = inputs.operands.size();
  step.first_base = jit::ArgumentLayout(nest.operands(), fold.space.form.rank).base(0);
  for (size_t k = 0; k < accumulators.size(); ++k) {
    step.operands.push_back({accumulators[k], nest.program.sinks[k].element, false});
    step.starts.push_back(
        {step.first_output + k, nest_.outputs[k].initial, fold.accumulator_elements});
  }
  step.sub_byte = nest.has_sub_byte_operand();
  step.combines = nest.reduced.empty();
  auto tiles = bind_fold_tiles(nest, fold, *bound_.kernel->compiled, origins_.scratch());
  if (!tiles) return tiles.error();
  step.tiles = std::move(tiles).value();
  if (step.tiles) {
    for (const BoundTileCopy& copy : step.tiles->copies) origins_.scratch().give_back(copy.offset);
    step.space = tile_space(nest, fold, *step.tiles);
  }
  const auto& likely = bound_.kernel->compiled->likely;
  const LikelyCode* own = step.combines || at_ >= likely.size() ? nullptr : &likely[at_];
  Status status = codes_.bind_fold(nest, own, step);
  if (!status) return status;
  if (step.tiles) {
    step.main.nanoseconds = saturated_product(step.main.nanoseconds, step.tiles->count());
  } else if (fold.part > 0) {
    step.partitions = cut_of(step, fold.cut, fold.part);
    if (fold.parts > 1) {
      for (size_t k = step.first_output; k < step.operands.size(); ++k) {
        step.partitions->steps[k] = bits_of(step.operands[k].element) / 8;
      }
    }
  } else if (const std::optional<int> axis = shared_axis(step)) {
    const int64_t extent = step.space.extents[*axis];
    const int64_t unit = *axis == 0 ? 64 : 1;
    const int64_t partition = ceil_div(ceil_div(extent, shared_partitions), unit) * unit;
    step.shared = cut_of(step, *axis, partition);
  }
  bound_.steps.emplace_back(std::move(step));
  return {};
}

Status FoldBinder::copy_to_results(const jit::FoldSpace& fold, const Dims& extents,
                                   std::span<const OperandOrigin> from) {
  const std::vector<OperandOrigin> to = results();
  for (size_t k = 0; k < to.size(); ++k) {
    const TensorOrigin working = {from[k], extents, fold.accumulator_strides};
    const TensorOrigin result = {to[k], extents, dense_strides(extents)};
    Status status = copy_(working, result, nest_.program.sinks[k].element);
    if (!status) return status;
  }
  return {};
}

}  // namespace castor::detail
