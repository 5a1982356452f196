// SPDX-License-Identifier: Apache-2.0
// The printer.
#include <fmt/format.h>

#include "ir/text/constant.hpp"
#include "ir/text/text.hpp"

namespace castor {

namespace {

std::string value_text(const Function& function, ValueId id) {
  return id == no_value ? "none" : "%" + function.values[id].name;
}

/// The texts of some things, one by one, with commas between.
template <class Things, class ToText>
std::string comma_separated(const Things& things, const ToText& to_text) {
  std::string text;
  for (const auto& thing : things) {
    if (!text.empty()) text += ", ";
    text += to_text(thing);
  }
  return text;
}

std::string values_text(const Function& function, const std::vector<ValueId>& ids) {
  return comma_separated(ids, [&](ValueId id) { return value_text(function, id); });
}

/// " %a, %b"; optional operands that are absent at the end are not written.
std::string operands_text(const Function& function, const Operation& operation) {
  std::vector<ValueId> ids = operation.operands;
  for (int i = info(operation.op).optional_operands; i > 0 && ids.back() == no_value; --i) {
    ids.pop_back();
  }
  return ids.empty() ? "" : ' ' + values_text(function, ids);
}

/// " {key = value}", or nothing.
std::string attributes_text(const Attributes& attributes) {
  if (attributes.empty()) return "";
  return fmt::format(" {{{}}}", comma_separated(attributes, [](const Attribute& attribute) {
                       return fmt::format("{} = {}", attribute.name, to_string(attribute.value));
                     }));
}

std::string data_text(const ConstantData& data, const TensorType& type) {
  return data.binding.empty() ? text::literals_text(data.bytes, type) : "@" + data.binding;
}

/// " : f16", as the op's row requires it.
std::string suffix_text(const Operation& operation, const TensorType& type) {
  switch (info(operation.op).suffix) {
    case TypeSuffix::element: return fmt::format(" : {}", element_text(type));
    case TypeSuffix::shape:
      return fmt::format(" : {}", to_string(operation.target.value_or(type.shape)));
    case TypeSuffix::tensor: return fmt::format(" : {}", to_string(type));
    case TypeSuffix::optional_type: break;
  }
  return "";
}

}  // namespace

std::string print(const Function& function, const Operation& operation) {
  const OpInfo& row = info(operation.op);
  const TensorType& type = function.type_of(operation.results[0]);
  std::string text = fmt::format("{} = {}", values_text(function, operation.results), row.name);
  text += operands_text(function, operation);
  if (operation.data) text += ' ' + data_text(*operation.data, type);
  return text + attributes_text(operation.attributes) + suffix_text(operation, type);
}

std::string print(const Function& function) {
  const std::string parameters = comma_separated(function.parameters, [&](ValueId id) {
    return fmt::format("{}: {}", value_text(function, id), to_string(function.type_of(id)));
  });
  const std::string results = comma_separated(
      function.result_types, [](const TensorType& type) { return to_string(type); });
  std::string text = fmt::format("func @{}({}) -> ({})", function.name, parameters, results);
  if (!function.attributes.empty()) text += " attributes" + attributes_text(function.attributes);
  text += " {\n";
  for (const Operation& operation : function.operations) {
    text += "  " + print(function, operation) + '\n';
  }
  return text + "  return " + values_text(function, function.results) + "\n}\n";
}

}  // namespace castor
