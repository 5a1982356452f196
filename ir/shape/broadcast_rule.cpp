// SPDX-License-Identifier: Apache-2.0
// Which broadcast rule the attributes of an operation say, and the axes that it pairs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "ir/shape/broadcast.hpp"
#include "ir/support/enumeration.hpp"

namespace castor {

namespace {

/// In the order of BroadcastMode.
constexpr std::array<std::string_view, 5> mode_names = {"numpy", "none", "pdpd", "bidirectional",
                                                        "explicit"};

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

Status read_axes(OpKind op, const AttributeValue& value, std::vector<int64_t>& axes) {
  const auto* list = std::get_if<AttributeValue::List>(&value.value);
  if (!list) return wrong_kind(op, "axes", value, "a list of integers");
  for (const AttributeValue& item : *list) {
    const auto* integer = std::get_if<int64_t>(&item.value);
    if (!integer) return wrong_kind(op, "axes", value, "a list of integers");
    axes.push_back(*integer);
  }
  return {};
}

/// `axis` goes with pdpd alone, `axes` with explicit, which needs it.
Status check_together(OpKind op, std::string_view name, BroadcastMode mode, bool has_axis,
                      bool has_axes) {
  const std::string_view found = mode_names[static_cast<size_t>(mode)];
  if (has_axis && mode != BroadcastMode::pdpd) {
    return mistake(op, fmt::format("found axis with {0} = {1}, expected it with {0} = pdpd only",
                                   name, found));
  }
  if (has_axes && mode != BroadcastMode::explicitly) {
    return mistake(
        op, fmt::format("found axes with {0} = {1}, expected it with {0} = explicit only", name,
                        found));
  }
  if (!has_axes && mode == BroadcastMode::explicitly) {
    return mistake(op, "found mode = explicit without axes, expected a list of the target's axes");
  }
  return {};
}

}  // namespace

Result<BroadcastRule> broadcast_rule(const Operation& operation) {
  const OpKind op = operation.op;
  const std::string_view name = mode_attribute(op);
  const AttributeValue* mode = find(operation.attributes, name);
  const AttributeValue* axis = find(operation.attributes, "axis");
  const AttributeValue* axes = find(operation.attributes, "axes");
  BroadcastRule rule;
  Status status;
  if (mode) status = read_mode(op, name, *mode, rule.mode);
  if (status && axis) status = read_axis(op, *axis, rule.axis);
  if (status && axes) status = read_axes(op, *axes, rule.axes);
  if (status) status = check_together(op, name, rule.mode, axis != nullptr, axes != nullptr);
  if (!status) return status.error();
  return rule;
}

Attributes attributes_of(OpKind op, const BroadcastRule& rule) {
  Attributes attributes;
  if (rule.mode != BroadcastMode::numpy) {
    const std::string mode(name_in(mode_names, rule.mode));
    attributes.push_back({std::string(mode_attribute(op)), {Identifier{mode}}});
  }
  if (rule.axis != -1) attributes.push_back({"axis", {rule.axis}});
  if (rule.mode == BroadcastMode::explicitly) {
    AttributeValue::List axes;
    for (int64_t axis : rule.axes) axes.push_back({axis});
    attributes.push_back({"axes", {std::move(axes)}});
  }
  return attributes;
}

Dims axes_along_result(const Operation& operation, size_t operand, int operand_rank,
                       int result_rank) {
  const Result<BroadcastRule> rule = broadcast_rule(operation);
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

}  // namespace castor
