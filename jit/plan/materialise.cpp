// SPDX-License-Identifier: Apache-2.0
#include "jit/plan/materialise.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "ir/shape/broadcast.hpp"
#include "ir/shape/look_up.hpp"
#include "jit/plan/op_costs.hpp"

namespace castor::jit {

namespace {

/// Operations that one nest computes at most.
constexpr size_t max_operations = 192;
/// Values that cost more are not rematerialised for each element that they are broadcast to.
constexpr int max_rematerialisation_cost = 8;
/// The same, of values that are hoisted: an epilogue hoists them in each of its many tiles.
constexpr int max_hoisted_cost_in_epilogue = 4;

/// How an operation repeats operands, where it does so by blocks.
std::optional<BroadcastRule> blocked_rule(const Operation& operation) {
  const bool broadcasts =
      operation.op == OpKind::broadcast || info(operation.op).family == OpFamily::elementwise;
  if (!broadcasts) return std::nullopt;
  const Result<BroadcastRule> rule = broadcast_rule(operation);
  const bool is_blocked = rule && rule->mode == BroadcastMode::blocked;
  return is_blocked ? std::optional(*rule) : std::nullopt;
}

/// Whether an operation reads blocks of its last axis that are so short that chunks read elements
/// of their own: then an operand that is computed is computed for most chunks once more, though it
/// has but one element for each block.
bool is_read_in_blocks(const Operation& operation) {
  constexpr int64_t min_block = 16;
  constexpr int64_t max_block = 32;
  const std::optional<BroadcastRule> rule = blocked_rule(operation);
  if (!rule || operation.op == OpKind::broadcast) return false;
  return std::ranges::any_of(
      rule->block, [](int64_t block) { return block >= min_block && block <= max_block; });
}

void unite(std::vector<ValueId>& into, const std::vector<ValueId>& more) {
  std::vector<ValueId> both;
  std::set_union(into.begin(), into.end(), more.begin(), more.end(), std::back_inserter(both));
  into = std::move(both);
}

}  // namespace

MaterialisedValues::MaterialisedValues(FunctionFacts& facts, const ShapeIds& shapes,
                                       size_t max_leaves)
    : facts_(facts),
      function_(facts.function),
      shapes_(shapes),
      max_leaves_(max_leaves),
      cones_(function_.values.size()),
      materialised_(function_.values.size(), false) {
  for (ValueId parameter : function_.parameters) make_leaf(parameter);
  count_uses();
  for (const Operation& operation : function_.operations) visit(operation);
}

/// Counts the operations that read a value, and one for being a result more than once.
void MaterialisedValues::count_uses() {
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

void MaterialisedValues::make_leaf(ValueId value) {
  cones_[value] = {};
  if (!facts_.immediate(value)) cones_[value].leaves.push_back(value);
}

void MaterialisedValues::materialise(ValueId value) {
  materialised_[value] = true;
  facts_.in_memory[value] = true;
  make_leaf(value);
}

/// A reshape reads its operand, and look_up its table, from memory, in the value's own type. Where
/// other operations take the value in a wider type, they still compute it themselves.
void MaterialisedValues::materialise_as_handed_on(ValueId value) {
  if (facts_.in_memory[value]) return;
  const bool as_handed_on = facts_.carried[value] == function_.type_of(value).element;
  as_handed_on ? materialise(value) : static_cast<void>(materialised_[value] = true);
}

/// Stores what is looked up where an operand is computed.
void MaterialisedValues::materialise_looked_up(ValueId operand) {
  const std::vector<ValueId> computed = cones_[operand].computed;
  for (const ValueId value : computed) {
    const bool looks_up = facts_.defining[value]->op == OpKind::look_up;
    if (looks_up && !facts_.in_memory[value]) materialise(value);
  }
}

/// Decides on the operands of an operation, and finds the cones of its results.
void MaterialisedValues::visit(const Operation& operation) {
  if (stands_alone(operation.op)) return visit_alone(operation);
  if (info(operation.op).family == OpFamily::reduction) return visit_reduction(operation);
  if (info(operation.op).family == OpFamily::pooling) return visit_pooling(operation);
  if (operation.op == OpKind::reshape) materialise_as_handed_on(operation.operands[0]);
  if (operation.op == OpKind::look_up) materialise_as_handed_on(operation.operands[1]);
  const bool is_blocked = blocked_rule(operation).has_value();
  for (ValueId result : operation.results) {
    if (facts_.in_memory[result]) {
      make_leaf(result);
      continue;
    }
    for (ValueId operand : operation.operands) {
      // Tables for each index of an axis are not found by blocks of that axis.
      const bool is_in_blocks = is_blocked && shapes_[operand] != shapes_[result];
      if (is_in_blocks && !facts_.in_memory[operand]) materialise_looked_up(operand);
      if (costs_too_much(operation, operand, result)) materialise(operand);
    }
    while (exceeds_nest(operation)) materialise(largest_operand(operation));
    cones_[result] = united_cones(operation);
    unite(cones_[result].computed, {result});
    // What is read through a broadcast is one more operand of the nest: its strides differ.
    if (operation.op == OpKind::broadcast) unite(cones_[result].leaves, {result});
  }
}

/// A reduction's operand is computed where it is folded, and again by others that read it, unless
/// that costs too much, or keeps a convolution's sums in memory, whose epilogue could compute it.
/// What it looks up is stored first: folds read no tables. The result is completed wherever it is
/// read.
void MaterialisedValues::visit_reduction(const Operation& operation) {
  const ValueId operand = operation.operands[0];
  materialise_looked_up(operand);
  const bool is_stored_wide = facts_.carried[operand] != function_.type_of(operand).element;
  const bool costs_much = uses_[operand] > 1 && cost_of_cone(operand) > max_rematerialisation_cost;
  const bool is_stored = costs_much || exceeds_nest(operation) || reads_sums_alone(operand);
  if (!facts_.in_memory[operand] && !is_stored_wide && is_stored) {
    materialise(operand);
  }
  const ValueId result = operation.results[0];
  cones_[result] = {.leaves = {result}, .computed = {result}};
}

/// Pooling reads its operand from memory, once for each tap. Its result is completed where it is
/// read.
void MaterialisedValues::visit_pooling(const Operation& operation) {
  materialise_as_handed_on(operation.operands[0]);
  const ValueId result = operation.results[0];
  cones_[result] = {.leaves = {result}, .computed = {result}};
}

/// Whether a value is computed from a convolution's result of its shape that nothing else reads.
bool MaterialisedValues::reads_sums_alone(ValueId value) const {
  if (cones_[value].computed.empty()) return false;
  return std::ranges::any_of(cones_[value].leaves, [&](ValueId read) {
    const Operation* operation = facts_.defining[read];
    const bool is_sum = operation != nullptr && (operation->op == OpKind::conv_integer ||
                                                 operation->op == OpKind::matmul_integer);
    return is_sum && uses_[read] == 1 && shapes_[read] == shapes_[value] &&
           std::ranges::find(function_.results, read) == function_.results.end();
  });
}

int MaterialisedValues::cost_of_cone(ValueId value) const {
  int cost = 0;
  for (ValueId each : cones_[value].computed) cost += cost_of(facts_.defining[each]->op);
  return cost;
}

/// An operation that stands alone reads its operands from memory and writes its result there. The
/// result is materialised if others read it; else it is the caller's.
void MaterialisedValues::visit_alone(const Operation& operation) {
  for (ValueId operand : operation.operands) {
    if (operand != no_value) materialise_as_handed_on(operand);
  }
  const ValueId result = operation.results[0];
  materialised_[result] = uses_[result] > 0;
  make_leaf(result);
}

MaterialisedValues::Cone MaterialisedValues::united_cones(const Operation& operation) const {
  Cone cone;
  for (size_t i = 0; i < operation.operands.size(); ++i) {
    const ValueId operand = operation.operands[i];
    if (is_table(operation, i)) {
      unite(cone.leaves, {operand});
      continue;
    }
    unite(cone.leaves, cones_[operand].leaves);
    unite(cone.computed, cones_[operand].computed);
  }
  return cone;
}

/// Whether the operation and all that its operands are computed from are too much for one nest.
bool MaterialisedValues::exceeds_nest(const Operation& operation) const {
  const Cone cone = united_cones(operation);
  if (cone.computed.empty()) return false;  // all operands are leaves already
  return cone.leaves.size() > max_leaves_ || cone.computed.size() >= max_operations;
}

ValueId MaterialisedValues::largest_operand(const Operation& operation) const {
  const auto size = [&](ValueId value) {
    const Cone& cone = cones_[value];
    return cone.computed.empty() ? 0 : cone.computed.size() + cone.leaves.size();
  };
  return *std::ranges::max_element(operation.operands, {}, size);
}

/// Whether an operand was computed from a convolution's sums, so that the operation is part of its
/// epilogue.
bool MaterialisedValues::computes_from_sums(const Operation& operation) const {
  return std::ranges::any_of(operation.operands,
                             [&](ValueId operand) { return reads_sums_alone(operand); });
}

/// Whether it would cost too much to rematerialise the operand for every element of the result.
/// Where the result repeats the operand along its last axis it is hoisted, so that only an epilogue
/// would compute it many times.
bool MaterialisedValues::costs_too_much(const Operation& operation, ValueId operand,
                                        ValueId result) const {
  const bool is_stored_wide = facts_.carried[operand] != function_.type_of(operand).element;
  if (facts_.in_memory[operand] || shapes_[operand] == shapes_[result]) return false;
  // It is stored as a reshape wants it, not as this operation does.
  if (materialised_[operand] && is_stored_wide) return false;
  const ShapeId& shape = shapes_[operand];
  const int cost = cost_of_cone(operand);
  if (shape.empty() || (shape.back() == 1 && shapes_[result].back() != 1)) {
    return cost > max_hoisted_cost_in_epilogue && computes_from_sums(operation);
  }
  return cost > (is_read_in_blocks(operation) ? 0 : max_rematerialisation_cost);
}

}  // namespace castor::jit
