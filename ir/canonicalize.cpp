// SPDX-License-Identifier: Apache-2.0
// Canonical form: fold, merge, drop, in one walk forward and one backward.
#include "ir/canonicalize.hpp"

#include <numeric>

#include "ir/builder.hpp"
#include "ir/merge_conversions.hpp"

namespace castor {

namespace {

/// Rewrites the operations of one function in order. Operands are canonical by the time that they
/// are looked at, so that one walk reaches the fixed point.
class Rewriter {
 public:
  explicit Rewriter(const Function& function)
      : function_(function),
        operations_(function.operations),
        kept_(operations_.size(), false),
        replaced_by_(function.values.size()),
        definition_(function.values.size(), nullptr) {
    std::iota(replaced_by_.begin(), replaced_by_.end(), ValueId{0});
  }

  /// Whether anything changed.
  bool run() {
    for (Operation& operation : operations_) {
      for (ValueId& id : operation.operands) id = replacement(id);
      if (operation.op == OpKind::convert) rewrite_convert(operation);
      for (ValueId id : operation.results) definition_[id] = &operation;
    }
    mark_kept();
    return changed_;
  }

  /// The function of what is left; only after run().
  Result<FunctionPtr> rebuilt() const {
    FunctionBuilder builder(function_.name);
    std::vector<ValueId> ids(function_.values.size(), no_value);
    for (ValueId id : function_.parameters) {
      ids[id] = builder.parameter(function_.values[id].name, function_.type_of(id));
    }
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (kept_[i]) append(builder, operations_[i], ids);
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

  void rewrite_convert(Operation& operation) {
    while (!fold(operation) && merge_with_operand(operation)) changed_ = true;
  }

  /// Uses the operand in place of the result where the conversion copies.
  bool fold(const Operation& operation) {
    const ValueId source = operation.operands[0];
    const ValueId result = operation.results[0];
    const bool normalised = conversion_of(source) != nullptr;
    if (element_of(source) != element_of(result)) return false;
    if (!copies_bits(element_of(result), convert_options(operation), normalised)) return false;
    replaced_by_[result] = source;
    changed_ = true;
    return true;
  }

  /// Takes the operand's operand where two conversions are one.
  bool merge_with_operand(Operation& operation) const {
    const Operation* first = conversion_of(operation.operands[0]);
    if (!first) return false;
    const ValueId source = first->operands[0];
    const auto merged = merge_conversions({.from = element_of(source),
                                           .first = convert_options(*first),
                                           .middle = element_of(first->results[0]),
                                           .second = convert_options(operation),
                                           .to = element_of(operation.results[0])});
    if (!merged) return false;
    operation.operands[0] = source;
    operation.attributes = attributes_of(*merged);
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

  void append(FunctionBuilder& builder, const Operation& operation,
              std::vector<ValueId>& ids) const {
    Operation copy = operation;
    for (ValueId& id : copy.operands) id = id == no_value ? id : ids[id];
    std::vector<std::string> names;
    for (ValueId id : operation.results) names.push_back(function_.values[id].name);
    const TensorType& type = function_.type_of(operation.results[0]);
    ValueId next = builder.append(std::move(copy), {type.element, type.shape}, names);
    for (ValueId id : operation.results) ids[id] = next++;  // appended one after another
  }

  const Function& function_;
  std::vector<Operation> operations_;
  std::vector<bool> kept_;
  std::vector<ValueId> replaced_by_;
  std::vector<const Operation*> definition_;
  bool changed_ = false;
};

}  // namespace

FunctionPtr canonicalize(const FunctionPtr& function) {
  Rewriter rewriter(*function);
  if (!rewriter.run()) return function;
  Result<FunctionPtr> rebuilt = rewriter.rebuilt();
  return rebuilt ? *rebuilt : function;  // the rules of the IR hold for what was verified before
}

}  // namespace castor
