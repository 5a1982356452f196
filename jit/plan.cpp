// SPDX-License-Identifier: Apache-2.0
// From a function to nests: which values become tensors in memory, which share a nest, and the
// order in which nests run. Each nest is lowered in jit/lower/lower_nest.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>

#include "ir/broadcast.hpp"
#include "jit/float_environment.hpp"
#include "jit/lower/lower_nest.hpp"
#include "jit/nest.hpp"

namespace castor::jit {

namespace {

/// An extent, or, from -1 downward, the number of an unknown. Equal numbers are equal extents.
using ExtentId = int64_t;
using ShapeId = std::vector<ExtentId>;

/// What is known of the extents of each value before the function is bound.
class ShapeIds {
 public:
  explicit ShapeIds(const Function& function) : function_(function), ids_(function.values.size()) {
    for (ValueId parameter : function.parameters) ids_[parameter] = declared(parameter);
    for (const Operation& operation : function.operations) {
      for (ValueId result : operation.results) ids_[result] = inferred(operation, result);
    }
  }

  const ShapeId& operator[](ValueId value) const { return ids_[value]; }

 private:
  ExtentId fresh() { return --last_; }

  ExtentId of(const Dim& dim) {
    if (dim.is_fixed()) return dim.extent;
    if (dim.name.empty()) return fresh();
    const auto [at, is_new] = names_.try_emplace(dim.name, 0);
    if (is_new) at->second = fresh();
    return at->second;
  }

  ShapeId declared(ValueId value) {
    ShapeId id;
    for (const Dim& dim : function_.type_of(value).shape) id.push_back(of(dim));
    return id;
  }

  /// An unnamed unknown is that of the operands, where they agree on it.
  ShapeId inferred(const Operation& operation, ValueId result) {
    const Shape& shape = function_.type_of(result).shape;
    const bool follows = info(operation.op).family == OpFamily::elementwise;
    ShapeId id;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const bool is_open = !shape[axis].is_fixed() && shape[axis].name.empty();
      id.push_back(is_open && follows ? agreed(operation, result, static_cast<int64_t>(axis))
                                      : of(shape[axis]));
    }
    return id;
  }

  ExtentId agreed(const Operation& operation, ValueId result, int64_t axis) {
    std::optional<ExtentId> common;
    for (size_t i = 0; i < operation.operands.size(); ++i) {
      const ShapeId& operand = ids_[operation.operands[i]];
      const Dims along =
          axes_along_result(operation, i, static_cast<int>(operand.size()),
                            static_cast<int>(function_.type_of(result).shape.size()));
      for (int k = 0; k < along.rank(); ++k) {
        const ExtentId extent = operand[static_cast<size_t>(k)];
        if (along[k] != axis || extent == 1) continue;
        if (common && *common != extent) return fresh();
        common = extent;
      }
    }
    return common ? *common : fresh();
  }

