// SPDX-License-Identifier: Apache-2.0
#include "ir/shape/look_up.hpp"

#include <fmt/format.h>

#include "ir/shape/byte_operands.hpp"

namespace castor {

namespace {

Error mistake(const std::string& detail) {
  return {ErrorCode::invalid_function, fmt::format("{}: {}", name_of(OpKind::look_up), detail)};
}

/// Whether an extent is known, and another one than expected.
bool differs(int64_t extent, int64_t expected) {
  return extent != expected && extent != Dim::unknown_extent && expected != Dim::unknown_extent;
}

Status check_axis(const AttributeValue& value, int rank) {
  const auto* axis = std::get_if<int64_t>(&value.value);
  if (axis == nullptr) {
    return mistake(
        fmt::format("axis = {} is {}, expected an integer", to_string(value), kind_name(value)));
  }
  if (*axis >= 0 && *axis < rank) return {};
  if (rank == 0) return mistake(fmt::format("found axis = {}, expected none: x has rank 0", *axis));
  return mistake(
      fmt::format("found axis = {}, expected 0 to {} as x has rank {}", *axis, rank - 1, rank));
}

Status check_rank(std::optional<int> axis, int rank) {
  const int expected = axis ? 2 : 1;
  if (rank == expected) return {};
  return mistake(
      fmt::format("the table has rank {}, expected {}", rank,
                  axis ? fmt::format("2: a row of entries for each index of axis {} of x", *axis)
                       : "1: without the attribute axis one table serves all elements"));
}

}  // namespace

std::optional<int> look_up_axis(const Operation& operation) {
  const AttributeValue* value = find(operation.attributes, "axis");
  const auto* axis = value == nullptr ? nullptr : std::get_if<int64_t>(&value->value);
  return axis == nullptr ? std::nullopt : std::optional(static_cast<int>(*axis));
}

Status check_look_up(const Operation& operation, ElementType codes, const Dims& x,
                     const Dims& table) {
  if (const AttributeValue* value = find(operation.attributes, "axis")) {
    if (Status status = check_axis(*value, x.rank()); !status) return status;
  }
  const std::optional<int> axis = look_up_axis(operation);
  if (Status status = check_rank(axis, table.rank()); !status) return status;
  if (axis && differs(table[0], x[*axis])) {
    return mistake(fmt::format("axis 0 of the table is {}, expected {} as axis {} of x", table[0],
                               x[*axis], *axis));
  }
  const int64_t found = table[table.rank() - 1];
  const int64_t entries = look_up_entries(codes);
  if (!differs(found, entries)) return {};
  return mistake(fmt::format("the table has {} entries, expected {} as codes of {} have {} bits",
                             found, entries, name_of(codes), bits_of(codes)));
}

Result<TensorType> look_up_type(const Operation& operation, const TensorType& x,
                                const TensorType& table) {
  Status status = check_look_up(operation, x.element, detail::known_extents(x.shape),
                                detail::known_extents(table.shape));
  if (!status) return status.error();
  return TensorType{table.element, x.shape};
}

}  // namespace castor
