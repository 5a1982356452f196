// SPDX-License-Identifier: Apache-2.0
// From a function to nests: which values become tensors in memory, which share a nest, and the
// order in which nests run. Each nest is lowered in jit/lower/lower_nest.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>

#include "ir/shape/broadcast.hpp"
#include "ir/shape/reduction.hpp"
#include "jit/conv/epilogue/epilogue.hpp"
#include "jit/conv/epilogue/folded_results.hpp"
#include "jit/float_environment.hpp"
#include "jit/lower/lower_nest.hpp"
#include "jit/lower/reduction.hpp"
#include "jit/plan/materialise.hpp"
#include "jit/plan/nest.hpp"

namespace castor::jit {

namespace {

/// Accumulators of several reductions that one nest folds into: it keeps several registers for
/// each.
constexpr size_t max_joined_accumulators = 2;

/// Groups what must be computed into nests: by shape, and after the nests whose results it reads.
class Grouping {
 public:
  Grouping(const FunctionFacts& facts, const ShapeIds& shapes,
           const MaterialisedValues& materialised, const Target& target)
      : facts_(facts),
        shapes_(shapes),
        materialised_(materialised),
        target_(target),
        depth_(facts.function.values.size(), 0) {
    mark_needed();
    for (const Operation& operation : facts_.function.operations) {
      for (ValueId value : operation.results) {
        depth_[value] = depth_after(value);
        if (facts_.owners[value] == value && needed_[value]) add_reduction(operation);
        if (materialised_.contains(value) && needed_[value]) add({facts_.left_in[value], value});
      }
    }
    for (uint32_t i = 0; i < facts_.function.results.size(); ++i) {
      const NestOutput output = {i, facts_.function.results[i]};
      if (!facts_.is_left(output)) add(output);
    }
  }

  /// Whether the output is where the nest of a convolution or requantization writes.
  bool is_alone(const NestOutput& output) const {
    if (output.accumulator >= 0) return false;
    const Operation* operation = facts_.defining[output.value];
    if (operation == nullptr || !stands_alone(operation->op)) return false;
    return output.is_scratch() || !materialised_.contains(output.value);
  }

  /// The outputs of each nest, in the order in which nests run.
  std::vector<std::vector<NestOutput>> groups() const {
    std::vector<std::vector<NestOutput>> all;
    for (const auto& [key, outputs] : groups_) all.push_back(outputs);
    return all;
  }

 private:
  struct Key {
    int depth;
    size_t order;  ///< of the first output
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  /// Values in scratch that a result depends on.
  void mark_needed() {
    const Function& function = facts_.function;
    needed_.assign(function.values.size(), false);
    for (ValueId result : function.results) needed_[result] = true;
    for (size_t i = function.operations.size(); i-- > 0;) {
      const Operation& operation = function.operations[i];
      const bool is_needed =
          std::ranges::any_of(operation.results, [&](ValueId value) { return needed_[value]; });
      if (!is_needed) continue;
      for (ValueId operand : operation.operands) {
        if (operand != no_value) needed_[operand] = true;
      }
      const ValueId owner = facts_.owners[operation.results[0]];
      if (owner != no_value) needed_[owner] = true;
    }
  }

  /// How many nests have to run in sequence before the value can be read from memory.
  int depth_after(ValueId value) const {
    const Operation* operation = facts_.defining[value];
    if (operation->op == OpKind::reshape) return depth_[operation->operands[0]];
    const bool alone = stands_alone(operation->op);
    if (facts_.in_memory[value] && !materialised_.contains(value) && !alone) return 0;
    int depth = 0;
    for (ValueId operand : operation->operands) {
      if (operand != no_value) depth = std::max(depth, depth_[operand]);
    }
    if (facts_.owners[value] != no_value) ++depth;  // the nest that folds
    return depth + (materialised_.contains(value) || alone ? 1 : 0);
  }

  /// Nests that must run before the one that computes the output.
  int depth_of(const NestOutput& output) const {
    const bool is_left = output.is_scratch() || facts_.is_left(output);
    return depth_[output.value] - (is_left || is_alone(output) ? 1 : 0);
  }

  void add(const NestOutput& output) {
    const std::pair<int, ShapeId> space = {depth_of(output), shapes_[output.value]};
    if (is_alone(output)) {  // a nest of its own
      groups_[{space.first, added_++}].push_back(output);
      return;
    }
    const auto found = open_.find(space);
    if (found != open_.end() && groups_[found->second].size() < max_outputs) {
      groups_[found->second].push_back(output);
      return;
    }
    const Key key = {space.first, added_++};
    open_[space] = key;
    groups_[key].push_back(output);
  }

  /// The accumulators of a reduction: in the nest of another over the same axes of the same space,
  /// if it has registers left.
  void add_reduction(const Operation& operation) {
    const ValueId operand = operation.operands[0];
    const ValueId value = operation.results[0];
    const TensorType& type = facts_.function.type_of(operand);
    const std::vector<Accumulator> accumulators =
        accumulators_of(Reduction(operation, type, target_));
    const bool is_ordered = is_float(type.element) && operation.op == OpKind::reduce_sum;
    const FoldKey fold = {depth_[operand], shapes_[operand],
                          reduced_axes(operation, static_cast<int>(shapes_[operand].size()))};
    const auto open = open_folds_.find(fold);
    const bool joins =
        !is_ordered && open != open_folds_.end() &&
        groups_[open->second].size() + accumulators.size() <= max_joined_accumulators;
    const Key key = joins ? open->second : Key{depth_[operand], added_++};
    if (!joins && !is_ordered) open_folds_[fold] = key;
    for (size_t i = 0; i < accumulators.size(); ++i) {
      groups_[key].push_back(
          NestOutput::folded(value, static_cast<int>(i), accumulators[i].initial));
    }
  }

