// SPDX-License-Identifier: Apache-2.0
#include "ir/rewrite/narrow_reductions.hpp"

#include <algorithm>

#include "ir/rewrite/definitions.hpp"
#include "ir/rewrite/rebuild.hpp"
#include "ir/types/convert_options.hpp"
#include "ir/types/excess_precision.hpp"

namespace castor {

namespace {

bool selects_an_element(OpKind op) {
  return op == OpKind::reduce_min || op == OpKind::reduce_max || op == OpKind::reduce_max_abs;
}

/// Whether a conversion keeps every number and infinity of 16 bits, and has room for them.
bool widens(const Function& function, const Operation& conversion) {
  const ElementType from = function.type_of(conversion.operands[0]).element;
  const ElementType to = function.type_of(conversion.results[0]).element;
  return (from == ElementType::f16 || from == ElementType::bf16) &&
         (to == ElementType::f32 || to == ElementType::f64) &&
         convert_options(conversion) == ConvertOptions{};
}

/// Copies a function with reductions before conversions.
class Narrowing {
 public:
  explicit Narrowing(const Function& function)
      : function_(function),
        definitions_(detail::definitions_of(function)),
        carried_(carried_types(function)),
        builder_(function.name),
        ids_(detail::append_parameters(builder_, function)) {}

  bool is_affected(const Operation& operation) const {
    if (!selects_an_element(operation.op)) return false;
    const ValueId wide = operation.operands[0];
    const Operation* conversion = definitions_[wide];
    if (conversion == nullptr || conversion->op != OpKind::convert) return false;
    const ValueId narrow = conversion->operands[0];
    return widens(function_, *conversion) && is_exact(narrow) && is_exact(wide);
  }

  Result<FunctionPtr> run() {
    for (const Operation& operation : function_.operations) {
      if (is_affected(operation)) {
        append_narrow(operation);
      } else {
        detail::append_copy(builder_, function_, operation, ids_);
      }
    }
    return detail::finish_copy(builder_, function_, ids_);
  }

 private:
  /// Whether a value is handed on in its own type.
  bool is_exact(ValueId id) const { return carried_[id] == function_.type_of(id).element; }

  void append_narrow(const Operation& operation) {
    const ValueId y = operation.results[0];
    const ValueId x = definitions_[operation.operands[0]]->operands[0];
    const ValueId reduced = builder_.append({.op = operation.op,
                                             .operands = {ids_[x]},
                                             .attributes = operation.attributes,
                                             .where = operation.where},
                                            {});
    const std::string names[] = {function_.values[y].name};
    ids_[y] =
        builder_.append({.op = OpKind::convert, .operands = {reduced}, .where = operation.where},
                        {.element = function_.type_of(y).element, .shape = {}}, names);
  }

  const Function& function_;
  const detail::Definitions definitions_;
  const std::vector<ElementType> carried_;  ///< by value
  FunctionBuilder builder_;
  detail::CopiedIds ids_;
};

}  // namespace

FunctionPtr narrow_reductions(const FunctionPtr& function) {
  const auto reduces = [](const Operation& operation) { return selects_an_element(operation.op); };
  if (std::ranges::none_of(function->operations, reduces)) return function;
  Narrowing narrowing(*function);
  const auto is_affected = [&](const Operation& operation) {
    return narrowing.is_affected(operation);
  };
  if (std::ranges::none_of(function->operations, is_affected)) return function;
  const Result<FunctionPtr> narrowed = narrowing.run();
  return narrowed ? *narrowed : function;  // the rules of the IR hold for what was verified before
}

}  // namespace castor
