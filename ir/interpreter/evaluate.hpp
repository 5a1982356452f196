// SPDX-License-Identifier: Apache-2.0
// The meaning of each op: one evaluating function for each row of the op table.
#pragma once

#include <span>

#include "ir/function.hpp"
#include "ir/interpreter/tensor.hpp"

namespace castor {

/// What an evaluating function throws where it refuses values that are known only when it runs.
struct Refusal {
  Error error;
};

/// Computes the elements of `results`, whose element types and shapes are set already, from the
/// operands (null: absent). Throws std::bad_alloc or std::length_error when memory is refused,
/// Refusal where operands have values that the op does not take.
using Evaluator = void (*)(const Operation& operation, std::span<const Tensor* const> operands,
                           std::span<Tensor> results);

/// The evaluating function of an op that is no composition.
Evaluator evaluator_of(OpKind op);

}  // namespace castor
