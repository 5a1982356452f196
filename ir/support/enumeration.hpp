// SPDX-License-Identifier: Apache-2.0
// Numbers from outside that ought to be values of an enumeration.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string_view>

#include "ir/support/result.hpp"

namespace castor {

/// Refuses a number that is none of an enumeration's `count` values, which count from 0:
/// "overflow 9, expected 0 to 3" (invalid_argument).
template <class Enumeration>
Status check_enumeration(std::string_view name, Enumeration value, size_t count) {
  if (static_cast<size_t>(value) < count) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("{} {}, expected 0 to {}", name, static_cast<size_t>(value), count - 1)};
}

/// The value's name, or "unknown" of a number that is none, which no rule of the IR admits.
template <class Enumeration, size_t N>
std::string_view name_in(const std::array<std::string_view, N>& names, Enumeration value) {
  return static_cast<size_t>(value) < N ? names[static_cast<size_t>(value)] : "unknown";
}

}  // namespace castor
