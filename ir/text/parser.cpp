// SPDX-License-Identifier: Apache-2.0
// The parser: the functions of a text.
#include <fmt/format.h>

#include <algorithm>

#include "ir/support/guarded.hpp"
#include "ir/text/cursor.hpp"
#include "ir/text/names.hpp"
#include "ir/text/read_function.hpp"
#include "ir/text/text.hpp"

namespace castor {

namespace {

/// Bytes after which a list of function names in a message is cut.
constexpr size_t longest_list = 100;

/// What a text holds.
struct Text {
  std::vector<std::string_view> names;  ///< names of all functions
  std::vector<FunctionPtr> functions;   ///< those that were asked for
};

/// Whether a function begins here: nowhere else a symbol and a parenthesis follow the word.
bool at_function(const text::Cursor& cursor) {
  if (!cursor.peek().is("func")) return false;
  text::Cursor next = cursor;
  next.take();
  if (!next.at(text::TokenKind::symbol)) return false;
  next.take();
  return next.peek().is('(');
}

/// Passes over everything before the next function.
void skip_to_function(text::Cursor& cursor) {
  while (!cursor.at_end() && !at_function(cursor)) cursor.take();
}

/// Reads every function, or those of one name alone where `only` is not empty: then the others may
/// have any mistake.
Result<Text> read_text(std::string_view source, const ParseOptions& options,
                       std::string_view only) {
  const size_t limit = std::min(options.limits.text_bytes, max_text_bytes);
  if (source.size() > limit) {
    Error error = limit_exceeded({}, source.size(), "bytes of text", limit);
    error.where = {1, 1};
    return error;
  }
  text::Cursor cursor(source);
  text::Names names;
  Text read;
  do {
    if (!cursor.accept("func")) {
      cursor.fail_found(read.names.empty() ? "'func'" : "'func' or the end of the text");
    }
    const text::Token name = cursor.expect(text::TokenKind::symbol, "a name such as @f");
    read.names.push_back(name.name());
    if (cursor.ok() && !only.empty() && name.name() != only) {
      skip_to_function(cursor);
      continue;
    }
    if (cursor.ok()) names.add(cursor, name);
    read.functions.push_back(text::read_function(cursor, name, options));
  } while (!cursor.at_end());
  if (!cursor.ok()) return cursor.error();
  return read;
}

/// The function that was asked for, or the only one.
Result<FunctionPtr> pick(const Text& read, std::string_view name) {
  if (read.functions.size() == 1) return read.functions.front();
  std::string names;
  for (std::string_view each : read.names) {
    if (names.size() >= longest_list) break;
    names += fmt::format("{}@{}", names.empty() ? "" : ", ", each);
  }
  const std::string wanted =
      name.empty() ? "one function" : fmt::format("@{}", text::printable(name));
  return Error{ErrorCode::invalid_argument,
               fmt::format("found {} functions ({}{}), expected {}", read.names.size(), names,
                           names.size() < longest_list ? "" : ", ...", wanted)};
}

}  // namespace

Result<std::vector<FunctionPtr>> parse(std::string_view source, const ParseOptions& options) {
  return guarded([&]() -> Result<std::vector<FunctionPtr>> {
    Result<Text> read = read_text(source, options, {});
    if (!read) return read.error();
    return std::move(read->functions);
  });
}

Result<FunctionPtr> parse_function(std::string_view source, std::string_view name,
                                   const ParseOptions& options) {
  return guarded([&]() -> Result<FunctionPtr> {
    const Result<Text> read = read_text(source, options, name);
    if (!read) return read.error();
    return pick(*read, name);
  });
}

}  // namespace castor
