// SPDX-License-Identifier: Apache-2.0
// A position in the text.
#include "ir/text/cursor.hpp"

#include <fmt/format.h>

namespace castor::text {

Token Cursor::take() { return at_end() ? token_ : std::exchange(token_, lexer_.next()); }

Token Cursor::expect(TokenKind kind, std::string_view expected) {
  if (at(kind)) return take();
  fail_found(expected);
  return {kind, "?", token_.where};  // has a name(), though an empty one
}

void Cursor::expect(char mark) {
  if (!accept(mark)) fail_found(fmt::format("'{}'", mark));
}

void Cursor::fail(Error error) {
  if (!error_) error_ = std::move(error);
  token_ = {TokenKind::end, {}, token_.where};
}

void Cursor::fail_found(std::string_view expected) {
  if (at_end())
    return fail(where(), fmt::format("found the end of the text, expected {}", expected));
  const std::string found = printable(token_.text);
  if (token_.problem.empty()) {
    return fail(where(), fmt::format("found '{}', expected {}", found, expected));
  }
  fail(where(), fmt::format("found '{}', {}", found, token_.problem));
}

}  // namespace castor::text
