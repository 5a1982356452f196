// SPDX-License-Identifier: Apache-2.0
// Canonical form: fold, merge, drop, until nothing changes.
#include "ir/rewrite/canonicalize.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "ir/composition/expand.hpp"
#include "ir/rewrite/drop_zero_points.hpp"
#include "ir/rewrite/fold_constants.hpp"
#include "ir/rewrite/integer_steps.hpp"
#include "ir/rewrite/merge_conversions.hpp"
#include "ir/rewrite/narrow_reductions.hpp"
#include "ir/rewrite/rebuild.hpp"
#include "ir/rewrite/split_windows.hpp"
#include "ir/rewrite/split_zero_points.hpp"
#include "ir/rewrite/widen_tables.hpp"
#include "ir/types/excess_precision.hpp"

namespace castor {

namespace {

/// The operations with two conversions, with default options, in place of each promotion.
std::vector<Operation> without_promotions(const Function& function) {
  std::vector<Operation> operations;
  for (const Operation& operation : function.operations) {
    if (operation.op != OpKind::convert_promote_types) {
      operations.push_back(operation);
      continue;
    }
    for (size_t i = 0; i < operation.results.size(); ++i) {
      operations.push_back({.op = OpKind::convert,
                            .operands = {operation.operands[i]},
                            .results = {operation.results[i]},
                            .where = operation.where});
    }
  }
  return operations;
}

/// Whether two shapes are the same whatever is bound: every `?` may be another extent.
bool surely_equal(const Shape& a, const Shape& b) {
  return a == b && std::ranges::find(a, Dim::any()) == a.end();
}

/// Whether the op gives every number of the type as it is, bit by bit.
bool is_identity_on(OpKind op, ElementType type) {
  switch (op) {
    case OpKind::floor:
    case OpKind::ceil:
    case OpKind::trunc:
    case OpKind::round_even: return is_integer(type);
    case OpKind::abs:
    case OpKind::relu: return is_unsigned_integer(type);
    default: return false;
  }
}

/// Whether the bytes of an operation's boolean results are 0 and 1: select copies, all other
/// elementwise ops compute.
bool gives_normalised_booleans(const Operation& operation) {
  return info(operation.op).family == OpFamily::elementwise && operation.op != OpKind::select;
}

/// Rewrites the operations of one function in order. Operands are canonical by the time that they
/// are looked at, so that one pass reaches the fixed point.
class Rewriter {
 public:
  explicit Rewriter(const Function& function)
      : function_(function),
        carried_(carried_types(function)),
        operations_(without_promotions(function)),
        kept_(operations_.size(), false),
        replaced_by_(function.values.size()),
        definition_(function.values.size(), nullptr),
        changed_(operations_.size() != function.operations.size()) {
    std::iota(replaced_by_.begin(), replaced_by_.end(), ValueId{0});
  }

  /// Whether anything changed.
  bool run() {
    for (Operation& operation : operations_) {
      for (ValueId& id : operation.operands) id = replacement(id);
      rewrite(operation);
      for (ValueId id : operation.results) definition_[id] = &operation;
    }
    mark_kept();
    return changed_;
  }

  /// The function of what is left; only after run().
  Result<FunctionPtr> rebuilt() const {
    FunctionBuilder builder(function_.name);
    detail::CopiedIds ids = detail::append_parameters(builder, function_);
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (kept_[i]) detail::append_copy(builder, function_, operations_[i], ids);
    }
    for (size_t i = 0; i < function_.results.size(); ++i) {
      builder.result(ids[replacement(function_.results[i])], function_.result_types[i]);
    }
    for (const Attribute& attribute : function_.attributes) builder.attribute(attribute);
    return builder.finish();
  }

 private:
  ValueId replacement(ValueId id) const { return id == no_value ? id : replaced_by_[id]; }

  ElementType element_of(ValueId id) const { return function_.type_of(id).element; }

  /// The conversion that gives a value, or null.
  const Operation* conversion_of(ValueId id) const {
    const Operation* operation = definition_[id];
    return operation && operation->op == OpKind::convert ? operation : nullptr;
  }

  void rewrite(Operation& operation) {
    switch (operation.op) {
      case OpKind::convert: return rewrite_convert(operation);
      case OpKind::broadcast:
      case OpKind::reshape: return fold_movement(operation);
      case OpKind::add:
      case OpKind::sub: return rewrite_sum(operation);
      default: break;
    }
    if (operation.operands.size() != 1) return;
    if (is_identity_on(operation.op, element_of(operation.results[0]))) use_operand_of(operation);
  }

  /// Uses the operand in place of the result.
  void use_operand_of(const Operation& operation) { use(operation.operands[0], operation); }

  void use(ValueId value, const Operation& operation) {
    replaced_by_[operation.results[0]] = value;
    changed_ = true;
  }

  void rewrite_sum(Operation& operation) {
    const ValueId same = detail::operand_beside_zero(function_, definition_, operation);
    if (same != no_value) return use(same, operation);
    auto clamp = detail::clamp_of_offsets(function_, definition_, operation);
    if (!clamp) return;
    operation = std::move(*clamp);
    changed_ = true;
  }

