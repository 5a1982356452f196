// SPDX-License-Identifier: Apache-2.0
// Which broadcast rule the attributes of an operation say, and the axes that it pairs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "ir/shape/broadcast.hpp"
#include "ir/shape/look_up.hpp"
#include "ir/support/enumeration.hpp"

namespace castor {

namespace {

/// In the order of BroadcastMode.
constexpr std::array<std::string_view, 6> mode_names = {"numpy",         "none",     "pdpd",
                                                        "bidirectional", "explicit", "blocked"};

std::string_view mode_attribute(OpKind op) {
  return op == OpKind::broadcast ? "mode" : "broadcast";
}

Error mistake(OpKind op, const std::string& detail) {
  return {ErrorCode::invalid_function, fmt::format("{}: {}", name_of(op), detail)};
}

Error wrong_kind(OpKind op, std::string_view name, const AttributeValue& value,
                 std::string_view expected) {
  return mistake(op, fmt::format("{} = {} is {}, expected {}", name, to_string(value),
                                 kind_name(value), expected));
}

Status read_mode(OpKind op, std::string_view name, const AttributeValue& value,
                 BroadcastMode& mode) {
  const auto* identifier = std::get_if<Identifier>(&value.value);
  if (!identifier) return wrong_kind(op, name, value, "an identifier");
  const auto choices = std::ranges::find(info(op).attributes, name, &AttributeRule::name)->choices;
  if (std::ranges::find(choices, identifier->name) == choices.end()) {
    return mistake(op, fmt::format("found {} = {}, expected {}", name, identifier->name,
                                   fmt::join(choices, ", ")));
  }
  mode = static_cast<BroadcastMode>(std::ranges::find(mode_names, identifier->name) -
                                    mode_names.begin());
  return {};
}

Status read_axis(OpKind op, const AttributeValue& value, int64_t& axis) {
  const auto* integer = std::get_if<int64_t>(&value.value);
  if (!integer) return wrong_kind(op, "axis", value, "an integer");
  axis = *integer;
  return {};
}

Status read_list(OpKind op, std::string_view name, const AttributeValue& value,
                 std::vector<int64_t>& numbers) {
  const auto* list = std::get_if<AttributeValue::List>(&value.value);
  if (!list) return wrong_kind(op, name, value, "a list of integers");
  for (const AttributeValue& item : *list) {
    const auto* integer = std::get_if<int64_t>(&item.value);
    if (!integer) return wrong_kind(op, name, value, "a list of integers");
    numbers.push_back(*integer);
  }
  return {};
}

/// Which of the attributes beside the mode are given.
struct Given {
  bool axis;
  bool axes;
  bool block;
};

/// `axis` goes with pdpd alone, `axes` with explicit and blocked, which need it, `block` with
/// blocked, which needs it.
Status check_together(OpKind op, std::string_view name, BroadcastMode mode, const Given& given) {
  const std::string_view found = mode_names[static_cast<size_t>(mode)];
  const bool is_blocked = mode == BroadcastMode::blocked;
  const bool takes_axes = is_blocked || mode == BroadcastMode::explicitly;
  const auto misplaced = [&](std::string_view attribute, std::string_view modes) {
    return mistake(op, fmt::format("found {0} with {1} = {2}, expected it with {1} = {3} only",
                                   attribute, name, found, modes));
  };
  if (given.axis && mode != BroadcastMode::pdpd) return misplaced("axis", "pdpd");
  if (given.axes && !takes_axes) {
    return misplaced("axes", op == OpKind::broadcast ? "explicit or blocked" : "blocked");
  }
  if (given.block && !is_blocked) return misplaced("block", "blocked");
  if (!given.axes && takes_axes) {
    return mistake(op, fmt::format("found {} = {} without axes, expected a list of the {}", name,
                                   found, is_blocked ? "axes with blocks" : "target's axes"));
  }
  if (!given.block && is_blocked) {
    return mistake(op, fmt::format("found {} = blocked without block, expected a list of the "
                                   "elements that blocks have along axes",
                                   name));
  }
  return {};
}

/// The axis that each index of has a table, where there is one, then the entries.
Dims table_axes(const Operation& operation) {
  Dims axes;
  if (const std::optional<int> axis = look_up_axis(operation)) axes.push_back(*axis);
  axes.push_back(-1);
  return axes;
}

}  // namespace

Result<BroadcastRule> broadcast_rule(const Operation& operation) {
  const OpKind op = operation.op;
  const std::string_view name = mode_attribute(op);
  const AttributeValue* mode = find(operation.attributes, name);
  const AttributeValue* axis = find(operation.attributes, "axis");
  const AttributeValue* axes = find(operation.attributes, "axes");
  const AttributeValue* block = find(operation.attributes, "block");
  BroadcastRule rule;
  Status status;
  if (mode) status = read_mode(op, name, *mode, rule.mode);
  if (status && axis) status = read_axis(op, *axis, rule.axis);
  if (status && axes) status = read_list(op, "axes", *axes, rule.axes);
  if (status && block) status = read_list(op, "block", *block, rule.block);
  const Given given = {axis != nullptr, axes != nullptr, block != nullptr};
  if (status) status = check_together(op, name, rule.mode, given);
  if (!status) return status.error();
  return rule;
}

Attributes attributes_of(OpKind op, const BroadcastRule& rule) {
  const auto list_of = [](const std::vector<int64_t>& numbers) {
    AttributeValue::List list;
    for (int64_t number : numbers) list.push_back({number});
    return AttributeValue{std::move(list)};
  };
  const bool is_blocked = rule.mode == BroadcastMode::blocked;
  Attributes attributes;
  if (rule.mode != BroadcastMode::numpy) {
    const std::string mode(name_in(mode_names, rule.mode));
    attributes.push_back({std::string(mode_attribute(op)), {Identifier{mode}}});
  }
  if (rule.axis != -1) attributes.push_back({"axis", {rule.axis}});
  if (is_blocked || rule.mode == BroadcastMode::explicitly) {
    attributes.push_back({"axes", list_of(rule.axes)});
  }
  if (is_blocked) attributes.push_back({"block", list_of(rule.block)});
  return attributes;
}

Dims axes_along_result(const Operation& operation, size_t operand, int operand_rank,
                       int result_rank) {
  if (is_table(operation, operand)) return table_axes(operation);
  const Result<BroadcastRule> rule =
      operation.op == OpKind::look_up ? BroadcastRule() : broadcast_rule(operation);
  const BroadcastMode mode = rule ? rule->mode : BroadcastMode::numpy;
  const bool is_pdpd_b =
      mode == BroadcastMode::pdpd && (operation.op == OpKind::broadcast || operand == 1);
  const int64_t right_aligned = result_rank - operand_rank;
  const int64_t start = is_pdpd_b && rule->axis != -1 ? rule->axis : right_aligned;
  Dims axes;
  for (int i = 0; i < operand_rank; ++i) {
    const int64_t axis =
        mode == BroadcastMode::explicitly ? rule->axes[static_cast<size_t>(i)] : start + i;
    axes.push_back(axis < result_rank ? axis : -1);
  }
  return axes;
}

Dims blocks_along_result(const Operation& operation, size_t operand, int operand_rank,
                         int result_rank) {
  Dims blocks = Dims::filled(operand_rank, 1);
  const bool may_be_blocked = operation.op == OpKind::broadcast || operand == 1;
  if (!may_be_blocked || find(operation.attributes, "block") == nullptr) return blocks;
  const Result<BroadcastRule> rule = broadcast_rule(operation);
  if (!rule) return blocks;
  for (size_t i = 0; i < rule->axes.size(); ++i) {
    blocks[static_cast<int>(rule->axes[i]) - (result_rank - operand_rank)] = rule->block[i];
  }
  return blocks;
}

}  // namespace castor
