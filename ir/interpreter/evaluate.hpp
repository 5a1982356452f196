// SPDX-License-Identifier: Apache-2.0
// The meaning of each op: one evaluating function for each row of the op table.
#pragma once

#include <span>

#include "ir/function.hpp"
#include "ir/interpreter/tensor.hpp"

namespace castor {

/// Computes the elements of `results`, whose element types and shapes are set already, from the
/// operands (null: absent). Throws std::bad_alloc or std::length_error when memory is refused.
using Evaluator = void (*)(const Operation& operation, std::span<const Tensor* const> operands,
                           std::span<Tensor> results);

/// The evaluating function of an op.
Evaluator evaluator_of(OpKind op);

}  // namespace castor
