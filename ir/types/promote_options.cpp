// SPDX-License-Identifier: Apache-2.0
// The options of `convert_promote_types`, from its attributes and back.
#include <fmt/format.h>

#include "ir/types/promote.hpp"

namespace castor {

namespace {

Error mistake(const std::string& detail) {
  return {ErrorCode::invalid_function, "convert_promote_types: " + detail};
}

Status read_flag(const Operation& operation, std::string_view name, bool& flag) {
  const AttributeValue* value = find(operation.attributes, name);
  if (!value) return {};
  const bool* found = std::get_if<bool>(&value->value);
  if (!found) {
    return mistake(fmt::format("{} = {} is {}, expected true or false", name, to_string(*value),
                               kind_name(*value)));
  }
  flag = *found;
  return {};
}

constexpr std::string_view target_name = "u64_integer_promotion_target";

Status read_target(const Operation& operation, ElementType& target) {
  const AttributeValue* value = find(operation.attributes, target_name);
  if (!value) return {};
  const auto* identifier = std::get_if<Identifier>(&value->value);
  const auto type = identifier ? element_type_named(identifier->name) : std::nullopt;
  if (!type) {
    return mistake(fmt::format("{} = {} is no element type, expected one such as f32", target_name,
                               to_string(*value)));
  }
  target = *type;
  return {};
}

}  // namespace

Result<PromoteOptions> promote_options(const Operation& operation) {
  PromoteOptions options;
  Status status = read_flag(operation, "promote_unsafe", options.promote_unsafe);
  if (status) {
    status = read_flag(operation, "pytorch_scalar_promotion", options.pytorch_scalar_promotion);
  }
  if (status) status = read_target(operation, options.u64_integer_promotion_target);
  if (!status) return status.error();
  return options;
}

Attributes attributes_of(const PromoteOptions& options) {
  Attributes attributes;
  if (options.promote_unsafe) attributes.push_back({"promote_unsafe", {true}});
  if (options.pytorch_scalar_promotion) {
    attributes.push_back({"pytorch_scalar_promotion", {true}});
  }
  const ElementType target = options.u64_integer_promotion_target;
  if (target != PromoteOptions{}.u64_integer_promotion_target) {
    attributes.push_back({std::string(target_name), {Identifier{std::string(name_of(target))}}});
  }
  return attributes;
}

}  // namespace castor
