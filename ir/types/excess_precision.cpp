// SPDX-License-Identifier: Apache-2.0
#include "ir/types/excess_precision.hpp"

namespace castor {

bool may_be_carried_wide(ElementType type) {
  return is_float(type) && has_nans(type) && bits_of(type) <= 16;
}

bool allows_excess_precision(const Function& function) {
  const AttributeValue* value = find(function.attributes, "excess_precision");
  return value != nullptr && *value == AttributeValue{Identifier{"allow"}};
}

std::vector<ElementType> carried_types(const Function& function) {
  std::vector<ElementType> types;
  for (const Value& value : function.values) types.push_back(value.type.element);
  if (!allows_excess_precision(function)) return types;
  for (const Operation& operation : function.operations) {
    if (!keeps_excess_precision(operation.op)) continue;
    for (ValueId result : operation.results) {
      if (may_be_carried_wide(types[result])) types[result] = ElementType::f32;
    }
  }
  return types;
}

}  // namespace castor
