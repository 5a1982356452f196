// SPDX-License-Identifier: Apache-2.0
// look_up: entries of tables.
#include "ir/interpreter/evaluators.hpp"
#include "ir/shape/look_up.hpp"

namespace castor {

void evaluate_look_up(const Operation& operation, Operands operands, Results results) {
  const Tensor& x = *operands[0];
  const std::vector<uint64_t>& table = operands[1]->elements;
  const auto entries = static_cast<size_t>(look_up_entries(x.element));
  const std::optional<int> axis = look_up_axis(operation);
  size_t tables = 1;
  size_t inner = 1;  // elements between two indices of the axis
  if (axis) {
    tables = static_cast<size_t>(x.shape[*axis]);
    for (int i = *axis + 1; i < x.shape.rank(); ++i) inner *= static_cast<size_t>(x.shape[i]);
  }
  std::vector<uint64_t>& elements = results[0].elements;
  elements.reserve(x.elements.size());
  for (size_t i = 0; i < x.elements.size(); ++i) {
    elements.push_back(table[i / inner % tables * entries + x.elements[i]]);
  }
}

}  // namespace castor