  const Function& function_;
  std::vector<ShapeId> ids_;
  std::map<std::string_view, ExtentId> names_;
  ExtentId last_ = 0;
};

/// The leaves and operations that a value would be computed from in one nest; sorted.
struct Cone {
  std::vector<ValueId> leaves;
  std::vector<ValueId> computed;  ///< with the value itself, unless that is a leaf
};

void unite(std::vector<ValueId>& into, const std::vector<ValueId>& more) {
  std::vector<ValueId> both;
  std::set_union(into.begin(), into.end(), more.begin(), more.end(), std::back_inserter(both));
  into = std::move(both);
}

/// Operations that one nest computes at the most.
constexpr size_t most_operations = 192;
/// Dearer values are not computed once more for each element that they are broadcast to.
constexpr int dear = 8;

int cost_of(OpKind op) {
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
  void choose_convolution(const Operation& operation) {
    for (ValueId operand : operation.operands) {
      if (operand != no_value) store_for_reshape(operand);
    }
    const ValueId result = operation.results[0];
    stored_[result] = uses_[result] > 0;
    make_leaf(result);
  }

  void choose(const Operation& operation) {
    if (info(operation.op).family == OpFamily::convolution) return choose_convolution(operation);
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

/// Groups what must be computed into nests: by shape, and behind the nests whose results they read.
class Grouping {
 public:
  Grouping(const FunctionFacts& facts, const ShapeIds& shapes, const LeafChoice& choice)
      : facts_(facts), shapes_(shapes), choice_(choice), depth_(facts.function.values.size(), 0) {
    mark_needed();
    for (const Operation& operation : facts_.function.operations) {
      for (ValueId value : operation.results) {
        depth_[value] = depth_behind(value);
        if (choice_.is_stored(value) && needed_[value]) add({NestOutput::scratch, value});
      }
    }
    for (uint32_t i = 0; i < facts_.function.results.size(); ++i) {
      add({i, facts_.function.results[i]});
    }
  }

  /// Whether the output is where a convolution's nest writes.
  bool is_convolution(const NestOutput& output) const {
    const Operation* operation = facts_.defining[output.value];
    if (operation == nullptr || info(operation->op).family != OpFamily::convolution) return false;
    return output.is_scratch() || !choice_.is_stored(output.value);
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

  /// How many nests have to run one after the other before the value can be read from memory.
  int depth_behind(ValueId value) const {
    const Operation* operation = facts_.defining[value];
    if (operation->op == OpKind::reshape) return depth_[operation->operands[0]];
    const bool convolves = info(operation->op).family == OpFamily::convolution;
    if (facts_.leaf[value] && !choice_.is_stored(value) && !convolves) return 0;
    int depth = 0;
    for (ValueId operand : operation->operands) {
      if (operand != no_value) depth = std::max(depth, depth_[operand]);
    }
    return depth + (choice_.is_stored(value) || convolves ? 1 : 0);
  }

  /// Nests that must run before the one that computes the output.
  int depth_of(const NestOutput& output) const {
    return depth_[output.value] - (output.is_scratch() || is_convolution(output) ? 1 : 0);
  }

  void add(const NestOutput& output) {
    const std::pair<int, ShapeId> place = {depth_of(output), shapes_[output.value]};
    if (is_convolution(output)) {  // a nest of its own
      groups_[{place.first, added_++}].push_back(output);
      return;
    }
    const auto found = open_.find(place);
    if (found != open_.end() && groups_[found->second].size() < most_outputs) {
      groups_[found->second].push_back(output);
      return;
    }
    const Key key = {place.first, added_++};
    open_[place] = key;
    groups_[key].push_back(output);
  }

  const FunctionFacts& facts_;
  const ShapeIds& shapes_;
  const LeafChoice& choice_;
  std::vector<bool> needed_;
  std::vector<int> depth_;  ///< by value
  std::map<std::pair<int, ShapeId>, Key> open_;
  std::map<Key, std::vector<NestOutput>> groups_;
  size_t added_ = 0;
};

/// The nests of the function if none computes from more than `most_leaves` tensors; their programs
/// may read one several times, in several ways.
std::vector<Nest> plan_with(const Function& function, const ShapeIds& shapes, const Target& target,
                            size_t most_leaves) {
  FunctionFacts facts(function);
  const LeafChoice choice(facts, shapes, most_leaves);
  std::vector<Nest> nests;
  const Grouping grouping(facts, shapes, choice);
  for (const std::vector<NestOutput>& outputs : grouping.groups()) {
    nests.push_back(grouping.is_convolution(outputs.front())
                        ? convolution_nest(facts, outputs.front())
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
  for (size_t most_leaves = 24;; most_leaves /= 2) {
    std::vector<Nest> nests = plan_with(function, shapes, target, most_leaves);
    const auto fits = [](const Nest& nest) { return nest.inputs.size() <= most_inputs; };
    if (most_leaves == 1 || std::ranges::all_of(nests, fits)) return nests;
  }
}

}  // namespace castor::jit
