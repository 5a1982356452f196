// SPDX-License-Identifier: Apache-2.0
#include "ir/composition/granularity.hpp"

#include <fmt/format.h>

#include "ir/composition/steps.hpp"

namespace castor {

namespace {

/// The numbers of a list, which the verifier has not looked into.
Result<std::vector<int64_t>> integers(const CompositionCall& call, std::string_view name) {
  std::vector<int64_t> numbers;
  const AttributeValue* value = find(call.operation.attributes, name);
  const auto* list = value ? std::get_if<AttributeValue::List>(&value->value) : nullptr;
  if (list == nullptr) return numbers;
  for (const AttributeValue& item : *list) {
    const auto* integer = std::get_if<int64_t>(&item.value);
    if (!integer) {
      return call.mistake(
          fmt::format("{} = {}, expected a list of integers", name, to_string(*value)));
    }
    numbers.push_back(*integer);
  }
  return numbers;
}

bool is_written(const CompositionCall& call, std::string_view name) {
  return find(call.operation.attributes, name) != nullptr;
}

/// The axis that `axis` names, where 1 is the default; from the back if it is negative. A vector
/// has one axis alone.
Result<int64_t> axis_of(const CompositionCall& call) {
  const int rank = call.rank_of(0);
  if (rank == 0) {
    return call.mistake(
        fmt::format("operand 0 is {}, expected rank 1 or more", to_string(call.type_of(0))));
  }
  if (rank == 1 && !is_written(call, "axis")) return int64_t{0};
  const int64_t axis = call.integer("axis", 1);
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  return call.mistake(fmt::format("axis = {}, expected {} to {} for {}", axis, -rank, rank - 1,
                                  to_string(call.type_of(0))));
}

std::string_view name_of_parameter(size_t operand) { return operand == 1 ? "scale" : "zero point"; }

Result<BroadcastRule> in_blocks(const CompositionCall& call, size_t operand) {
  BroadcastRule rule{.mode = BroadcastMode::blocked};
  if (call.rank_of(operand) != call.rank_of(0)) {
    return call.mistake(fmt::format("{} {} for blocks of {}, expected its rank",
                                    name_of_parameter(operand), to_string(call.type_of(operand)),
                                    to_string(call.type_of(0))));
  }
  if (is_written(call, "block_size")) {
    const Result<int64_t> axis = axis_of(call);
    if (!axis) return axis.error();
    const int64_t size = call.integer("block_size", 0);
    if (size < 1) return call.mistake(fmt::format("block_size = {}, expected 1 or more", size));
    rule.axes = {*axis};
    rule.block = {size};
    return rule;
  }
  auto axes = integers(call, "axes");
  if (!axes) return axes.error();
  auto block = integers(call, "block");
  if (!block) return block.error();
  rule.axes = std::move(axes).value();
  rule.block = std::move(block).value();
  return rule;
}

/// One way to say blocks, and one alone.
Status check_attributes(const CompositionCall& call) {
  const bool has_lists = is_written(call, "axes") || is_written(call, "block");
  if (has_lists && is_written(call, "axes") != is_written(call, "block")) {
    return call.mistake("found one of axes and block, expected both or none");
  }
  if (has_lists && (is_written(call, "axis") || is_written(call, "block_size"))) {
    return call.mistake("found axes and block with axis or block_size, expected either pair alone");
  }
  return {};
}

/// The zero point's shape must be the scale's; what of it is unknown is checked when extents are
/// bound.
Status check_zero_point(const CompositionCall& call) {
  if (!call.has(2)) return {};
  const Shape& scale = call.type_of(1).shape;
  const Shape& zero_point = call.type_of(2).shape;
  bool fits = scale.size() == zero_point.size();
  for (size_t axis = 0; fits && axis < scale.size(); ++axis) {
    const bool are_known = scale[axis].is_fixed() && zero_point[axis].is_fixed();
    fits = !are_known || scale[axis].extent == zero_point[axis].extent;
  }
  if (fits || (may_be_single(scale) && may_be_single(zero_point))) return {};
  return call.mistake(fmt::format("zero point {} with scale {}, expected equal shapes",
                                  to_string(zero_point), to_string(scale)));
}

}  // namespace

Status check_granularity(const CompositionCall& call) {
  if (Status status = check_attributes(call); !status) return status;
  return check_zero_point(call);
}

Result<BroadcastRule> granularity_of(const CompositionCall& call, size_t operand) {
  if (is_written(call, "block_size") || is_written(call, "axes")) return in_blocks(call, operand);
  const int rank = call.rank_of(0);
  const int own_rank = call.rank_of(operand);
  const Shape& own = call.type_of(operand).shape;
  const bool has_one_entry = own_rank == 1 && own[0] == Dim(1);
  if (own_rank == 0 || (has_one_entry && rank == 0)) return BroadcastRule{};
  if (has_one_entry) {  // whatever axis is
    return BroadcastRule{.mode = BroadcastMode::pdpd, .axis = rank - 1};
  }
  if (own_rank == 1 && rank > 0) {
    const Result<int64_t> axis = axis_of(call);
    if (!axis) return axis.error();
    return BroadcastRule{.mode = BroadcastMode::pdpd, .axis = *axis};
  }
  if (own_rank == rank) return BroadcastRule{.mode = BroadcastMode::pdpd, .axis = 0};
  return call.mistake(fmt::format(
      "{} {} for {}, expected a scalar, one entry per index of an axis, or a tensor of its rank",
      name_of_parameter(operand), to_string(call.type_of(operand)), to_string(call.type_of(0))));
}

ValueId parameter_of(const CompositionCall& call, size_t operand) {
  const ValueId value = call.operands[operand];
  const bool is_reshaped = call.has(operand) && call.rank_of(0) == 0 && call.rank_of(operand) == 1;
  return is_reshaped ? call.builder.reshape(value, {}) : value;
}

}  // namespace castor
