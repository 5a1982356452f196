// SPDX-License-Identifier: Apache-2.0
// Where the values of a function are stored when it is bound: the caller's tensors, constants,
// scratch.
#pragma once

#include <unordered_map>

#include "ir/verify/infer.hpp"
#include "jit/plan/nest.hpp"
#include "runtime/bind/step_base.hpp"
#include "runtime/memory/scratch_plan.hpp"

namespace castor::detail {

struct BoundState;

/// A tensor that nests read or write.
struct TensorOrigin {
  OperandOrigin origin;
  Dims extents;
  Dims strides;
};

/// Finds the memory of values in the order in which nests run; scratch is free again after the last
/// read.
class ValueOrigins {
 public:
  /// `bound`, whose tensors are bound already, must live on.
  ValueOrigins(const BoundState& bound, BoundShapes shapes);

  /// The value that a chain of reshapes begins with.
  ValueId root_of(ValueId value) const { return roots_[value]; }
  const Dims& extents_of(ValueId value) const { return shapes_.values[value]; }
  bool has_scratch(ValueId value) const { return scratch_.contains(value); }

  /// A tensor in scratch: dense, unless it is the inside of a padded one.
  TensorOrigin in_scratch(ValueId value, ElementType element, const Dims& extents);
  /// Gives a value that is in no scratch yet the inside of a tensor at that offset.
  void pad(ValueId value, size_t offset, TensorOrigin inside) {
    scratch_[value] = offset;
    inside_[value] = std::move(inside);
  }
  /// The tensor that a chain of reshapes begins with, as the caller or the function has it. What is
  /// in no scratch was left in a result by an earlier nest.
  TensorOrigin of_root(ValueId root, ElementType element);
  /// A dense tensor of the extents of a reduction: its accumulator of that number.
  TensorOrigin of_accumulator(ValueId reduction, int number, ElementType element);
  TensorOrigin of_output(const jit::NestOutput& output, ElementType element, const Dims& extents);
  /// The content id of a root that is stored as a constant.
  ContentId content_of(ValueId root) const;
  /// Whether the elements are stored as those of a dense tensor of the value's extents.
  bool is_dense(ValueId value, const TensorOrigin& origin) const;

  /// What the nest reads has been read once more.
  void count_reads_of(const jit::Nest& nest);
  /// The value's scratch is free.
  void give_back(ValueId value);
  ScratchPlan& scratch() { return plan_; }

 private:
  void count_read(ValueId root);
  void count_read_of_accumulators(ValueId owner);

  const BoundState& bound_;
  const Function& function_;
  const std::vector<ValueId> roots_;
  const std::vector<ValueId> owners_;  ///< see jit::accumulator_owners
  const BoundShapes shapes_;
  std::unordered_map<ValueId, size_t> inputs_;  // indices of parameters
  std::unordered_map<ValueId, const Operation*> constants_;
  std::unordered_map<ValueId, size_t> results_;  // indices of the first that a value is stored as
  std::unordered_map<ValueId, int> reads_left_;  // by root
  std::unordered_map<ValueId, size_t> scratch_;  // offsets of tensors
  std::unordered_map<ValueId, TensorOrigin> inside_;  // where padded ones are
  // By owner: how many accumulators it has, reads that are left, and where the first one is; the
  // others follow.
  std::unordered_map<ValueId, size_t> accumulator_counts_;
  std::unordered_map<ValueId, int> accumulator_reads_left_;
  std::unordered_map<ValueId, size_t> accumulators_;
  ScratchPlan plan_;
};

}  // namespace castor::detail
