// SPDX-License-Identifier: Apache-2.0
// The specifications of elementwise operations other than `convert` (ir/README.md, Arithmetic).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/op.hpp"
#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// An operation on operands of one type; of `select`, on values of that type after a condition.
struct ElementwiseOp {
  OpKind op;
  ElementType type;
  std::optional<double> lo{}, hi{};  ///< bounds that `clamp` has
};

/// The type of the result.
ElementType result_type(const ElementwiseOp& op);
/// The types of the operands.
std::vector<ElementType> operand_types(const ElementwiseOp& op);
/// Whether the operation has a specification here.
bool is_specified(OpKind op);

/// The result's bits of the operands' bits.
Term specified_result(const ElementwiseOp& op, std::span<const Term> operands);

// Families.
Term integer_result(const ElementwiseOp& op, std::span<const Term> operands);
Term float_result(const ElementwiseOp& op, std::span<const Term> operands);
Term comparison_result(const ElementwiseOp& op, std::span<const Term> operands);
Term truth_result(const ElementwiseOp& op, std::span<const Term> operands);

}  // namespace castor::prove
