// SPDX-License-Identifier: Apache-2.0
// Drawing look-ups in tables.
#include <algorithm>

#include "ir/shape/look_up.hpp"
#include "tools/fuzz/generate_operations.hpp"

namespace castor::fuzz {

namespace {

/// The extents of a table for these codes, with or without an axis.
Dims table_shape(ElementType codes, const Dims& shape, std::optional<int> axis) {
  const int64_t entries = look_up_entries(codes);
  return axis ? Dims{shape[*axis], entries} : Dims{entries};
}

}  // namespace

std::optional<int> OperationDrawer::draw_table_axis(const Dims& shape) {
  if (shape.empty() || random_.percent(50)) return {};
  return static_cast<int>(random_.below(static_cast<size_t>(shape.rank())));
}

bool OperationDrawer::look_up(size_t codes, size_t table, std::optional<int> axis) {
  OperationSpec operation{.op = OpKind::look_up, .operands = {codes, table}};
  if (axis) operation.attributes.push_back({"axis", {int64_t{*axis}}});
  return add(std::move(operation));
}

/// In a value that has a table's extents, else in a constant.
bool OperationDrawer::draw_look_up() {
  const std::optional<size_t> codes = operand_of(OperandClass::code);
  if (!codes || !admits(OperandClass::code, program_.element_of(*codes))) return false;
  const Dims shape = program_.shape_of(*codes);
  const ElementType type = program_.element_of(*codes);
  std::optional<int> axis = draw_table_axis(shape);
  if (axis && count_of(table_shape(type, shape, axis)) > max_elements) axis.reset();
  const Dims wanted = table_shape(type, shape, axis);
  std::vector<size_t> tables = values_of(OperandClass::any);
  std::erase_if(tables, [&](size_t value) { return program_.shape_of(value) != wanted; });
  if (!tables.empty() && random_.percent(80)) return look_up(*codes, random_.pick(tables), axis);
  return add_constant(random_.pick(palette_), wanted) && look_up(*codes, last(), axis);
}

bool OperationDrawer::draw_look_up_of(ElementType codes, ElementType table, bool has_axis) {
  const size_t x = add_input(codes);
  const Dims shape = program_.shape_of(x);
  std::optional<int> axis = draw_table_axis(shape);
  if (!has_axis) axis.reset();
  const size_t t = add_input(table, table_shape(codes, shape, axis));
  return look_up(x, t, axis);
}

}  // namespace castor::fuzz
