// SPDX-License-Identifier: Apache-2.0
// Reading quantized formats.
#include "ir/text/read_quantization.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace castor::text {

namespace {

int32_t read_integer(Cursor& cursor) {
  const Token token = cursor.expect(TokenKind::integer, "an integer");
  int32_t value = 0;
  const auto end = token.text.data() + token.text.size();
  if (cursor.ok() && std::from_chars(token.text.data(), end, value).ec != std::errc{}) {
    cursor.fail(token.where, fmt::format("found {}, expected an integer of at most 32 bits",
                                         printable(token.text)));
  }
  return value;
}

/// One entry for all, a list of entries, or `?`.
QuantizationParameter read_slices(Cursor& cursor) {
  if (cursor.at(TokenKind::unknown) && cursor.peek().name().empty()) {
    cursor.take();
    return std::nullopt;
  }
  std::vector<int32_t> entries;
  if (cursor.at(TokenKind::integer)) return std::vector{read_integer(cursor)};
  if (!cursor.accept('[')) cursor.fail_found("an integer, a list of integers or '?'");
  if (cursor.accept(']')) return entries;
  do {
    entries.push_back(read_integer(cursor));
  } while (cursor.accept(','));
  if (!cursor.accept(']')) cursor.fail_found("',' or ']'");
  return entries;
}

/// The entries between the angle brackets.
class EntryReader {
 public:
  EntryReader(Cursor& cursor, QuantizedFormat format) : cursor_(cursor), row_(info(format)) {
    result_.format = format;
  }

  Quantization read() {
    const TextPosition where = cursor_.where();
    cursor_.expect('<');
    if (!cursor_.peek().is('>')) {
      do {
        read_entry();
      } while (cursor_.accept(','));
    }
    if (!cursor_.accept('>')) cursor_.fail_found("',' or '>'");
    if (row_.is_asymmetric && !was_given("zero_point")) {
      const QuantizationParameter& given = result_.scale ? result_.scale : result_.frac;
      const size_t slices = given ? given->size() : 1;
      result_.zero_point.emplace(slices, 0);
    }
    for (const QuantizationRule& rule : quantization_rules) {
      const bool is_expected = row_.is_asymmetric || !rule.asymmetric_only;
      if (!is_expected || rule.name == "zero_point" || was_given(rule.name)) continue;
      cursor_.fail(where, fmt::format("found {} without {}, expected {} = number, list or ?",
                                      row_.name, rule.name, rule.name));
    }
    return std::move(result_);
  }

 private:
  bool was_given(std::string_view name) const {
    return std::ranges::find(given_, name) != given_.end();
  }

  /// The name of an entry that the format has, which is not there yet.
  std::string_view read_name() {
    const Token name = cursor_.peek();
    const bool is_axis = name.is("axis") && row_.is_asymmetric;
    const bool is_rule = std::ranges::any_of(quantization_rules, [&](const QuantizationRule& rule) {
      return name.is(rule.name) && (row_.is_asymmetric || !rule.asymmetric_only);
    });
    if (!is_axis && !is_rule) {
      cursor_.fail_found(row_.is_asymmetric ? "axis, scale, frac or zero_point" : "frac");
      return {};
    }
    if (was_given(name.text)) {
      cursor_.fail(name.where, fmt::format("{} is given twice", name.text));
    }
    given_.push_back(name.text);
    return cursor_.take().text;
  }

  void read_entry() {
    const std::string_view name = read_name();
    cursor_.expect('=');
    if (name == "axis") {
      const TextPosition where = cursor_.where();
      result_.axis = read_integer(cursor_);
      if (result_.axis < 0) cursor_.fail(where, "found a negative axis, expected 0 or more");
      return;
    }
    for (const QuantizationRule& rule : quantization_rules) {
      if (name == rule.name) result_.*rule.parameter = read_slices(cursor_);
    }
  }

  Cursor& cursor_;
  const QuantizedInfo& row_;
  Quantization result_;
  std::vector<std::string_view> given_;
};

}  // namespace

QuantizationPtr read_quantization(Cursor& cursor) {
  const QuantizedFormat format = *quantized_format_named(cursor.take().text);
  return std::make_shared<const Quantization>(EntryReader(cursor, format).read());
}

}  // namespace castor::text
