// SPDX-License-Identifier: Apache-2.0
#include "ir/op.hpp"

#include "ir/convert_options.hpp"

namespace castor {

namespace {

constexpr std::span<const std::string_view> choices_of(std::span<const std::string_view> names) {
  return names.subspan(1);  // the first entry is the default, which is not written
}

constexpr AttributeRule convert_attributes[] = {
    {.name = "overflow", .kind = AttributeKind::identifier, .choices = choices_of(overflow_names)},
    {.name = "rounding", .kind = AttributeKind::identifier, .choices = choices_of(rounding_names)},
    {.name = "nan", .kind = AttributeKind::identifier, .choices = choices_of(nan_mode_names)},
};

constexpr std::array<OpInfo, op_count> table = {{
    {.op = OpKind::constant,
     .name = "constant",
     .operands = 0,
     .results = 1,
     .suffix = TypeSuffix::tensor,
     .infer = InferRule::as_written,
     .attributes = {},
     .meaning = "a tensor of literals, or bound by name"},
    {.op = OpKind::convert,
     .name = "convert",
     .operands = 1,
     .results = 1,
     .suffix = TypeSuffix::element,
     .infer = InferRule::element_as_named,
     .attributes = convert_attributes,
     .meaning = "elementwise conversion to the element type named"},
}};

constexpr bool table_is_in_enum_order() {
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].op != static_cast<OpKind>(i)) return false;
  }
  return true;
}
static_assert(table_is_in_enum_order());

}  // namespace

const std::array<OpInfo, op_count>& op_table() { return table; }

const OpInfo& info(OpKind op) { return table[static_cast<size_t>(op)]; }

std::string_view name_of(OpKind op) { return info(op).name; }

std::optional<OpKind> op_named(std::string_view name) {
  for (const OpInfo& row : table) {
    if (row.name == name) return row.op;
  }
  return std::nullopt;
}

}  // namespace castor
