// SPDX-License-Identifier: Apache-2.0
// Tables of `look_up`: their extents and the result's type; ir/README.md, Tables.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/function.hpp"
#include "ir/support/export.hpp"

namespace castor {

/// How many entries a table has for codes of that type: one for each bit pattern.
constexpr int64_t look_up_entries(ElementType codes) { return int64_t{1} << bits_of(codes); }

/// The axis of x each of whose indices has a table of its own; nothing where one table serves all.
CASTOR_API std::optional<int> look_up_axis(const Operation& operation);

/// Whether operand `operand` of the operation is a table.
constexpr bool is_table(const Operation& operation, size_t operand) {
  return operation.op == OpKind::look_up && operand == 1;
}

/// Whether the extents of x and of the table fit each other. The error names the axis, what was
/// found and what was expected. An extent may be Dim::unknown_extent, and is then not checked.
CASTOR_API Status check_look_up(const Operation& operation, ElementType codes, const Dims& x,
                                const Dims& table);

/// The result's type: the table's elements in x's shape.
CASTOR_API Result<TensorType> look_up_type(const Operation& operation, const TensorType& x,
                                           const TensorType& table);

}  // namespace castor
