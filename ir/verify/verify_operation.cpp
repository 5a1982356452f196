// SPDX-License-Identifier: Apache-2.0
// The rules of one operation: a table, one small function for each rule.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>

#include "ir/verify/infer.hpp"
#include "ir/verify/verify.hpp"
#include "ir/verify/verify_rules.hpp"

namespace castor::detail {

namespace {

MaybeFinding counts_are_the_rows(const Function&, const Operation& operation) {
  const OpInfo& row = info(operation.op);
  if (operation.operands.size() == static_cast<size_t>(row.operands) &&
      operation.results.size() == static_cast<size_t>(row.results)) {
    return {};
  }
  return Finding{fmt::format("found {} operands and {} results, expected {} and {}",
                             operation.operands.size(), operation.results.size(), row.operands,
                             row.results)};
}

MaybeFinding data_is_exact(const Function& function, const Operation& operation) {
  if (operation.op != OpKind::constant) {
    return operation.data ? MaybeFinding(Finding{"found data on an op without"}) : std::nullopt;
  }
  if (!operation.data) return Finding{"found no data"};
  const TensorType& type = function.type_of(operation.results[0]);
  if (!is_fixed(type.shape)) return Finding{fmt::format("found {}", to_string(type))};
  Dims extents;
  for (const Dim& dim : type.shape) extents.push_back(dim.extent);
  const int64_t bytes = *byte_size(type.element, *element_count(extents));
  if (operation.data->bytes.size() == static_cast<uint64_t>(bytes)) return {};
  return Finding{fmt::format("found {} bytes, expected {} for {}", operation.data->bytes.size(),
                             bytes, to_string(type))};
}

MaybeFinding target_is_valid(const Function& function, const Operation& operation) {
  const bool expected = info(operation.op).suffix == TypeSuffix::shape;
  if (operation.target.has_value() != expected) {
    return Finding{expected ? "found no target" : "found a target on an op without"};
  }
  if (!expected) return {};
  const ElementType element = function.type_of(operation.results[0]).element;
  const Status status = verify_type({element, *operation.target}, "the target");
  return status ? MaybeFinding() : finding(status.error());
}

MaybeFinding results_are_as_inferred(const Function& function, const Operation& operation) {
  std::vector<const TensorType*> operands;
  for (ValueId id : operation.operands) {
    operands.push_back(id == no_value ? nullptr : &function.type_of(id));
  }
  const TensorType& type = function.type_of(operation.results[0]);
  const auto inferred = infer_types(operation, operands,
                                    {.element = type.element,
                                     .shape = operation.target.value_or(type.shape),
                                     .quantization = type.quantization});
  if (!inferred) return finding(inferred.error());
  for (size_t i = 0; i < inferred->size(); ++i) {
    const ValueId id = operation.results[i];
    if (function.type_of(id) == (*inferred)[i]) continue;
    return Finding{fmt::format("{} is {}, expected {}", label(function, id),
                               to_string(function.type_of(id)), to_string((*inferred)[i]))};
  }
  return {};
}

const AttributeRule* rule_named(const OpInfo& row, std::string_view name) {
  for (const AttributeRule& rule : row.attributes) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

MaybeFinding attributes_are_known(const Function&, const Operation& operation) {
  const OpInfo& row = info(operation.op);
  for (const Attribute& attribute : operation.attributes) {
    if (rule_named(row, attribute.name)) continue;
    std::vector<std::string_view> names;
    for (const AttributeRule& rule : row.attributes) names.push_back(rule.name);
    return Finding{names.empty() ? fmt::format("found {}, expected none", attribute.name)
                                 : fmt::format("found {}, expected {}", attribute.name,
                                               fmt::join(names, ", "))};
  }
  return {};
}

MaybeFinding attributes_are_unique(const Function&, const Operation& operation) {
  for (const Attribute& attribute : operation.attributes) {
    if (find(operation.attributes, attribute.name) == &attribute.value) continue;
    return Finding{fmt::format("{} is given twice", attribute.name)};
  }
  return {};
}

/// What a kind of attribute takes, in the order of AttributeKind.
constexpr std::array<std::string_view, 7> kinds = {
    "an integer", "a float", "true or false", "an identifier", "a string", "a list", "a number"};

bool is_of_kind(const AttributeValue& value, AttributeKind kind) {
  if (kind != AttributeKind::number) return value.value.index() == static_cast<size_t>(kind);
  return std::holds_alternative<int64_t>(value.value) ||
         std::holds_alternative<double>(value.value);
}

MaybeFinding attributes_have_their_kind(const Function&, const Operation& operation) {
  for (const Attribute& attribute : operation.attributes) {
    const AttributeKind expected = rule_named(info(operation.op), attribute.name)->kind;
    if (is_of_kind(attribute.value, expected)) continue;
    return Finding{fmt::format("{} = {} is {}, expected {}", attribute.name,
                               to_string(attribute.value), kind_name(attribute.value),
                               kinds[static_cast<size_t>(expected)])};
  }
  return {};
}

MaybeFinding numbers_are_not_nan(const Function&, const Operation& operation) {
  for (const Attribute& attribute : operation.attributes) {
    if (rule_named(info(operation.op), attribute.name)->kind != AttributeKind::number) continue;
    const auto* number = std::get_if<double>(&attribute.value.value);
    if (!number || !std::isnan(*number)) continue;
    return Finding{fmt::format("{} = nan, expected a number, inf or -inf", attribute.name)};
  }
  return {};
}

MaybeFinding identifiers_are_choices(const Function&, const Operation& operation) {
  for (const Attribute& attribute : operation.attributes) {
    const AttributeRule& rule = *rule_named(info(operation.op), attribute.name);
    const auto* identifier = std::get_if<Identifier>(&attribute.value.value);
    if (!identifier || rule.choices.empty()) continue;
    if (std::ranges::find(rule.choices, identifier->name) != rule.choices.end()) continue;
    return Finding{fmt::format("{} = {}, expected {}", attribute.name, identifier->name,
                               fmt::join(rule.choices, ", "))};
  }
  return {};
}

MaybeFinding required_attributes_are_there(const Function&, const Operation& operation) {
  for (const AttributeRule& rule : info(operation.op).attributes) {
    if (!rule.required || find(operation.attributes, rule.name)) continue;
    return Finding{fmt::format("{} is missing", rule.name)};
  }
  return {};
}

MaybeFinding convert_options_apply(const Function& function, const Operation& operation) {
  if (operation.op != OpKind::convert) return {};
  const Status status = check_convert_options(function.type_of(operation.operands[0]).element,
                                              function.type_of(operation.results[0]).element,
                                              convert_options(operation));
  return status ? MaybeFinding() : finding(status.error());
}

constexpr OperationRule rules[] = {
    {"an op has the operands and results of its row", counts_are_the_rows},
    {"a constant, and nothing else, has data of its fixed type's size", data_is_exact},
    {"attributes are those of the op's row", attributes_are_known},
    {"attributes are given once", attributes_are_unique},
    {"attributes have the kind that the row says", attributes_have_their_kind},
    {"identifiers are among the row's choices", identifiers_are_choices},
    {"numbers are not NaN", numbers_are_not_nan},
    {"required attributes are given", required_attributes_are_there},
    {"broadcast and reshape, and nothing else, have a target shape", target_is_valid},
    {"results have the types that follow from the operands", results_are_as_inferred},
    {"options are in the row of the conversion table", convert_options_apply},
};

}  // namespace

std::span<const OperationRule> operation_rules() { return rules; }

std::string label(const Function& function, ValueId id) {
  return id == no_value ? "none" : "%" + function.values[id].name;
}

Finding finding(const Error& error) {
  return {.detail = error.message, .operation = nullptr, .code = error.code};
}

}  // namespace castor::detail
