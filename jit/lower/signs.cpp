// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/signs.hpp"

#include <cmath>
#include <optional>

namespace castor::jit {

namespace {

/// Whether a bound of `clamp` has its sign bit set; nothing where there is no such bound. A bound
/// keeps its sign when it is rounded to the type that is clamped.
std::optional<bool> is_negative(const Operation& clamp, std::string_view name) {
  const AttributeValue* attribute = find(clamp.attributes, name);
  if (attribute == nullptr) return std::nullopt;
  if (const auto* integer = std::get_if<int64_t>(&attribute->value)) return *integer < 0;
  return std::signbit(std::get<double>(attribute->value));
}

}  // namespace

Signs signs_of(const Operation& operation) {
  switch (operation.op) {
    case OpKind::relu:
    case OpKind::abs: return Signs::clear;
    case OpKind::clamp: {
      const bool is_clear = !is_negative(operation, "lo").value_or(true) &&
                            !is_negative(operation, "hi").value_or(false);
      return is_clear ? Signs::clear : Signs::any;
    }
    default: return Signs::any;
  }
}

}  // namespace castor::jit
