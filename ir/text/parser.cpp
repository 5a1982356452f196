// SPDX-License-Identifier: Apache-2.0
// The parser: the functions of a text.
#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "ir/text.hpp"
#include "ir/text/cursor.hpp"
#include "ir/text/names.hpp"
#include "ir/text/read_function.hpp"

namespace castor {

namespace {

/// Bytes after which a list of function names in a message is cut.
constexpr size_t longest_list = 100;

Result<std::vector<FunctionPtr>> read_functions(std::string_view source,
                                                const ParseOptions& options) {
  text::Cursor cursor(source);
  text::Names names;
  std::vector<FunctionPtr> functions;
  do {
    if (!cursor.accept("func")) {
      cursor.fail_found(functions.empty() ? "'func'" : "'func' or the end of the text");
    }
    const text::Token name = cursor.expect(text::TokenKind::symbol, "a name such as @f");
    if (cursor.ok()) names.add(cursor, name);
    functions.push_back(text::read_function(cursor, name, options));
  } while (!cursor.at_end());
  if (!cursor.ok()) return cursor.error();
  return functions;
}

}  // namespace

Result<std::vector<FunctionPtr>> parse(std::string_view source, const ParseOptions& options) {
  const size_t limit = std::min(options.limits.text_bytes, max_text_bytes);
  if (source.size() > limit) {
    Error error = limit_exceeded({}, source.size(), "bytes of text", limit);
    error.where = {1, 1};
    return error;
  }
  try {
    return read_functions(source, options);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory,
                 fmt::format("memory for a text of {} bytes was refused", source.size())};
  }
}

Result<FunctionPtr> parse_function(std::string_view source, std::string_view name,
                                   const ParseOptions& options) {
  Result<std::vector<FunctionPtr>> functions = parse(source, options);
  if (!functions) return functions.error();
  std::string names;
  for (const FunctionPtr& function : *functions) {
    if (function->name == name || (name.empty() && functions->size() == 1)) return function;
    if (names.size() >= longest_list) continue;
    names += fmt::format("{}@{}", names.empty() ? "" : ", ", function->name);
  }
  const std::string wanted =
      name.empty() ? "one function" : fmt::format("@{}", text::printable(name));
  return Error{ErrorCode::invalid_argument,
               fmt::format("found {} functions ({}{}), expected {}", functions->size(), names,
                           names.size() < longest_list ? "" : ", ...", wanted)};
}

}  // namespace castor
