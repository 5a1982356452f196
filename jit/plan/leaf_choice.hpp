// SPDX-License-Identifier: Apache-2.0
// Which computed values become tensors in scratch.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "jit/lower/lower_nest.hpp"
#include "jit/plan/shape_ids.hpp"

namespace castor::jit {

/// The leaves and operations that a value would be computed from in one nest; sorted.
struct Cone {
  std::vector<ValueId> leaves;
  std::vector<ValueId> computed;  ///< with the value itself, unless that is a leaf
};

inline void unite(std::vector<ValueId>& into, const std::vector<ValueId>& more) {
  std::vector<ValueId> both;
  std::set_union(into.begin(), into.end(), more.begin(), more.end(), std::back_inserter(both));
  into = std::move(both);
}

/// Operations that one nest computes at the most.
inline constexpr size_t most_operations = 192;
/// Dearer values are not computed once more for each element that they are broadcast to.
inline constexpr int dear = 8;

inline int cost_of(OpKind op) {
  switch (op) {
    case OpKind::div:
    case OpKind::sqrt: return 3;
    case OpKind::floor_div: return 4;
    case OpKind::mod:
    case OpKind::floor_mod: return 8;
    default: return 1;
  }
}

/// Decides which computed values become leaves: tensors in scratch that nests read.
class LeafChoice {
 public:
  LeafChoice(FunctionFacts& facts, const ShapeIds& shapes, size_t most_leaves)
      : facts_(facts),
        function_(facts.function),
        shapes_(shapes),
        most_leaves_(most_leaves),
        cones_(function_.values.size()),
        stored_(function_.values.size(), false) {
    for (ValueId parameter : function_.parameters) make_leaf(parameter);
    count_uses();
    for (const Operation& operation : function_.operations) choose(operation);
  }

  const Cone& cone(ValueId value) const { return cones_[value]; }
  /// Whether a nest leaves the value in scratch for others.
  bool is_stored(ValueId value) const { return stored_[value]; }

 private:
  void make_leaf(ValueId value) {
    cones_[value] = {};
    if (!facts_.immediate(value)) cones_[value].leaves.push_back(value);
  }

  void store(ValueId value) {
    stored_[value] = true;
    facts_.leaf[value] = true;
    make_leaf(value);
  }

  /// A reshape looks at its operand in memory, in the operand's own type.
  void store_for_reshape(ValueId value) {
    if (facts_.leaf[value]) return;
    const bool as_handed_on = facts_.carried[value] == function_.type_of(value).element;
    as_handed_on ? store(value) : static_cast<void>(stored_[value] = true);
  }

  /// Operations that read a value, and one for being a result more than once.
  void count_uses() {
    uses_.assign(function_.values.size(), 0);
    for (const Operation& operation : function_.operations) {
      for (ValueId operand : operation.operands) {
        if (operand != no_value) ++uses_[operand];
      }
    }
    std::vector<bool> is_result(function_.values.size(), false);
    for (ValueId result : function_.results) {
      if (is_result[result]) ++uses_[result];
      is_result[result] = true;
    }
  }

  /// Operands and result lie in memory; the result is stored for others, or is the caller's.
  void choose_alone(const Operation& operation) {
    for (ValueId operand : operation.operands) {
      if (operand != no_value) store_for_reshape(operand);
    }
    const ValueId result = operation.results[0];
    stored_[result] = uses_[result] > 0;
    make_leaf(result);
  }

  void choose(const Operation& operation) {
    if (stands_alone(operation.op)) return choose_alone(operation);
    if (operation.op == OpKind::reshape) store_for_reshape(operation.operands[0]);
    for (ValueId result : operation.results) {
      if (facts_.leaf[result]) {
        make_leaf(result);
        continue;
      }
      for (ValueId operand : operation.operands) {
        if (is_dear_to_repeat(operand, result)) store(operand);
      }
      while (is_too_much(operation)) store(largest_operand(operation));
      Cone& cone = cones_[result];
      for (ValueId operand : operation.operands) {
        unite(cone.leaves, cones_[operand].leaves);
        unite(cone.computed, cones_[operand].computed);
      }
      unite(cone.computed, {result});
      // What is read through a broadcast is one more operand of the nest: it walks differently.
      if (operation.op == OpKind::broadcast) unite(cone.leaves, {result});
    }
  }

  bool is_too_much(const Operation& operation) const {
    Cone cone;
    for (ValueId operand : operation.operands) {
      unite(cone.leaves, cones_[operand].leaves);
      unite(cone.computed, cones_[operand].computed);
    }
    if (cone.computed.empty()) return false;  // operands are leaves already
    return cone.leaves.size() > most_leaves_ || cone.computed.size() >= most_operations;
  }

  ValueId largest_operand(const Operation& operation) const {
    const auto size = [&](ValueId value) {
      const Cone& cone = cones_[value];
      return cone.computed.empty() ? 0 : cone.computed.size() + cone.leaves.size();
    };
    return *std::ranges::max_element(operation.operands, {}, size);
  }

  /// Whether computing the operand wherever the result needs it would be dear. It is not where the
  /// result repeats the operand along its last axis: there it is hoisted.
  bool is_dear_to_repeat(ValueId operand, ValueId result) const {
    const bool is_stored_wide = facts_.carried[operand] != function_.type_of(operand).element;
    if (facts_.leaf[operand] || shapes_[operand] == shapes_[result]) return false;
    if (stored_[operand] && is_stored_wide) return false;  // as the reshape wants it, not as we do
    const ShapeId& shape = shapes_[operand];
    if (shape.empty() || (shape.back() == 1 && shapes_[result].back() != 1)) return false;
    int cost = 0;
    for (ValueId value : cones_[operand].computed) cost += cost_of(facts_.defining[value]->op);
    return cost > dear;
  }

  FunctionFacts& facts_;
  const Function& function_;
  const ShapeIds& shapes_;
  const size_t most_leaves_;
  std::vector<Cone> cones_;
  std::vector<bool> stored_;
  std::vector<int> uses_;  ///< by value
};

}  // namespace castor::jit
