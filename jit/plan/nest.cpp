// SPDX-License-Identifier: Apache-2.0
#include "jit/plan/nest.hpp"

#include <algorithm>

#include "ir/support/integer_math.hpp"

namespace castor::jit {

ElementType Nest::element(size_t operand) const {
  return operand < inputs.size() ? program.sources[operand].element
                                 : program.sinks[operand - inputs.size()].element;
}

bool Nest::is_table(size_t operand) const {
  return operand < inputs.size() && program.sources[operand].is_table();
}

std::vector<OperandStorage> Nest::storage() const {
  std::vector<OperandStorage> all;
  for (const MemoryOperand& operand : program.sources) {
    all.push_back({operand.element, false, operand.is_table()});
  }
  for (const MemoryOperand& operand : program.sinks) all.push_back({operand.element, true, false});
  return all;
}

int64_t operand_bytes(const Nest& nest, const IterationSpace& space, size_t operand) {
  int64_t elements = 1;
  for (int axis = 0; axis < space.extents.rank(); ++axis) {
    const bool repeats = space.strides[operand][static_cast<size_t>(axis)] == 0;
    if (!repeats) elements = saturated_product(elements, space.extents[axis]);
  }
  return saturated_product(elements, bits_of(nest.element(operand))) / 8;
}

NestForm Nest::dense_form() const {
  NestForm form = NestForm::dense(operands());
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (is_table(k)) form.access[k] = Access::table;
  }
  return form;
}

bool Nest::has_sub_byte_operand() const {
  const auto is_small = [](const MemoryOperand& operand) { return is_sub_byte(operand.element); };
  return std::any_of(program.sources.begin(), program.sources.end(), is_small) ||
         std::any_of(program.sinks.begin(), program.sinks.end(), is_small);
}

}  // namespace castor::jit
