// SPDX-License-Identifier: Apache-2.0
// Conversions.
#include "ir/interpreter/evaluators.hpp"
#include "ir/numerics/scalar.hpp"

namespace castor {

namespace {

void convert_elements(const Tensor& source, Tensor& result, const ConvertOptions& options) {
  result.elements.reserve(source.elements.size());
  for (uint64_t bits : source.elements) {
    result.elements.push_back(numerics::convert(bits, source.element, result.element, options));
  }
}

}  // namespace

void evaluate_convert(const Operation& operation, Operands operands, Results results) {
  convert_elements(*operands[0], results[0], convert_options(operation));
}

// Two conversions with default options, each operand in its own shape.
void evaluate_convert_promote_types(const Operation&, Operands operands, Results results) {
  for (size_t i = 0; i < results.size(); ++i) convert_elements(*operands[i], results[i], {});
}

}  // namespace castor