  /// Nests that fold the same axes of spaces of one shape.
  struct FoldKey {
    int depth;
    ShapeId shape;
    std::vector<bool> reduced;
    friend auto operator<=>(const FoldKey&, const FoldKey&) = default;
  };

  const FunctionFacts& facts_;
  const ShapeIds& shapes_;
  const MaterialisedValues& materialised_;
  const Target& target_;
  std::vector<bool> needed_;
  std::vector<int> depth_;  ///< by value
  std::map<std::pair<int, ShapeId>, Key> open_;
  std::map<FoldKey, Key> open_folds_;
  std::map<Key, std::vector<NestOutput>> groups_;
  size_t added_ = 0;
};

/// Materialised values that are results are left there, unless results are of another type.
void leave_in_results(FunctionFacts& facts, const MaterialisedValues& materialised) {
  const Function& function = facts.function;
  for (uint32_t i = 0; i < function.results.size(); ++i) {
    const ValueId value = function.results[i];
    const Operation* operation = facts.defining[value];
    if (operation == nullptr || !materialised.contains(value) || !facts.in_memory[value]) continue;
    const bool is_stored_wide = facts.carried[value] != function.type_of(value).element;
    if (stands_alone(operation->op) || is_stored_wide) continue;
    if (facts.left_in[value] == NestOutput::scratch) facts.left_in[value] = i;
  }
}

/// Appends the nest with those outputs; several ones, where it computes too many of them: poolings
/// read a tensor for each kernel position.
void append_nests(std::vector<Nest>& nests, const FunctionFacts& facts,
                  std::span<const NestOutput> outputs, const Target& target) {
  Nest nest = lower_nest(facts, outputs, target);
  if (nest.inputs.size() <= max_inputs || outputs.size() == 1) {
    nests.push_back(std::move(nest));
    return;
  }
  append_nests(nests, facts, outputs.first(outputs.size() / 2), target);
  append_nests(nests, facts, outputs.subspan(outputs.size() / 2), target);
}

/// The nests of the function if none computes from more than `max_leaves` tensors; their programs
/// may read one several times, in several ways.
std::vector<Nest> plan_with(const Function& function, const ShapeIds& shapes, const Target& target,
                            size_t max_leaves) {
  FunctionFacts facts(function);
  const MaterialisedValues materialised(facts, shapes, max_leaves);
  leave_in_results(facts, materialised);
  std::vector<Nest> nests;
  const Grouping grouping(facts, shapes, materialised, target);
  for (const std::vector<NestOutput>& outputs : grouping.groups()) {
    if (grouping.is_alone(outputs.front())) {
      nests.push_back(nest_alone(facts, outputs.front()));
    } else if (outputs.front().accumulator >= 0) {
      nests.push_back(lower_folds(facts, outputs, target));
    } else {
      append_nests(nests, facts, outputs, target);
    }
  }
  return nests;
}

}  // namespace

std::vector<ValueId> reshape_roots(const Function& function) {
  std::vector<ValueId> roots(function.values.size());
  std::iota(roots.begin(), roots.end(), ValueId{0});
  for (const Operation& operation : function.operations) {
    if (operation.op == OpKind::reshape) roots[operation.results[0]] = roots[operation.operands[0]];
  }
  return roots;
}

std::vector<bool> constant_values(const Function& function) {
  std::vector<bool> are_constant(function.values.size(), false);
  for (const Operation& operation : function.operations) {
    const bool is_reshape = operation.op == OpKind::reshape;
    are_constant[operation.results[0]] =
        operation.op == OpKind::constant || (is_reshape && are_constant[operation.operands[0]]);
  }
  return are_constant;
}

std::vector<ValueId> accumulator_owners(const Function& function) {
  std::vector<ValueId> owners(function.values.size(), no_value);
  std::map<std::pair<ValueId, std::vector<bool>>, ValueId> extremes;
  for (const Operation& operation : function.operations) {
    if (info(operation.op).family != OpFamily::reduction) continue;
    const ValueId operand = operation.operands[0];
    const ValueId result = operation.results[0];
    owners[result] = result;
    const TensorType& type = function.type_of(operand);
    const bool is_extreme =
        operation.op == OpKind::reduce_min || operation.op == OpKind::reduce_max;
    if (!is_extreme || !is_float(type.element)) continue;
    const auto rank = static_cast<int>(type.shape.size());
    owners[result] =
        extremes.try_emplace({operand, reduced_axes(operation, rank)}, result).first->second;
  }
  return owners;
}

std::vector<Nest> plan_nests(const Function& function, const Target& target) {
  const KernelFloatEnvironment environment;  // tables and constants are computed here
  const ShapeIds shapes(function);
  for (size_t max_leaves = 24;; max_leaves /= 2) {
    std::vector<Nest> nests = plan_with(function, shapes, target, max_leaves);
    const auto fits = [](const Nest& nest) { return nest.inputs.size() <= max_inputs; };
    if (max_leaves > 1 && !std::ranges::all_of(nests, fits)) continue;
    fuse_convolutions(function, nests);
    mark_folded_results(function, nests);
    return nests;
  }
}

}  // namespace castor::jit
