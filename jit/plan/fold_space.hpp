// SPDX-License-Identifier: Apache-2.0
// The iteration space of a nest with accumulators: one pass over its operands.
#pragma once

#include "jit/plan/nest.hpp"

namespace castor::jit {

/// How one pass folds. Either the innermost axis is folded, in registers: then each row becomes one
/// element of an accumulator. Or it is not, and each row is folded into a row of the accumulator.
struct FoldSpace {
  IterationSpace space;          ///< operands: the nest's inputs, then its accumulators
  Dims accumulator_strides;      ///< over the logical axes, in elements; 0 along folded ones
  int64_t accumulator_elements;  ///< one accumulator has, partial results counted
  /// Partial results of each element, consecutive in the accumulators; a further pass folds them.
  int64_t parts = 1;
  /// A call does `part` indices along `cut`, or fewer at its end; 0: there is no such axis, and one
  /// call does all.
  int64_t part = 0;
  int cut = 0;
};

/// The pass that folds the axes `reduced` of a space of these extents, none of which is 0.
/// `strides[k]` are the strides of input k over them. Nests that sum floats fold one axis, or none;
/// along it all inputs' elements are in the order of the sum.
FoldSpace fold_space(const Nest& nest, const Dims& extents, const std::vector<bool>& reduced,
                     std::span<const Dims> strides, const Target& target);

/// Whether the nest's result depends on the order in which it folds: it sums floats.
bool folds_in_order(const LaneProgram& program);

/// The nest that folds partial results of another, in tensors of the same kinds. It has no axes of
/// its own.
Nest combining_nest(const Nest& nest, const Target& target);

/// The nest without its folds: what it would fold, as tensors of its space.
Nest unfolded_nest(const Nest& nest);

}  // namespace castor::jit
