// SPDX-License-Identifier: Apache-2.0
// Refusing arrays of a wrong length.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <string_view>

#include "ir/support/result.hpp"

namespace castor::detail {

/// Refuses a wrong number of shapes, strides or views.
inline Status check_count(std::string_view what, size_t found, size_t expected) {
  if (found == expected) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("{} {} given; the function has {}", found, what, expected)};
}

/// Whether an array has that many entries, and is not null unless it is empty.
template <class T>
bool is_array_of(size_t expected, std::span<T> given) {
  return given.size() == expected && (given.data() != nullptr || expected == 0);
}

/// Refuses an array that has not `expected` entries.
template <class T>
Status check_array(std::string_view what, std::span<T> given, size_t expected) {
  if (is_array_of(expected, given)) return {};
  if (Status status = check_count(what, given.size(), expected); !status) return status;
  return Error{ErrorCode::invalid_argument,
               fmt::format("no {} (null); the function has {}", what, expected)};
}

}  // namespace castor::detail
