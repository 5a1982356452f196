// SPDX-License-Identifier: Apache-2.0
// From a function to nests: which values become tensors in memory, which share a nest, and the
// order in which nests run. Each nest is lowered in jit/lower/lower_nest.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>

#include "ir/shape/broadcast.hpp"
#include "jit/conv/epilogue/epilogue.hpp"
#include "jit/float_environment.hpp"
#include "jit/lower/lower_nest.hpp"
#include "jit/plan/materialise.hpp"
#include "jit/plan/nest.hpp"

namespace castor::jit {

namespace {

/// Groups what must be computed into nests: by shape, and after the nests whose results it reads.
class Grouping {
 public:
  Grouping(const FunctionFacts& facts, const ShapeIds& shapes,
           const MaterialisedValues& materialised)
      : facts_(facts),
        shapes_(shapes),
        materialised_(materialised),
        depth_(facts.function.values.size(), 0) {
    mark_needed();
    for (const Operation& operation : facts_.function.operations) {
      for (ValueId value : operation.results) {
        depth_[value] = depth_after(value);
        if (materialised_.contains(value) && needed_[value]) add({NestOutput::scratch, value});
      }
    }
    for (uint32_t i = 0; i < facts_.function.results.size(); ++i) {
      add({i, facts_.function.results[i]});
    }
  }

  /// Whether the output is where the nest of a convolution or requantization writes.
  bool is_alone(const NestOutput& output) const {
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
    return depth + (materialised_.contains(value) || alone ? 1 : 0);
  }

  /// Nests that must run before the one that computes the output.
  int depth_of(const NestOutput& output) const {
    return depth_[output.value] - (output.is_scratch() || is_alone(output) ? 1 : 0);
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

  const FunctionFacts& facts_;
  const ShapeIds& shapes_;
  const MaterialisedValues& materialised_;
  std::vector<bool> needed_;
  std::vector<int> depth_;  ///< by value
  std::map<std::pair<int, ShapeId>, Key> open_;
  std::map<Key, std::vector<NestOutput>> groups_;
  size_t added_ = 0;
};

/// The nests of the function if none computes from more than `max_leaves` tensors; their programs
/// may read one several times, in several ways.
std::vector<Nest> plan_with(const Function& function, const ShapeIds& shapes, const Target& target,
                            size_t max_leaves) {
  FunctionFacts facts(function);
  const MaterialisedValues materialised(facts, shapes, max_leaves);
  std::vector<Nest> nests;
  const Grouping grouping(facts, shapes, materialised);
  for (const std::vector<NestOutput>& outputs : grouping.groups()) {
    nests.push_back(grouping.is_alone(outputs.front()) ? nest_alone(facts, outputs.front())
                                                       : lower_nest(facts, outputs, target));
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

std::vector<Nest> plan_nests(const Function& function, const Target& target) {
  const KernelFloatEnvironment environment;  // tables and constants are computed here
  const ShapeIds shapes(function);
  for (size_t max_leaves = 24;; max_leaves /= 2) {
    std::vector<Nest> nests = plan_with(function, shapes, target, max_leaves);
    const auto fits = [](const Nest& nest) { return nest.inputs.size() <= max_inputs; };
    if (max_leaves > 1 && !std::ranges::all_of(nests, fits)) continue;
    fuse_convolutions(function, nests);
    return nests;
  }
}

}  // namespace castor::jit
