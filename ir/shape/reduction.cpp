// SPDX-License-Identifier: Apache-2.0
#include "ir/shape/reduction.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace castor {

namespace {

Error mistake(OpKind op, const std::string& detail) {
  return {ErrorCode::invalid_function, fmt::format("{}: {}", name_of(op), detail)};
}

Error wrong_kind(OpKind op, std::string_view name, const AttributeValue& value,
                 std::string_view expected) {
  return mistake(op, fmt::format("{} = {} is {}, expected {}", name, to_string(value),
                                 kind_name(value), expected));
}

Result<std::vector<int64_t>> read_axes(OpKind op, const AttributeValue& value) {
  const auto* list = std::get_if<AttributeValue::List>(&value.value);
  if (!list) return wrong_kind(op, "axes", value, "a list of integers");
  std::vector<int64_t> axes;
  for (const AttributeValue& item : *list) {
    const auto* integer = std::get_if<int64_t>(&item.value);
    if (!integer) return wrong_kind(op, "axes", value, "a list of integers");
    axes.push_back(*integer);
  }
  return axes;
}

Result<ElementType> read_accumulator(OpKind op, const AttributeValue& value) {
  const auto* identifier = std::get_if<Identifier>(&value.value);
  if (!identifier) return wrong_kind(op, "accumulator", value, "i32 or i64");
  if (identifier->name == "i32") return ElementType::i32;
  if (identifier->name == "i64") return ElementType::i64;
  return mistake(op, fmt::format("found accumulator = {}, expected i32 or i64", identifier->name));
}

/// An axis counted from the beginning.
int64_t from_front(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

/// Axes are the operand's, each at most once.
Status check_axes(OpKind op, const std::vector<int64_t>& axes, int rank) {
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (const int64_t axis : axes) {
    if (rank == 0) {
      return mistake(op,
                     fmt::format("found axis {}, expected none for an operand of rank 0", axis));
    }
    if (axis < -rank || axis >= rank) {
      return mistake(op, fmt::format("found axis {}, expected {} to {} for an operand of rank {}",
                                     axis, -rank, rank - 1, rank));
    }
    const auto at = static_cast<size_t>(from_front(axis, rank));
    if (seen[at]) return mistake(op, fmt::format("axis {} is given twice", at));
    seen[at] = true;
  }
  return {};
}

Status check_accumulator(OpKind op, ElementType accumulator, ElementType operand) {
  if (!is_integer(operand)) {
    return mistake(op, fmt::format("found accumulator = {} for {}, expected it for integers only",
                                   name_of(accumulator), name_of(operand)));
  }
  if (bits_of(accumulator) >= bits_of(operand)) return {};
  return mistake(op, fmt::format("found accumulator = {} for {}, expected at least {} bits",
                                 name_of(accumulator), name_of(operand), bits_of(operand)));
}

std::vector<bool> reduced_axes(const ReductionOptions& options, int rank) {
  std::vector<bool> reduced(static_cast<size_t>(rank), !options.axes);
  if (!options.axes) return reduced;
  for (const int64_t axis : *options.axes) {
    reduced[static_cast<size_t>(from_front(axis, rank))] = true;
  }
  return reduced;
}

}  // namespace

Result<ReductionOptions> reduction_options(const Operation& operation) {
  ReductionOptions options;
  if (const AttributeValue* axes = find(operation.attributes, "axes")) {
    Result<std::vector<int64_t>> read = read_axes(operation.op, *axes);
    if (!read) return read.error();
    options.axes = std::move(read).value();
  }
  if (const AttributeValue* keep = find(operation.attributes, "keep_dims")) {
    const auto* flag = std::get_if<bool>(&keep->value);
    if (!flag) return wrong_kind(operation.op, "keep_dims", *keep, "true or false");
    options.keep_dims = *flag;
  }
  if (const AttributeValue* accumulator = find(operation.attributes, "accumulator")) {
    const Result<ElementType> type = read_accumulator(operation.op, *accumulator);
    if (!type) return type.error();
    options.accumulator = *type;
  }
  return options;
}

Attributes attributes_of(const ReductionOptions& options) {
  Attributes attributes;
  if (options.axes) {
    AttributeValue::List axes;
    for (const int64_t axis : *options.axes) axes.push_back({axis});
    attributes.push_back({"axes", {std::move(axes)}});
  }
  if (options.keep_dims) attributes.push_back({"keep_dims", {true}});
  if (options.accumulator) {
    attributes.push_back({"accumulator", {Identifier{std::string(name_of(*options.accumulator))}}});
  }
  return attributes;
}

std::vector<bool> reduced_axes(const Operation& operation, int rank) {
  return reduced_axes(reduction_options(operation).value(), rank);
}

Result<TensorType> reduction_type(const Operation& operation, const TensorType& operand) {
  const Result<ReductionOptions> options = reduction_options(operation);
  if (!options) return options.error();
  const auto rank = static_cast<int>(operand.shape.size());
  if (options->axes) {
    if (Status status = check_axes(operation.op, *options->axes, rank); !status) {
      return status.error();
    }
  }
  TensorType result{operand.element, {}};
  if (options->accumulator) {
    Status status = check_accumulator(operation.op, *options->accumulator, operand.element);
    if (!status) return status.error();
    result.element = *options->accumulator;
  }
  const std::vector<bool> reduced = reduced_axes(*options, rank);
  for (size_t axis = 0; axis < reduced.size(); ++axis) {
    if (!reduced[axis]) result.shape.push_back(operand.shape[axis]);
    if (reduced[axis] && options->keep_dims) result.shape.emplace_back(1);
  }
  return result;
}

Dims reduced_extents(const Operation& operation, const Dims& operand) {
  const ReductionOptions options = reduction_options(operation).value();
  const std::vector<bool> reduced = reduced_axes(options, operand.rank());
  Dims extents;
  for (int axis = 0; axis < operand.rank(); ++axis) {
    if (!reduced[static_cast<size_t>(axis)]) extents.push_back(operand[axis]);
    if (reduced[static_cast<size_t>(axis)] && options.keep_dims) extents.push_back(1);
  }
  return extents;
}

}  // namespace castor
