// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/significands.hpp"

#include <algorithm>

namespace castor::jit {

namespace {

/// All that a type can hold.
Significand of_type(ElementType type) {
  if (!is_float(type)) return {bits_of(type), 0};
  const FloatFormat& format = info(type).format;
  return {format.mantissa_bits + 1, 1 - format.bias - format.mantissa_bits};
}

/// Powers of two from the least one on.
constexpr Significand power_significand = {1, -127};

Significand of_element(ElementType type) {
  return type == ElementType::f8e8m0 ? power_significand : of_type(type);
}

bool is_known(ElementType type) {
  return is_float(type) || is_integer(type) || type == ElementType::f8e8m0;
}

bool holds(ElementType type, const Significand& number) {
  const Significand all = of_type(type);
  return is_float(type) && number.bits <= all.bits && number.last_place >= all.last_place;
}

}  // namespace

Significands::Significands(const Function& function) : significands_(function.values.size()) {
  for (ValueId value = 0; value < function.values.size(); ++value) {
    significands_[value] = of_element(function.type_of(value).element);
  }
  for (const Operation& operation : function.operations) {
    if (operation.results.size() != 1) continue;
    const ValueId result = operation.results[0];
    const Significand computed = of_result(function, operation);
    if (holds(function.type_of(result).element, computed)) significands_[result] = computed;
  }
}

bool Significands::fits(ValueId value, ElementType type) const {
  return holds(type, significands_[value]);
}

/// What the result is before it is rounded, where that is known.
Significand Significands::of_result(const Function& function, const Operation& operation) const {
  const Significand own = of_element(function.type_of(operation.results[0]).element);
  const auto operand = [&](size_t i) { return significands_[operation.operands[i]]; };
  switch (operation.op) {
    case OpKind::convert:
      return is_known(function.type_of(operation.operands[0]).element) ? operand(0) : own;
    case OpKind::broadcast:
    case OpKind::reshape: return operand(0);
    case OpKind::mul:
      return {operand(0).bits + operand(1).bits, operand(0).last_place + operand(1).last_place};
    default: return own;
  }
}

}  // namespace castor::jit
