// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/query/results.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <sstream>

namespace castor::prove {
namespace {

constexpr std::string_view letters = "peio";  // in the order of Status

constexpr std::string_view header =
    "# Results of castor prove --all: the hash of a query's canonical text, and p, e, i or o for\n"
    "# proved, exhausted, identity, open, as capitals where that took long. Written by castor "
    "prove\n"
    "# --write; do not edit.\n";

/// The status of a letter or its capital.
std::optional<size_t> index_of(char letter) {
  const size_t at = letters.find(static_cast<char>(letter | 0x20));
  return at == letters.npos ? std::nullopt : std::optional(at);
}

char letter_of(const Results::Entry& entry) {
  const char letter = letters[static_cast<size_t>(entry.status)];
  return entry.is_costly ? static_cast<char>(letter & ~0x20) : letter;
}

Error bad_line(size_t number, std::string_view line) {
  return {ErrorCode::invalid_text,
          fmt::format("line {}: found '{}', expected 16 hexadecimal digits, a blank, and p, e, i "
                      "or o",
                      number, line)};
}

}  // namespace

Result<Results> Results::parse(std::string_view text) {
  constexpr size_t digits = 16;
  Results results;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty() || line.front() == '#') continue;
    uint64_t hash = 0;
    const auto read = std::from_chars(line.data(), line.data() + line.size(), hash, 16);
    const bool is_entry = line.size() == digits + 2 && read.ptr == line.data() + digits &&
                          line[digits] == ' ' && index_of(line.back());
    if (!is_entry) return bad_line(number, line);
    const bool is_costly = line.back() != letters[*index_of(line.back())];
    results.set(hash, {static_cast<Status>(*index_of(line.back())), is_costly});
  }
  return results;
}

Result<Results> Results::read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error(ErrorCode::io, fmt::format("cannot read {}", path));
  std::ostringstream text;
  text << file.rdbuf();
  Result<Results> results = parse(text.str());
  if (results) return results;
  return Error(results.error().code, fmt::format("{}: {}", path, results.error().message));
}

std::string Results::text() const {
  std::string text(header);
  for (const auto& [hash, entry] : entries_) {
    text += fmt::format("{:016x} {}\n", hash, letter_of(entry));
  }
  return text;
}

castor::Status Results::write(const std::string& path) const {
  std::ofstream file(path, std::ios::binary);
  file << text();
  file.flush();
  if (file) return {};
  return Error(ErrorCode::io, fmt::format("cannot write {}", path));
}

std::optional<Results::Entry> Results::find(uint64_t hash) const {
  const auto found = entries_.find(hash);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

}  // namespace castor::prove
