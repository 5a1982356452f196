// SPDX-License-Identifier: Apache-2.0
// Evaluating functions by family; see Evaluator for what they take.
#pragma once

#include <cstddef>
#include <span>

#include "ir/interpreter/evaluate.hpp"
#include "ir/interpreter/operand_indices.hpp"

namespace castor {

using Operands = std::span<const Tensor* const>;
using Results = std::span<Tensor>;

// Tensors as they are: ir/interpreter/evaluate_movement.cpp.
void evaluate_constant(const Operation& operation, Operands operands, Results results);
void evaluate_broadcast(const Operation& operation, Operands operands, Results results);
void evaluate_reshape(const Operation& operation, Operands operands, Results results);

// Tables: ir/interpreter/evaluate_look_up.cpp.
void evaluate_look_up(const Operation& operation, Operands operands, Results results);

// Conversions: ir/interpreter/evaluate_conversion.cpp.
void evaluate_convert(const Operation& operation, Operands operands, Results results);
void evaluate_convert_promote_types(const Operation& operation, Operands operands, Results results);

// Ops with a rule of their own: ir/interpreter/evaluate_elementwise.cpp.
void evaluate_clamp(const Operation& operation, Operands operands, Results results);
void evaluate_select(const Operation& operation, Operands operands, Results results);

// Reductions: ir/interpreter/evaluate_reduction.cpp.
void evaluate_reduce_min(const Operation& operation, Operands operands, Results results);
void evaluate_reduce_max(const Operation& operation, Operands operands, Results results);
void evaluate_reduce_max_abs(const Operation& operation, Operands operands, Results results);
void evaluate_reduce_sum(const Operation& operation, Operands operands, Results results);

/// The largest element, as reduce_max has it: one NaN where there is any, and of no elements the
/// lowest number.
uint64_t largest_of(const std::vector<uint64_t>& elements, ElementType type);

// Pooling: ir/interpreter/evaluate_pooling.cpp.
void evaluate_max_pool(const Operation& operation, Operands operands, Results results);

// Convolutions: ir/interpreter/evaluate_convolution.cpp.
void evaluate_conv_integer(const Operation& operation, Operands operands, Results results);

// Matrix products: ir/interpreter/evaluate_matmul.cpp.
void evaluate_matmul_integer(const Operation& operation, Operands operands, Results results);

// Requantization: ir/interpreter/evaluate_requantize.cpp.
void evaluate_requantize(const Operation& operation, Operands operands, Results results);

/// How many elements a result has.
size_t result_count(const Tensor& result);

/// The meaning of an op for one element of the operands' type, from raw bits to raw bits.
using UnaryFunction = uint64_t (*)(uint64_t x, ElementType type);
using BinaryFunction = uint64_t (*)(uint64_t a, uint64_t b, ElementType type);

/// One operand; `floats` for floating types, `others` for the other types that the op admits.
template <UnaryFunction floats, UnaryFunction others = floats>
void evaluate_unary(const Operation&, Operands operands, Results results) {
  const Tensor& x = *operands[0];
  const UnaryFunction function = is_float(x.element) ? floats : others;
  results[0].elements.reserve(x.elements.size());
  for (uint64_t bits : x.elements) results[0].elements.push_back(function(bits, x.element));
}

/// Two operands of one type, broadcast to the result's shape.
template <BinaryFunction floats, BinaryFunction others = floats>
void evaluate_binary(const Operation& operation, Operands operands, Results results) {
  const ElementType type = operands[0]->element;
  const BinaryFunction function = is_float(type) ? floats : others;
  Tensor& result = results[0];
  OperandIndices a(operation, 0, *operands[0], result.shape);
  OperandIndices b(operation, 1, *operands[1], result.shape);
  const size_t count = result_count(result);
  result.elements.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t first = a.next();
    result.elements.push_back(function(first, b.next(), type));
  }
}

}  // namespace castor
