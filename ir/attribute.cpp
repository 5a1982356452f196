// SPDX-License-Identifier: Apache-2.0
#include "ir/attribute.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>

namespace castor {

bool operator==(const AttributeValue& a, const AttributeValue& b) {
  const auto* x = std::get_if<double>(&a.value);
  const auto* y = std::get_if<double>(&b.value);
  if (x && y) return std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(*y);
  return a.value == b.value;
}

namespace {

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  std::string text = fmt::format("{}", value);  // shortest text that reads back to the same bits
  const bool looks_like_integer = text.find_first_of(".enif") == std::string::npos;
  return looks_like_integer ? text + ".0" : text;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

struct ToText {
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return float_text(value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const Identifier& value) const { return value.name; }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(const AttributeValue::List& list) const {
    std::string text = "[";
    for (const AttributeValue& item : list) {
      if (text.size() > 1) text += ", ";
      text += to_string(item);
    }
    return text + "]";
  }
};

}  // namespace

std::string to_string(const AttributeValue& value) { return std::visit(ToText{}, value.value); }

std::string_view kind_name(const AttributeValue& value) {
  constexpr std::string_view kinds[] = {"an integer",    "a float",  "true or false",
                                        "an identifier", "a string", "a list"};
  return kinds[value.value.index()];
}

const AttributeValue* find(const Attributes& attributes, std::string_view name) {
  for (const Attribute& attribute : attributes) {
    if (attribute.name == name) return &attribute.value;
  }
  return nullptr;
}

std::optional<double> find_number(const Attributes& attributes, std::string_view name) {
  const AttributeValue* attribute = find(attributes, name);
  if (attribute == nullptr) return std::nullopt;
  const auto* integer = std::get_if<int64_t>(&attribute->value);
  return integer ? static_cast<double>(*integer) : std::get<double>(attribute->value);
}

}  // namespace castor
