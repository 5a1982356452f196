// SPDX-License-Identifier: Apache-2.0
#include "jit/plan/access_pattern.hpp"

#include <algorithm>
#include <map>

#include "ir/support/integer_math.hpp"
#include "jit/conv/epilogue/epilogue.hpp"
#include "jit/plan/columns.hpp"
#include "jit/plan/fold_space.hpp"
#include "jit/plan/prefetch.hpp"
#include "jit/plan/split_space.hpp"
#include "jit/plan/table_method.hpp"
#include "jit/plan/tiles.hpp"

namespace castor::jit {

namespace {

/// What an unknown extent is taken for before it is known.
constexpr int64_t long_extent = 4096;

/// The axes of more than one element of a tensor, merged where one continues the other.
struct Run {
  int64_t extent;
  int64_t stride;  ///< between its innermost elements
};

std::vector<Run> merged_runs(const Dims& extents, const Dims& strides) {
  std::vector<Run> runs;  // innermost first
  for (int axis = extents.rank() - 1; axis >= 0; --axis) {
    if (extents[axis] == 1) continue;
    int64_t next = 0;  // the stride at which the next axis would continue the run
    const bool fits =
        !runs.empty() && !__builtin_mul_overflow(runs.back().stride, runs.back().extent, &next);
    if (fits && strides[axis] == next) {
      runs.back().extent *= extents[axis];
    } else {
      runs.push_back({extents[axis], strides[axis]});
    }
  }
  return runs;
}

}  // namespace

Dims strides_in_space(const Dims& axes, const Dims& extents, const Dims& strides,
                      const Dims& space_extents) {
  Dims in_space = Dims::filled(space_extents.rank(), 0);
  for (int axis = 0; axis < axes.rank(); ++axis) {
    if (axes[axis] >= 0 && extents[axis] != 1) {
      in_space[static_cast<int>(axes[axis])] = strides[axis];
    }
  }
  return in_space;
}

std::optional<Dims> reshaped_strides(const Dims& extents, const Dims& strides, const Dims& target) {
  Dims reshaped = Dims::filled(target.rank(), 0);
  if (std::ranges::find(target, 0) != target.end()) return reshaped;  // there are no elements
  const std::vector<Run> runs = merged_runs(extents, strides);
  size_t run = 0;
  int64_t within = 1;  // elements of the run that inner axes of the target take
  for (int axis = target.rank() - 1; axis >= 0; --axis) {
    if (target[axis] == 1) continue;
    if (run == runs.size()) return std::nullopt;
    reshaped[axis] = runs[run].stride * within;
    within *= target[axis];
    if (within > runs[run].extent || runs[run].extent % within != 0) return std::nullopt;
    if (within == runs[run].extent) {
      ++run;
      within = 1;
    }
  }
  return reshaped;
}

namespace {

/// Fewer elements of the axis next to the innermost are no row that pays for transposed copies.
constexpr int64_t min_rows_of_tables = 64;

/// Whether the operand does not move along the innermost axis, or is of whole bytes, and so narrow
/// that transposing it takes less time than reading entries one by one.
bool may_be_transposed(const Nest& nest, const IterationSpace& space, size_t operand) {
  constexpr int max_bits = 16;
  const int bits = bits_of(nest.element(operand));
  return space.strides[operand][0] == 0 || (bits >= 8 && bits <= max_bits);
}

/// Whether entries of all tables are permuted in registers where a row shares one.
bool permutes_tables(const Nest& nest, const Target& target) {
  return std::ranges::all_of(nest.program.sources, [&](const MemoryOperand& source) {
    return !source.is_table() || table_method(target, source.index_bits, bits_of(source.element)) !=
                                     TableMethod::each_lane;
  });
}

/// Where each element of a row has a table, as channels of NHWC tensors may: exchanges the two
/// innermost axes, so that operands are transposed, and rows have one table.
void share_tables(const Nest& nest, IterationSpace& space, const Target& target) {
  if (!space.form.has(Access::tables) || space.form.rank < 2) return;
  if (space.extents[1] < min_rows_of_tables || !permutes_tables(nest, target)) return;
  for (size_t k = 0; k < nest.operands(); ++k) {
    if (!nest.is_table(k) && !may_be_transposed(nest, space, k)) return;
    if (space.form.access[k] == Access::tables && space.strides[k][1] != 0) return;
  }
  std::swap(space.extents[0], space.extents[1]);
  const std::vector<OperandStorage> storage = nest.storage();
  for (size_t k = 0; k < nest.operands(); ++k) {
    std::swap(space.strides[k][0], space.strides[k][1]);
    space.form.access[k] = access_of(space, k, storage[k]);
  }
}

}  // namespace

IterationSpace nest_space(const Nest& nest, const Dims& extents, std::span<const Dims> strides,
                          const Target& target) {
  const std::vector<OperandStorage> storage = nest.storage();
  IterationSpace space = iteration_space(extents, strides, storage);
  const int lanes = target.vector_bits() / nest.program.widest_bits();
  share_tables(nest, space, target);
  space.form.prefetch = prefetch_of(nest, space, target);
  put_columns_first(nest, space, target);
  if (space.form.has(Access::column)) return space;  // streaming code prefetches row by row
  merge_periods(space, storage, lanes, target);
  space.form.prefetch = prefetch_of(nest, space, target);
  return space;
}

Result<BoundShapes> likely_shapes(const Function& function) {
  std::vector<Dims> parameters;
  for (ValueId parameter : function.parameters) {
    Dims& extents = parameters.emplace_back();
    for (const Dim& dim : function.type_of(parameter).shape) {
      extents.push_back(dim.is_fixed() ? dim.extent : long_extent);
    }
  }
  return bind_shapes(function, parameters);
}

namespace {

/// Strides of an input over the extents that the nest sees, if its tensor is dense. Padding is
/// taken for none, which changes no pattern.
Dims dense_strides_seen(const NestInput& input, const BoundShapes& shapes) {
  Dims strides = dense_strides(shapes.values[input.value]);
  for (int axis = 0; axis < strides.rank() && input.tap; ++axis) {
    strides[axis] = wrapped_product(strides[axis], input.tap->steps[axis]);
  }
  return strides;
}

}  // namespace

std::vector<Dims> likely_strides(const Nest& nest, const BoundShapes& shapes) {
  const Dims& space = shapes.values[nest.space];
  std::vector<Dims> strides;
  for (const NestInput& input : nest.inputs) {
    const Dims& own = shapes.values[input.seen()];
    strides.push_back(strides_in_space(input.axes, own, dense_strides_seen(input, shapes), space));
  }
  strides.resize(nest.operands(), dense_strides(space));
  return strides;
}

namespace {

/// The likely form of a nest that is no epilogue: its space may be split.
NestForm split_form(const Nest& nest, const BoundShapes& shapes, const Target& target) {
  const Dims& extents = shapes.values[nest.space];
  SplitSpace split(extents);
  for (const NestInput& input : nest.inputs) split.admit(input, shapes.values[input.seen()]);
  std::vector<Dims> strides;
  for (NestInput input : nest.inputs) {
    Dims own = shapes.values[input.seen()];
    Dims own_strides = dense_strides_seen(input, shapes);
    while (!split.has_strides(input, own)) {
      ExpandedCopy copy = expanded_copy(input, own, own_strides);
      input = copy.input;
      own = copy.extents;
      own_strides = dense_strides(own);
    }
    strides.push_back(split.strides_of(input, own, own_strides));
  }
  strides.resize(nest.operands(), split.strides(dense_strides(extents)));
  const IterationSpace space = nest_space(nest, split.extents(), strides, target);
  if (!space.form.has(Access::strided)) return space.form;
  const std::optional<Tiles> tiles = plan_tiles(nest, space, target);
  return tiles ? tiles->space.form : space.form;
}

}  // namespace

NestForm LikelyForms::form_of(const Nest& nest, const Target& target) const {
  const NestForm dense = nest.dense_form();
  if (!shapes_) return dense;
  const Dims& extents = shapes_->values[nest.space];
  if (element_count(extents).value_or(0) == 0) return dense;
  if (nest.program.folds()) {
    const std::vector<Dims> strides = likely_strides(nest, *shapes_);
    const auto inputs = std::span(strides).first(nest.inputs.size());
    return fold_space(nest, extents, nest.reduced, inputs, target).space.form;
  }
  if (nest.epilogue) {
    const std::vector<Dims> strides = likely_strides(nest, *shapes_);
    if (const auto walk = epilogue_walk(nest, extents, strides)) return walk->space.form;
  }
  return split_form(nest, *shapes_, target);
}

}  // namespace castor::jit
