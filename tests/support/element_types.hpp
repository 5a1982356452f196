// SPDX-License-Identifier: Apache-2.0
// The element types that parameterised tests run over, and their names in such tests.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "ir/types/element_type.hpp"

namespace castor::test {

/// Every row of the table, older layouts included.
inline std::vector<ElementType> all_element_types() {
  std::vector<ElementType> types;
  for (const ElementInfo& row : element_table) types.push_back(row.type);
  return types;
}

/// The types that differ in their values: one layout of each.
inline std::vector<ElementType> value_types() {
  return {castor::value_types.begin(), castor::value_types.end()};
}

/// The types of at most so many bits that are neither integers nor boolean.
inline std::vector<ElementType> reals_of_at_most(int bits) {
  std::vector<ElementType> types = value_types();
  std::erase_if(types, [&](ElementType type) { return is_whole(type) || bits_of(type) > bits; });
  return types;
}

/// Those of them that are floats: neither f8e8m0 nor nf4.
inline std::vector<ElementType> floats_of_at_most(int bits) {
  std::vector<ElementType> types = reals_of_at_most(bits);
  std::erase_if(types, [](ElementType type) { return !is_float(type); });
  return types;
}

/// The name with _ for the dot, which names of tests must not have.
inline std::string test_name(ElementType type) {
  std::string name(name_of(type));
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

}  // namespace castor::test
