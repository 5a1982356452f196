// SPDX-License-Identifier: Apache-2.0
// The table from ops to evaluating functions, in the order of OpKind.
#include "ir/interpreter/evaluate.hpp"

#include <array>

#include "ir/numerics/scalar.hpp"

namespace castor {

namespace {

void evaluate_constant(const Operation& operation, std::span<const Tensor* const>,
                       std::span<Tensor> results) {
  const std::vector<std::byte>& bytes = operation.data->bytes;
  const Tensor& type = results[0];
  results[0] = read_tensor(ConstView(bytes.data(), type.element, type.shape, bytes.size()));
}

void evaluate_convert(const Operation& operation, std::span<const Tensor* const> operands,
                      std::span<Tensor> results) {
  const Tensor& source = *operands[0];
  Tensor& result = results[0];
  const ConvertOptions options = convert_options(operation);
  result.elements.reserve(source.elements.size());
  for (uint64_t bits : source.elements) {
    result.elements.push_back(numerics::convert(bits, source.element, result.element, options));
  }
}

constexpr std::array<Evaluator, op_count> evaluators = {
    evaluate_constant,
    evaluate_convert,
};

}  // namespace

Evaluator evaluator_of(OpKind op) { return evaluators[static_cast<size_t>(op)]; }

}  // namespace castor
