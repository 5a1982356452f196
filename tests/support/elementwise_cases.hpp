// SPDX-License-Identifier: Apache-2.0
// Every elementwise op on every element type that it admits, as functions of one op, and operands
// for them.
#pragma once

#include <castor/castor.hpp>

#include <string>
#include <vector>

#include "ir/op.hpp"
#include "tests/support/element_types.hpp"

namespace castor::test {

/// One op on one type.
struct ElementwiseCase {
  OpKind op;
  ElementType type;        ///< the operands' type; for `select`, that of the last two
  std::string attributes;  ///< "lo = 1, hi = 3"; empty for none

  std::string name() const;
  size_t operands() const { return static_cast<size_t>(info(op).operands); }
  ElementType operand_type(size_t i) const;
  ElementType result_type() const;
  /// The function of that op alone, on operands of one unknown length.
  std::string text() const;
};

/// Every elementwise op but the conversions on that type; clamp with several bounds.
std::vector<ElementwiseCase> elementwise_cases(ElementType type);

/// Operands of equal length: every pattern for one operand of up to 16 bits; every pair for two of
/// up to 8; else boundaries with each other, and random patterns. Three: every condition with each
/// pair in turn. The count is odd, so that no vector width divides it.
std::vector<std::vector<uint64_t>> operands_of(const ElementwiseCase& row);

/// Patterns of a type where arithmetic goes wrong, few enough to pair each with each.
std::vector<uint64_t> edge_patterns(ElementType type);

}  // namespace castor::test
