// SPDX-License-Identifier: Apache-2.0
// Tokens of the text form, with their positions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/support/result.hpp"

namespace castor::text {

enum class TokenKind : uint8_t {
  end,        ///< the end of the text
  word,       ///< func, convert, f32, saturate: an identifier (see is_identifier)
  value,      ///< %x, %0
  symbol,     ///< @name
  unknown,    ///< ? or ?n, an unknown dimension
  integer,    ///< 12, -3
  decimal,    ///< 0.5, -1e-3, -inf (inf and nan without a sign are words)
  bits,       ///< 0x7fc0
  string,     ///< "text", with its quotes and escapes
  arrow,      ///< ->
  mark,       ///< one of ( ) [ ] { } , : = < >
  malformed,  ///< the start of a token that does not go on as one; `problem` says why
};

/// A part of the text. `text` points into it.
struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  TextPosition where;
  std::string_view problem{};  ///< set for a malformed token: what is wrong and what was expected

  /// The name after the sigil of a value, symbol or unknown.
  std::string_view name() const { return text.substr(1); }
  bool is(char mark) const { return kind == TokenKind::mark && text[0] == mark; }
  bool is(std::string_view word) const { return kind == TokenKind::word && text == word; }
};

/// Cuts a text into tokens, one at a time, in time linear in its length. Blanks, tabs, carriage
/// returns and `//` comments part tokens; a newline ends a line. A column is a byte. Copies are
/// cheap and go on from the same position.
class Lexer {
 public:
  /// `source` must outlive the lexer and its tokens.
  explicit Lexer(std::string_view source) : source_(source) {}
  Token next();

 private:
  void skip_blanks();
  Token take(TokenKind kind, size_t length);
  Token malformed(size_t length, std::string_view problem);
  Token named(TokenKind kind, std::string_view problem);
  Token number();
  Token string();
  char at(size_t ahead) const {
    return offset_ + ahead < source_.size() ? source_[offset_ + ahead] : '\0';
  }

  std::string_view source_;
  size_t offset_ = 0;
  size_t line_start_ = 0;
  uint32_t line_ = 1;
};

/// Bytes made safe for a message: printable ASCII as it is, every other byte as \x00; cut after
/// 40 bytes.
std::string printable(std::string_view bytes);

/// The bytes that a string token stands for; escapes are \" \\ \n \t \r \xHH.
std::string unescaped(const Token& string);

}  // namespace castor::text
