// SPDX-License-Identifier: Apache-2.0
// The names that a text defines, and where.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "ir/text/cursor.hpp"

namespace castor::text {

/// Names in the order of their definition, each with its number in that order. A tree: its time
/// does not depend on chosen hash collisions.
class Names {
 public:
  std::optional<uint32_t> find(std::string_view name) const {
    const auto at = entries_.find(name);
    if (at == entries_.end()) return std::nullopt;
    return at->second.number;
  }
  /// Adds the token's name; a name that is there already fails.
  void add(Cursor& cursor, const Token& token) {
    const auto number = static_cast<uint32_t>(entries_.size());
    const auto [at, fresh] = entries_.try_emplace(token.name(), Entry{number, token.where});
    if (fresh) return;
    const TextPosition first = at->second.where;
    cursor.fail(token.where, fmt::format("{} is defined twice, first at line {}, column {}",
                                         printable(token.text), first.line, first.column));
  }

 private:
  struct Entry {
    uint32_t number;
    TextPosition where;
  };
  std::map<std::string_view, Entry> entries_;
};

}  // namespace castor::text
