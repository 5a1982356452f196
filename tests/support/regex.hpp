// SPDX-License-Identifier: Apache-2.0
// POSIX extended regular expressions. (Sanitizers make GCC 12 warn about the inside of <regex>.)
#pragma once

#include <regex.h>

#include <stdexcept>
#include <string>

namespace castor::test {

/// The first match of the pattern in the text: its whole (group 0), or a group of it; empty where
/// nothing matches.
inline std::string find_match(const std::string& text, const std::string& pattern,
                              size_t group = 0) {
  ::regex_t compiled;
  if (::regcomp(&compiled, pattern.c_str(), REG_EXTENDED) != 0) {
    throw std::invalid_argument("not a regular expression: " + pattern);
  }
  ::regmatch_t groups[4] = {};
  const bool found = ::regexec(&compiled, text.c_str(), 4, groups, 0) == 0;
  ::regfree(&compiled);
  if (!found || groups[group].rm_so < 0) return "";
  const auto begin = static_cast<size_t>(groups[group].rm_so);
  return text.substr(begin, static_cast<size_t>(groups[group].rm_eo) - begin);
}

inline bool has_match(const std::string& text, const std::string& pattern) {
  return !find_match(text, pattern).empty();
}

}  // namespace castor::test
