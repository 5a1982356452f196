// SPDX-License-Identifier: Apache-2.0
#include "ir/types/element_type.hpp"

namespace castor {

namespace {
constexpr bool table_is_in_enum_order() {
  for (size_t i = 0; i < element_table.size(); ++i) {
    if (element_table[i].type != static_cast<ElementType>(i)) return false;
  }
  return true;
}
static_assert(table_is_in_enum_order());
}  // namespace

std::optional<ElementType> element_type_named(std::string_view name) {
  for (const ElementInfo& row : element_table) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

}  // namespace castor
