// SPDX-License-Identifier: Apache-2.0
// Attribute values as the text form writes them, and attribute lists of operations.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/support/export.hpp"

namespace castor {

/// An identifier, such as `saturate`; told apart from a quoted string.
struct Identifier {
  std::string name;
  friend bool operator==(const Identifier&, const Identifier&) = default;
};

/// integer | float | true, false | identifier | "string" | [list]
struct AttributeValue {
  using List = std::vector<AttributeValue>;
  std::variant<int64_t, double, bool, Identifier, std::string, List> value;

  /// Equal kind and equal value; floats by bit pattern, so that NaN equals itself.
  CASTOR_API friend bool operator==(const AttributeValue& a, const AttributeValue& b);
};

/// As the text form writes it: `3`, `0.5`, `true`, `saturate`, `"text"`, `[1, 2]`. Floats always
/// show a point, an exponent, `inf` or `nan`, and read back to the same bits.
CASTOR_API std::string to_string(const AttributeValue& value);

/// What kind of value it is: "an integer", "a float", "true or false", "an identifier", "a string"
/// or "a list".
CASTOR_API std::string_view kind_name(const AttributeValue& value);

struct Attribute {
  std::string name;
  AttributeValue value;
  friend bool operator==(const Attribute&, const Attribute&) = default;
};

/// In the order written; names are unique (checked by the verifier).
using Attributes = std::vector<Attribute>;

/// The attribute of that name, or null.
CASTOR_API const AttributeValue* find(const Attributes& attributes, std::string_view name);
/// The attribute of that name, which is a number, to the nearest f64; or nothing.
CASTOR_API std::optional<double> find_number(const Attributes& attributes, std::string_view name);

}  // namespace castor
