// SPDX-License-Identifier: Apache-2.0
// Which computed values are materialised: stored in scratch, from where nests read them. All others
// are rematerialised, that is, computed again in every nest that needs them.
#pragma once

#include <vector>

#include "jit/lower/function_facts.hpp"
#include "jit/plan/shape_ids.hpp"

namespace castor::jit {

/// Decides which computed values of a function are materialised, and marks those that nests read
/// from memory in `facts.in_memory`.
class MaterialisedValues {
 public:
  /// A nest may compute from at most `max_leaves` tensors.
  MaterialisedValues(FunctionFacts& facts, const ShapeIds& shapes, size_t max_leaves);

  /// Whether a nest leaves the value in scratch for others.
  bool contains(ValueId value) const { return materialised_[value]; }

 private:
  /// The fan-in cone of a value in one nest; its lists are sorted.
  struct Cone {
    std::vector<ValueId> leaves;    ///< tensors that the nest reads
    std::vector<ValueId> computed;  ///< with the value itself, unless that is a leaf
  };

  void count_uses();
  void make_leaf(ValueId value);
  void materialise(ValueId value);
  void materialise_looked_up(ValueId operand);
  void materialise_as_handed_on(ValueId value);
  void visit(const Operation& operation);
  void visit_alone(const Operation& operation);
  void visit_reduction(const Operation& operation);
  void visit_pooling(const Operation& operation);
  bool reads_sums_alone(ValueId value) const;
  bool computes_from_sums(const Operation& operation) const;
  int cost_of_cone(ValueId value) const;
  Cone united_cones(const Operation& operation) const;
  bool exceeds_nest(const Operation& operation) const;
  ValueId largest_operand(const Operation& operation) const;
  bool costs_too_much(const Operation& operation, ValueId operand, ValueId result) const;

  FunctionFacts& facts_;
  const Function& function_;
  const ShapeIds& shapes_;
  const size_t max_leaves_;
  std::vector<Cone> cones_;  ///< by value, as are the next two
  std::vector<bool> materialised_;
  std::vector<int> uses_;
};

}  // namespace castor::jit
