// SPDX-License-Identifier: Apache-2.0
// A position in the text: the token to read next, and the first mistake.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "ir/text/lexer.hpp"

namespace castor::text {

/// Iterates over tokens with one token of look-ahead. The first mistake is kept; from then on the
/// cursor stands at the end of the text, so that readers need no checks of their own: `expect`
/// gives empty tokens, `accept` is false, and loops end. A copy reads on from the same position.
class Cursor {
 public:
  explicit Cursor(std::string_view source) : lexer_(source), token_(lexer_.next()) {}

  const Token& peek() const { return token_; }
  TextPosition where() const { return token_.where; }
  bool at(TokenKind kind) const { return token_.kind == kind; }
  bool at_end() const { return at(TokenKind::end); }

  Token take();
  /// Takes the mark or word if it stands here.
  template <class Text>
  bool accept(Text text) {
    return token_.is(text) && (take(), true);
  }
  /// Takes a token of that kind, or fails.
  Token expect(TokenKind kind, std::string_view expected);
  void expect(char mark);

  bool ok() const { return !error_; }
  /// The first mistake; only when !ok().
  const Error& error() const { return *error_; }
  void fail(Error error);
  void fail(TextPosition where, std::string message) {
    fail({ErrorCode::invalid_text, std::move(message), where});
  }
  /// "found '}', expected ..." at the token that stands here.
  void fail_found(std::string_view expected);

 private:
  Lexer lexer_;
  Token token_;
  std::optional<Error> error_;
};

}  // namespace castor::text
