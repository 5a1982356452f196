// SPDX-License-Identifier: Apache-2.0
#include "jit/plan/nest.hpp"

#include <algorithm>

namespace castor::jit {

ElementType Nest::element(size_t operand) const {
  return operand < inputs.size() ? program.sources[operand].element
                                 : program.sinks[operand - inputs.size()].element;
}

std::vector<OperandStorage> Nest::storage() const {
  std::vector<OperandStorage> all;
  for (const MemoryOperand& operand : program.sources) all.push_back({operand.element, false});
  for (const MemoryOperand& operand : program.sinks) all.push_back({operand.element, true});
  return all;
}

bool Nest::has_sub_byte_operand() const {
  const auto is_small = [](const MemoryOperand& operand) { return is_sub_byte(operand.element); };
  return std::any_of(program.sources.begin(), program.sources.end(), is_small) ||
         std::any_of(program.sinks.begin(), program.sinks.end(), is_small);
}

}  // namespace castor::jit
