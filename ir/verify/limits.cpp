// SPDX-License-Identifier: Apache-2.0
#include "ir/verify/limits.hpp"

#include <fmt/format.h>

#include "ir/verify/name_bytes.hpp"

namespace castor {

Error limit_exceeded(std::string_view subject, size_t found, std::string_view what, size_t limit) {
  constexpr size_t longest =
      100;  // characters of a name that are quoted: the name may be what is too long
  const bool is_cut = subject.size() > longest;
  return {ErrorCode::limit_exceeded,
          fmt::format("{}{}{}found {} {}, expected at most {}", subject.substr(0, longest),
                      is_cut ? "..." : "", subject.empty() ? "" : ": ", found, what, limit)};
}

size_t counted_name_bytes(const Function& function) {
  size_t bytes = function.name.size();
  for (const Value& value : function.values) {
    bytes += name_bytes_of(value.name, value.type);
  }
  return bytes;
}

Status check_limits(const Function& function, const CompileLimits& limits) {
  const struct {
    std::string_view what;
    size_t found;
    size_t limit;
  } rows[] = {
      {"operations", function.operations.size(), limits.operations},
      {"values", function.values.size(), limits.values},
      {"bytes of names", function.name_bytes, limits.name_bytes},
  };
  for (const auto& [what, found, limit] : rows) {
    if (found > limit) return limit_exceeded("@" + function.name, found, what, limit);
  }
  return {};
}

}  // namespace castor
