// SPDX-License-Identifier: Apache-2.0
// Where a nest can be cut, so that its parts may run at the same time.
#pragma once

#include <optional>

#include "runtime/bind/elementwise_step.hpp"

namespace castor::detail {

/// A nest whose argument block is complete: the code that is called, its operands' first elements.
struct ReadyNest {
  const ElementwiseStep& step;
  const BoundCode& code;
  const KernelCode<jit::NestSpec>& entry;  ///< code.code or step.streaming
  const int64_t* arguments;                ///< with periods copied
  bool streams() const { return &entry == step.streaming.get(); }
};

/// A nest cut into units along one axis, for every index of the axes further out: its rows. Units
/// are numbered in the order in which the nest runs. No two write one byte, and each writes the
/// bytes that the whole nest does.
struct NestSplit {
  /// An index along the axis, in a row.
  struct Position {
    int64_t row = 0;
    int64_t index = 0;
  };

  int axis = 0;
  int64_t extent = 1;  ///< extent of the axis
  int64_t unit = 1;    ///< indices along the axis
  int64_t first = 0;   ///< the first index of a row with which a unit begins
  int64_t units = 1;   ///< that begin in a row
  int64_t rows = 1;    ///< the product of the extents further out

  int64_t count() const { return units * rows; }
  /// Where a unit begins; after the last one, the end. The very first one begins with the nest;
  /// what precedes `first` in another row belongs to the last unit of the row before.
  Position begin_of(int64_t number) const {
    if (number == 0) return {};
    if (number == count()) return {rows, 0};
    return {number / units, first + number % units * unit};
  }
};

/// A split into units that `tasks` tasks can partition nearly equally, along as far out an axis as
/// there is one; fewer units where the nest is too small, or bytes are shared.
NestSplit split_nest(const ReadyNest& ready, int64_t tasks);

/// Runs the units from `begin` to `end`.
void run_units(const ReadyNest& ready, const NestSplit& split, int64_t begin, int64_t end);

}  // namespace castor::detail
