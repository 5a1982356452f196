// SPDX-License-Identifier: Apache-2.0
// Reductions in lanes: what accumulators hold, what an element adds to them, and the result that
// they give. Semantics: ir/README.md, Reductions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/function.hpp"
#include "jit/lower/lane_tensor.hpp"
#include "jit/lower/signs.hpp"

namespace castor::jit {

/// A tensor of the reduction's shape into which a nest folds the operand.
///
/// Floats are ordered by keys, which are integers in the order of the numbers: the float's bits,
/// those but the sign inverted where it is negative. So -0 is below +0, and NaNs are beyond the
/// infinities, on the side of their sign: a reduction of floats keeps both extremes, since a NaN of
/// either sign shows in one of them. Minimum and maximum of one operand are thus one pair. Where no
/// number has the sign bit set (Signs::clear), keys are the bits themselves: a NaN of negative sign
/// is then the only element below 0.
///
/// Where a core compares floats faster (ReductionTuning), both extremes of f32, f64 and of smaller
/// formats, which become f32, are those of the numbers, and a third accumulator tells whether there
/// was a NaN.
struct Accumulator {
  ElementType element;  ///< its elements are as wide as the lanes that are folded
  Fold fold;
  uint64_t initial = 0;  ///< what it has before the first element, and of none
};

/// What a reduction folds, and how.
struct Reduction {
  /// Operands of that type, on that target.
  Reduction(const Operation& operation, const TensorType& type, const Target& target);

  OpKind op;
  ElementType operand;
  ElementType sum;  ///< what integers are summed in
  /// Whether extremes are found by comparing floats, and NaNs apart from them. Only if the last
  /// axis is reduced, along which rows usually are: a third accumulator in memory would cost more
  /// than it gains.
  bool compares_floats = false;
};

/// A reduction's accumulators. Reductions of one operand over the same axes may share accumulators
/// that are equal.
std::vector<Accumulator> accumulators_of(const Reduction& reduction);

/// The lanes that an operand's elements add to each accumulator.
std::vector<LaneId> lower_folded(LaneBuilder& builder, const Reduction& reduction, LaneTensor& x,
                                 Signs signs);

/// The result, of element type `element`, from the accumulators' elements.
LaneTensor lower_reduced(LaneBuilder& builder, const Reduction& reduction, Signs signs,
                         ElementType element, std::span<LaneTensor> accumulators);

/// The bits of an element that no other is below: what a maximum of nothing is.
uint64_t lowest_bits(ElementType type);

/// The largest of tensors of one type, at least one, as reduce_max has it.
LaneTensor lower_largest(LaneBuilder& builder, std::span<LaneTensor> tensors);

}  // namespace castor::jit
