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

/// The entries in the wider type: of a constant as another one, so that code may contain them.
ValueId append_table(FunctionBuilder& builder, const Function& function, ValueId table,
                     ValueId copied) {
  const auto definition = std::ranges::find_if(
      function.operations,
      [&](const Operation& operation) { return operation.results[0] == table; });
  const TensorType& type = function.type_of(table);
  const ElementType wide = widened(type.element);
  const bool is_constant =
      definition != function.operations.end() && definition->op == OpKind::constant;
  if (!is_constant) return builder.convert(copied, wide);
  int64_t count = 1;
  for (const Dim& dim : type.shape) count *= dim.extent;
  std::vector<std::byte> bytes;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t code = read_element(definition->data->bytes.data(), type.element, i);
    bytes.push_back(static_cast<std::byte>(numerics::convert(code, type.element, wide, {})));
  }
  return builder.constant({wide, type.shape}, bytes);
}

void append_widened(FunctionBuilder& builder, const Function& function, const Operation& operation,
                    detail::CopiedIds& ids) {
  const ValueId y = operation.results[0];
  const ElementType element = function.type_of(y).element;
  const ValueId from = operation.operands[1];
  const ValueId table = append_table(builder, function, from, ids[from]);
  const ValueId bytes = builder.append({.op = OpKind::look_up,
                                        .operands = {ids[operation.operands[0]], table},
                                        .attributes = operation.attributes,
                                        .where = operation.where},
                                       {});
  const std::string names[] = {function.values[y].name};
  ids[y] = builder.append({.op = OpKind::convert, .operands = {bytes}, .where = operation.where},
                          {.element = element, .shape = {}}, names);
}

}  // namespace

FunctionPtr widen_tables(const FunctionPtr& function) {
  const auto is_affected = [&](const Operation& operation) {
    return has_narrow_table(*function, operation);
  };
  if (std::ranges::none_of(function->operations, is_affected)) return function;
  FunctionBuilder builder(function->name);
  detail::CopiedIds ids = detail::append_parameters(builder, *function);
  for (const Operation& operation : function->operations) {
    if (is_affected(operation)) {
      append_widened(builder, *function, operation, ids);
    } else {
      detail::append_copy(builder, *function, operation, ids);
    }
  }
  const Result<FunctionPtr> widened = detail::finish_copy(builder, *function, ids);
  return widened ? *widened : function;  // the rules of the IR hold for what was verified before
}

}  // namespace castor
