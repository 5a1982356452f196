// SPDX-License-Identifier: Apache-2.0
#include "ir/rewrite/widen_tables.hpp"

#include <algorithm>

#include "ir/numerics/scalar.hpp"
#include "ir/rewrite/rebuild.hpp"
#include "ir/shape/look_up.hpp"
#include "ir/types/elements.hpp"

namespace castor {

namespace {

bool has_narrow_table(const Function& function, const Operation& operation) {
  return operation.op == OpKind::look_up &&
         is_sub_byte(function.type_of(operation.operands[1]).element);
}

/// A type of 8 bits from which every code comes back as it was.
ElementType widened(ElementType element) {
  if (!is_integer(element)) return ElementType::f8e4m3;
  return is_signed_integer(element) ? ElementType::i8 : ElementType::u8;
}

/// Copies a function with wider tables.
class Widening {
 public:
  explicit Widening(const Function& function)
      : function_(function),
        builder_(function.name),
        ids_(detail::append_parameters(builder_, function)),
        widened_(function.values.size(), no_value),
        constants_(function.values.size(), nullptr) {}

  Result<FunctionPtr> run() {
    for (const Operation& operation : function_.operations) {
      if (operation.op == OpKind::constant) constants_[operation.results[0]] = &operation;
      if (has_narrow_table(function_, operation)) {
        append_widened(operation);
      } else {
        detail::append_copy(builder_, function_, operation, ids_);
      }
    }
    return detail::finish_copy(builder_, function_, ids_);
  }

 private:
  /// The table in the wider type.
  ValueId table(ValueId narrow) {
    ValueId& wide = widened_[narrow];
    if (wide != no_value) return wide;
    const ElementType element = widened(function_.type_of(narrow).element);
    return wide = constants_[narrow] == nullptr ? builder_.convert(ids_[narrow], element)
                                                : constant(*constants_[narrow], element);
  }

  /// Another constant, so that code may contain it.
  ValueId constant(const Operation& narrow, ElementType to) {
    const TensorType& type = function_.type_of(narrow.results[0]);
    int64_t count = 1;
    for (const Dim& dim : type.shape) count *= dim.extent;
    std::vector<std::byte> bytes;
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t code = read_element(narrow.data->bytes.data(), type.element, i);
      bytes.push_back(static_cast<std::byte>(numerics::convert(code, type.element, to, {})));
    }
    return builder_.constant({to, type.shape}, bytes);
  }

  void append_widened(const Operation& operation) {
    const ValueId y = operation.results[0];
    const ValueId bytes =
        builder_.append({.op = OpKind::look_up,
                         .operands = {ids_[operation.operands[0]], table(operation.operands[1])},
                         .attributes = operation.attributes,
                         .where = operation.where},
                        {});
    const std::string names[] = {function_.values[y].name};
    ids_[y] =
        builder_.append({.op = OpKind::convert, .operands = {bytes}, .where = operation.where},
                        {.element = function_.type_of(y).element, .shape = {}}, names);
  }

  const Function& function_;
  FunctionBuilder builder_;
  detail::CopiedIds ids_;
  std::vector<ValueId> widened_;             ///< by value; no_value: not yet
  std::vector<const Operation*> constants_;  ///< by value; null for all others
};

}  // namespace

FunctionPtr widen_tables(const FunctionPtr& function) {
  const auto is_affected = [&](const Operation& operation) {
    return has_narrow_table(*function, operation);
  };
  if (std::ranges::none_of(function->operations, is_affected)) return function;
  const Result<FunctionPtr> widened = Widening(*function).run();
  return widened ? *widened : function;  // the rules of the IR hold for what was verified before
}

}  // namespace castor
