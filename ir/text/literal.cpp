// SPDX-License-Identifier: Apache-2.0
// Literals of elements.
#include "ir/text/literal.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "ir/numerics/compare.hpp"
#include "ir/numerics/format.hpp"
#include "ir/numerics/unpacked.hpp"
#include "ir/text/decimal.hpp"

namespace castor::text {

namespace {

using numerics::NumberClass;
using numerics::Unpacked;

uint64_t float_code(const Unpacked& number, ElementType type, const ConvertOptions& options = {}) {
  return numerics::encode(number, ElementType::f64, type, options);
}

uint64_t quiet_nan(ElementType type) {
  return float_code({.kind = NumberClass::nan, .significand = uint64_t{1} << 62}, type);
}

/// The end of the type's range on one side; for f8e8m0 the lower end is positive.
uint64_t end_of_range(ElementType type, bool negative) {
  return float_code({.kind = NumberClass::infinity, .negative = negative}, type,
                    {.overflow = Overflow::saturate});
}

/// Whether the number is beyond the range of a format whose overflow leaves no infinity or NaN to
/// tell it: `convert` clamps there.
bool is_clamped(const Unpacked& number, ElementType type) {
  if (is_float(type) && has_nans(type)) return false;
  return is_greater(number, numerics::decode(end_of_range(type, false), type)) ||
         is_greater(numerics::decode(end_of_range(type, true), type), number);
}

Error mistake(const Token& token, std::string_view found, const std::string& expected) {
  return {ErrorCode::invalid_text,
          fmt::format("{}{}, expected {}", printable(token.text), found, expected), token.where};
}

Error misfit(const Token& token, std::string_view expected, ElementType type) {
  return {
      ErrorCode::invalid_text,
      fmt::format("found '{}', expected {} for {}", printable(token.text), expected, name_of(type)),
      token.where};
}

template <class Integer>
std::optional<Integer> integer_of(std::string_view text, int base) {
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<uint64_t> read_bits(const Token& token, ElementType type) {
  const std::optional<uint64_t> bits = integer_of<uint64_t>(token.text.substr(2), 16);
  const int width = bits_of(type);
  if (bits && (width == 64 || *bits >> width == 0)) return *bits;
  return mistake(token, fmt::format(" is wider than {}", name_of(type)),
                 fmt::format("a bit pattern of {} bits", width));
}

Result<uint64_t> read_boolean(const Token& token) {
  if (token.is("true")) return uint64_t{1};
  if (token.is("false")) return uint64_t{0};
  return misfit(token, "true, false or a bit pattern", ElementType::boolean);
}

Result<uint64_t> read_integer(const Token& token, ElementType type) {
  if (token.kind != TokenKind::integer) return misfit(token, "an integer", type);
  const int64_t smallest = integer_min(type);
  const uint64_t largest = integer_max(type);
  if (token.text[0] == '-') {
    const std::optional<int64_t> value = integer_of<int64_t>(token.text, 10);
    if (value && *value >= smallest) {
      return static_cast<uint64_t>(*value) & (~uint64_t{0} >> (64 - bits_of(type)));
    }
  } else {
    const std::optional<uint64_t> value = integer_of<uint64_t>(token.text, 10);
    if (value && *value <= largest) return *value;
  }
  return mistake(token, fmt::format(" is out of range for {}", name_of(type)),
                 fmt::format("{} to {}", smallest, largest));
}

std::string range_text(ElementType type) {
  const std::string largest = literal_text(end_of_range(type, false), type);
  if (type != ElementType::f8e8m0) return "a magnitude up to " + largest;
  return literal_text(end_of_range(type, true), type) + " to " + largest;
}

/// inf, -inf or nan, where the format has it.
std::optional<uint64_t> read_special(const Token& token, ElementType type) {
  if (token.is("nan") && has_nans(type)) return quiet_nan(type);
  const bool negative = token.text == "-inf";
  if ((!negative && !token.is("inf")) || !has_infinities(type)) return std::nullopt;
  return float_code({.kind = NumberClass::infinity, .negative = negative}, type);
}

Result<uint64_t> read_float(const Token& token, ElementType type) {
  if (const std::optional<uint64_t> code = read_special(token, type)) return *code;
  const bool is_number = token.kind == TokenKind::integer || token.kind == TokenKind::decimal;
  if (!is_number || token.text == "-inf") {
    return misfit(token,
                  has_infinities(type) ? "a number, inf, -inf, nan or a bit pattern"
                  : has_nans(type)     ? "a number, nan or a bit pattern"
                                       : "a number or a bit pattern",
                  type);
  }
  const Unpacked number = exact_decimal(token.text);
  const uint64_t code = float_code(number, type);
  const NumberClass kind = numerics::decode(code, type).kind;
  const bool overflows = kind == NumberClass::infinity || kind == NumberClass::nan;
  if (!overflows && !is_clamped(number, type)) return code;
  return mistake(token, fmt::format(" is out of range for {}", name_of(type)), range_text(type));
}

std::string integer_text(uint64_t bits, ElementType type) {
  if (is_unsigned_integer(type)) return std::to_string(bits);
  const int unused = 64 - bits_of(type);
  return std::to_string(static_cast<int64_t>(bits << unused) >> unused);
}

/// The shortest decimal that reads back; floats of up to 32 bits are exact as `float`, so what
/// reads back to that reads back to them.
std::string float_text(uint64_t bits, ElementType type) {
  const Unpacked number = numerics::decode(bits, type);
  if (number.kind == NumberClass::infinity) return number.negative ? "-inf" : "inf";
  const double magnitude =
      std::ldexp(static_cast<double>(number.significand), number.exponent - 63);
  const double value = number.negative ? -magnitude : magnitude;
  std::string text =
      bits_of(type) > 32 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  const bool looks_like_integer = text.find_first_of(".e") == std::string::npos;
  return looks_like_integer ? text + ".0" : text;
}

}  // namespace

Result<uint64_t> read_literal(const Token& token, ElementType type) {
  if (token.kind == TokenKind::bits) return read_bits(token, type);
  if (is_boolean(type)) return read_boolean(token);
  return is_integer(type) ? read_integer(token, type) : read_float(token, type);
}

std::string literal_text(uint64_t bits, ElementType type) {
  if (is_boolean(type) && bits <= 1) return bits == 1 ? "true" : "false";
  if (is_integer(type)) return integer_text(bits, type);
  if (!is_boolean(type)) {
    const bool is_nan = numerics::decode(bits, type).kind == NumberClass::nan;
    if (!is_nan) return float_text(bits, type);
    if (bits == quiet_nan(type)) return "nan";
  }
  return fmt::format("{:#0{}x}", bits, 2 + (bits_of(type) + 3) / 4);
}

}  // namespace castor::text
