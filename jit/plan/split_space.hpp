// SPDX-License-Identifier: Apache-2.0
// Iteration spaces of nests with blocked operands: an axis with blocks becomes two, the blocks and
// the elements of one, over which every operand has strides.
#pragma once

#include <span>
#include <vector>

#include "jit/plan/nest.hpp"

namespace castor::jit {

/// A space whose axes are split for the blocked inputs that it admits.
class SplitSpace {
 public:
  /// No extent is zero.
  explicit SplitSpace(const Dims& extents);

  /// Splits axes for an input of these extents, where its blocks divide them, and blocks of one
  /// axis divide each other. A block that is the only one needs no split.
  void admit(const NestInput& input, const Dims& extents);

  /// The extents of the axes after splitting.
  Dims extents() const;
  /// Strides over the axes after splitting of an operand with these strides over those before.
  Dims strides(const Dims& before) const;
  /// Whether an input of these extents has strides over the axes after splitting.
  bool has_strides(const NestInput& input, const Dims& extents) const;
  /// These strides, of an input that has them, and whose own are `strides`.
  Dims strides_of(const NestInput& input, const Dims& extents, const Dims& strides) const;

 private:
  /// Elements of the axis for each step along its parts, innermost first: 1, then blocks.
  using Steps = std::vector<int64_t>;
  bool divides(int axis, int64_t block) const;

  Dims before_;
  std::vector<Steps> steps_;  ///< by axis
  int rank_;                  ///< after splitting
};

/// A copy of a blocked input with every element as often as a block reads it, its last block whole:
/// for blocks that no split can say.
struct ExpandedCopy {
  Dims extents;                 ///< the copy's: it is dense
  Dims space;                   ///< iterated by the nest that copies
  Dims strides;                 ///< the input's over that space
  NestInput input{ValueId{0}};  ///< how the copy is read: without blocks, or with those left
};

/// The copy of an input of these extents and strides. Where its rank allows no more axes, blocks
/// are left for another copy of the copy.
ExpandedCopy expanded_copy(const NestInput& input, const Dims& extents, const Dims& strides);

}  // namespace castor::jit
