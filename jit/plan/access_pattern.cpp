// SPDX-License-Identifier: Apache-2.0
#include "jit/plan/access_pattern.hpp"

#include <algorithm>
#include <map>

#include "jit/conv/epilogue/epilogue.hpp"
#include "jit/plan/fold_space.hpp"

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

IterationSpace nest_space(const Nest& nest, const Dims& extents, std::span<const Dims> strides,
                          const Target& target) {
  const std::vector<OperandStorage> storage = nest.storage();
  IterationSpace space = iteration_space(extents, strides, storage);
  const int lanes = target.vector_bits() / nest.program.widest_bits();
  merge_periods(space, storage, lanes, target);
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

std::vector<Dims> likely_strides(const Nest& nest, const BoundShapes& shapes) {
  const Dims& space = shapes.values[nest.space];
  std::vector<Dims> strides;
  for (const NestInput& input : nest.inputs) {
    const Dims& own = shapes.values[input.value];
    strides.push_back(strides_in_space(input.axes, own, dense_strides(own), space));
  }
  strides.resize(nest.operands(), dense_strides(space));
  return strides;
}

NestForm LikelyForms::form_of(const Nest& nest, const Target& target) const {
  const auto dense = NestForm::dense(nest.operands());
  if (!shapes_) return dense;
  const Dims& extents = shapes_->values[nest.space];
  if (element_count(extents).value_or(0) == 0) return dense;
  const std::vector<Dims> strides = likely_strides(nest, *shapes_);
  if (nest.program.folds()) {
    const auto inputs = std::span(strides).first(nest.inputs.size());
    return fold_space(nest, extents, nest.reduced, inputs).space.form;
  }
  if (nest.epilogue) {
    if (const auto walk = epilogue_walk(nest, extents, strides)) return walk->space.form;
  }
  return nest_space(nest, extents, strides, target).form;
}

}  // namespace castor::jit
