// SPDX-License-Identifier: Apache-2.0
// Ops that give or move elements without a look at them.
#include "ir/interpreter/evaluators.hpp"

namespace castor {

size_t result_count(const Tensor& result) {
  return static_cast<size_t>(element_count(result.shape).value());
}

void evaluate_constant(const Operation& operation, Operands, Results results) {
  const std::vector<std::byte>& bytes = operation.data->bytes;
  const Tensor& type = results[0];
  results[0].elements =
      read_tensor(ConstView(bytes.data(), type.element, type.shape, bytes.size())).elements;
}

void evaluate_broadcast(const Operation& operation, Operands operands, Results results) {
  Tensor& result = results[0];
  OperandIndices source(operation, 0, *operands[0], result.shape);
  const size_t count = result_count(result);
  result.elements.reserve(count);
  for (size_t i = 0; i < count; ++i) result.elements.push_back(source.next());
}

void evaluate_reshape(const Operation&, Operands operands, Results results) {
  results[0].elements = operands[0]->elements;
}

}  // namespace castor
