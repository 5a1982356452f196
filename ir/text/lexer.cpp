// SPDX-License-Identifier: Apache-2.0
// Tokens of the text form.
#include "ir/text/lexer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/verify/verify.hpp"

namespace castor::text {

namespace {

// Not <cctype>: the language is ASCII whatever the locale.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_byte(char c) {
  return is_letter(c) || is_digit(c) || c == '.' || c == '$' || c == '-';
}
int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}
bool is_printable(char c) { return c >= ' ' && c <= '~'; }

size_t digits_from(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end - at;
}

bool is_bits(std::string_view text) {
  return text.size() > 2 && text.starts_with("0x") &&
         std::all_of(text.begin() + 2, text.end(), [](char c) { return hex_digit(c) >= 0; });
}

/// Kind of an unsigned number: digits [. digits] [e [+-] digits].
TokenKind kind_of_number(std::string_view text) {
  if (is_bits(text)) return TokenKind::bits;
  size_t at = digits_from(text, 0);
  if (at == 0) return TokenKind::malformed;
  if (at == text.size()) return TokenKind::integer;
  if (text[at] == '.') {
    const size_t fraction = digits_from(text, at + 1);
    if (fraction == 0) return TokenKind::malformed;
    at += 1 + fraction;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const size_t exponent = digits_from(text, at);
    if (exponent == 0) return TokenKind::malformed;
    at += exponent;
  }
  return at == text.size() ? TokenKind::decimal : TokenKind::malformed;
}

/// Bytes of an escape in a string, or 0 when it is none.
size_t escape_length(std::string_view text) {
  if (text.size() < 2) return 0;
  if (text[1] == 'x') {
    return text.size() >= 4 && hex_digit(text[2]) >= 0 && hex_digit(text[3]) >= 0 ? 4 : 0;
  }
  return std::string_view("\"\\ntr").find(text[1]) != std::string_view::npos ? 2 : 0;
}

}  // namespace

Token Lexer::next() {
  skip_blanks();
  if (offset_ == source_.size()) return take(TokenKind::end, 0);
  const char c = at(0);
  if (is_letter(c)) {
    size_t length = 1;
    while (is_name_byte(at(length))) ++length;
    return take(TokenKind::word, length);
  }
  if (is_digit(c)) return number();
  switch (c) {
    case '-': return at(1) == '>' ? take(TokenKind::arrow, 2) : number();
    case '"': return string();
    case '%':
      return named(TokenKind::value, "expected a value name: an identifier or digits after '%'");
    case '@': return named(TokenKind::symbol, "expected an identifier after '@'");
    case '?': return named(TokenKind::unknown, "expected '?' or an identifier after it");
    case '(':
    case ')':
    case '[':
    case ']':
    case '{':
    case '}':
    case ',':
    case ':':
    case '=':
    case '<':
    case '>': return take(TokenKind::mark, 1);
    default: return malformed(1, {});
  }
}

void Lexer::skip_blanks() {
  for (; offset_ < source_.size(); ++offset_) {
    const char c = source_[offset_];
    if (c == '\n') {
      ++line_;
      line_start_ = offset_ + 1;
    } else if (c == '/' && at(1) == '/') {
      const size_t end = source_.find('\n', offset_);
      offset_ = (end == std::string_view::npos ? source_.size() : end) - 1;
    } else if (c != ' ' && c != '\t' && c != '\r') {
      return;
    }
  }
}

Token Lexer::take(TokenKind kind, size_t length) {
  const Token token = {kind,
                       source_.substr(offset_, length),
                       {line_, static_cast<uint32_t>(offset_ - line_start_ + 1)}};
  offset_ += length;
  return token;
}

Token Lexer::malformed(size_t length, std::string_view problem) {
  Token token = take(TokenKind::malformed, length);
  token.problem = problem;
  return token;
}

Token Lexer::named(TokenKind kind, std::string_view problem) {
  size_t length = 1;
  while (is_name_byte(at(length))) ++length;
  const std::string_view name = source_.substr(offset_ + 1, length - 1);
  const bool is_name = is_identifier(name) || (kind == TokenKind::value && is_value_name(name)) ||
                       (kind == TokenKind::unknown && name.empty());
  return is_name ? take(kind, length) : malformed(length, problem);
}

Token Lexer::number() {
  const size_t sign = at(0) == '-' ? 1 : 0;
  const bool hexadecimal = at(sign) == '0' && at(sign + 1) == 'x';
  size_t length = sign;
  for (;; ++length) {
    const char c = at(length);
    const bool signed_exponent = (c == '+' || c == '-') && !hexadecimal && length > sign &&
                                 (at(length - 1) == 'e' || at(length - 1) == 'E');
    if (!is_letter(c) && !is_digit(c) && c != '.' && !signed_exponent) break;
  }
  const std::string_view body = source_.substr(offset_ + sign, length - sign);
  if (body.empty()) return malformed(length, {});
  if (sign && body == "inf") return take(TokenKind::decimal, length);
  const TokenKind kind = kind_of_number(body);
  if (kind == TokenKind::bits && sign) {
    return malformed(length, "a bit pattern has no sign, expected 0x and hexadecimal digits");
  }
  if (kind == TokenKind::malformed) {
    return malformed(length, "expected a number such as 12, -0.5, 1e-3, -inf or 0x7f");
  }
  return take(kind, length);
}

Token Lexer::string() {
  size_t length = 1;
  for (char c = at(length); c != '"'; c = at(length)) {
    if (offset_ + length == source_.size() || c == '\n') {
      return malformed(length, "the string does not end, expected '\"' on the same line");
    }
    const size_t escape = c == '\\' ? escape_length(source_.substr(offset_ + length)) : 1;
    if (escape == 0) {
      offset_ += length;
      return malformed(1, "expected \\\", \\\\, \\n, \\t, \\r or \\xHH");
    }
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
      offset_ += length;
      return malformed(1, "expected control characters in a string as \\xHH");
    }
    length += escape;
  }
  return take(TokenKind::string, length + 1);
}

std::string printable(std::string_view bytes) {
  constexpr size_t longest = 40;
  std::string text;
  for (char c : bytes.substr(0, longest)) {
    text += is_printable(c) ? std::string(1, c)
                            : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return bytes.size() > longest ? text + "..." : text;
}

std::string unescaped(const Token& string) {
  std::string out;
  const std::string_view text = string.text.substr(1, string.text.size() - 2);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const char escape = text[++i];
    if (escape == 'x') {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      out += escape == 'n' ? '\n' : escape == 't' ? '\t' : escape == 'r' ? '\r' : escape;
    }
  }
  return out;
}

}  // namespace castor::text