  /// Whether a value is handed on in its own type, not in a wider one.
  bool is_exact(ValueId id) const { return carried_[id] == element_of(id); }

  /// Nothing moves between equal shapes; but a value that is carried in a wider type is rounded
  /// where it enters.
  void fold_movement(const Operation& operation) {
    const ValueId source = operation.operands[0];
    const Shape& shape = function_.type_of(operation.results[0]).shape;
    if (is_exact(source) && surely_equal(shape, function_.type_of(source).shape)) {
      use_operand_of(operation);
    }
  }

  void rewrite_convert(Operation& operation) {
    while (!fold(operation) &&
           (merge_with_operand(operation) || skip_relu(operation) || skip_clamp(operation))) {
      changed_ = true;
    }
  }

  /// Folds a conversion where it copies: what is carried in a wider type is rounded.
  bool fold(const Operation& operation) {
    const ValueId source = operation.operands[0];
    const ElementType type = element_of(operation.results[0]);
    const Operation* definition = definition_[source];
    const bool normalised = definition && gives_normalised_booleans(*definition);
    if (element_of(source) != type || !is_exact(source)) return false;
    if (!copies_bits(type, convert_options(operation), normalised)) return false;
    use_operand_of(operation);
    return true;
  }

  /// Takes the operand's operand where two conversions are one.
  bool merge_with_operand(Operation& operation) const {
    const Operation* first = conversion_of(operation.operands[0]);
    if (!first) return false;
    const ValueId source = first->operands[0];
    const auto merged = merge_conversions({.from = carried_[source],
                                           .first = convert_options(*first),
                                           .middle = element_of(first->results[0]),
                                           .second = convert_options(operation),
                                           .to = element_of(operation.results[0])});
    if (!merged) return false;
    operation.operands[0] = source;
    operation.attributes = attributes_of(*merged);
    return true;
  }

  /// Takes a relu's operand where the conversion saturates at 0: NaN becomes 0 as well.
  bool skip_relu(Operation& operation) const {
    const Operation* relu = definition_[operation.operands[0]];
    if (!relu || relu->op != OpKind::relu) return false;
    const ElementType from = element_of(operation.operands[0]);
    const ElementType to = element_of(operation.results[0]);
    const Overflow overflow = canonical_options(from, to, convert_options(operation)).overflow;
    const bool by_type_saturates = !is_integer(from);
    const bool saturates =
        overflow == Overflow::saturate || (overflow == Overflow::by_type && by_type_saturates);
    if (!saturates || !is_unsigned_integer(to)) return false;
    operation.operands[0] = relu->operands[0];
    return true;
  }

  bool skip_clamp(Operation& operation) const {
    const ValueId clamped = detail::operand_of_needless_clamp(function_, definition_, operation);
    if (clamped == no_value) return false;
    operation.operands[0] = clamped;
    return true;
  }

  /// Operations that a result needs.
  void mark_kept() {
    std::vector<bool> live(function_.values.size(), false);
    for (ValueId id : function_.results) live[replacement(id)] = true;
    for (size_t i = operations_.size(); i-- > 0;) {
      const Operation& operation = operations_[i];
      for (ValueId id : operation.results) kept_[i] = kept_[i] || live[id];
      if (!kept_[i]) changed_ = true;
      for (ValueId id : operation.operands) {
        if (kept_[i] && id != no_value) live[id] = true;
      }
    }
  }

  const Function& function_;
  const std::vector<ElementType> carried_;  ///< by ValueId, what its elements are handed on in
  std::vector<Operation> operations_;
  std::vector<bool> kept_;
  std::vector<ValueId> replaced_by_;
  detail::Definitions definition_;
  bool changed_;
};

/// The definitions in place of compositions. No function is canonical that has some, so what keeps
/// it from having none is thrown: memory, or the limit of values.
FunctionPtr without_compositions(const FunctionPtr& function) {
  if (!has_compositions(*function)) return function;
  Result<FunctionPtr> expanded = expand_compositions(*function);
  if (!expanded) throw std::length_error(expanded.error().message);
  return *expanded;
}

/// Each rewrite once.
FunctionPtr rewritten(const FunctionPtr& function) {
  const FunctionPtr folded = fold_constants(without_compositions(function));
  const FunctionPtr narrowed = narrow_reductions(drop_zero_points(folded));
  const FunctionPtr split = split_windows(widen_tables(split_zero_points(narrowed)));
  Rewriter rewriter(*split);
  if (!rewriter.run()) return split;
  Result<FunctionPtr> rebuilt = rewriter.rebuilt();
  return rebuilt ? *rebuilt : split;  // the rules of the IR hold for what was verified before
}

}  // namespace

FunctionPtr canonicalize(const FunctionPtr& function) {
  // One rewrite can make work for an earlier one: a promotion of a constant is a conversion of one.
  FunctionPtr canonical = function;
  while (FunctionPtr next = rewritten(canonical)) {
    if (next == canonical) break;
    canonical = std::move(next);
  }
  return canonical;
}

std::string reason_interpreted(const Function& canonical) {
  std::string reason = reason_not_split(canonical);
  return reason.empty() ? reason_windows_not_split(canonical) : reason;
}

}  // namespace castor
