// SPDX-License-Identifier: Apache-2.0
// Reading attribute lists.
#include "ir/text/read_attributes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/text/literal.hpp"
#include "ir/text/text.hpp"

namespace castor::text {

namespace {

bool wants(const AttributeRule* rule, AttributeKind kind) { return rule && rule->kind == kind; }

/// The bits of one literal; 0 after a mistake.
uint64_t literal(Cursor& cursor, ElementType type) {
  const Result<uint64_t> bits = read_literal(cursor.peek(), type);
  if (bits) {
    cursor.take();
  } else {
    cursor.fail(bits.error());
  }
  return bits ? *bits : 0;
}

AttributeValue read_float(Cursor& cursor) {
  return {std::bit_cast<double>(literal(cursor, ElementType::f64))};
}

AttributeValue read_word(Cursor& cursor, const AttributeRule* rule) {
  const Token& word = cursor.peek();
  if (!wants(rule, AttributeKind::identifier)) {
    if (word.is("true") || word.is("false")) return {cursor.take().is("true")};
    if (word.is("inf") || word.is("nan")) return read_float(cursor);
  }
  return {Identifier{std::string(cursor.take().text)}};
}

AttributeValue read_value(Cursor& cursor, const AttributeRule* rule, int depth = 0);

AttributeValue read_list(Cursor& cursor, int depth) {
  AttributeValue::List list;
  if (depth == max_nesting) {
    cursor.fail(cursor.where(), fmt::format("found a list inside {} lists, expected at most {}",
                                            max_nesting, max_nesting));
  }
  cursor.expect('[');
  if (cursor.accept(']')) return {std::move(list)};
  do {
    list.push_back(read_value(cursor, nullptr, depth + 1));
  } while (cursor.accept(','));
  if (!cursor.accept(']')) cursor.fail_found("',' or ']'");
  return {std::move(list)};
}

AttributeValue read_value(Cursor& cursor, const AttributeRule* rule, int depth) {
  switch (cursor.peek().kind) {
    case TokenKind::integer:
      if (wants(rule, AttributeKind::floating)) return read_float(cursor);
      return {static_cast<int64_t>(literal(cursor, ElementType::i64))};
    case TokenKind::decimal: return read_float(cursor);
    case TokenKind::word: return read_word(cursor, rule);
    case TokenKind::string: return {unescaped(cursor.take())};
    default:
      if (cursor.peek().is('[')) return read_list(cursor, depth);
      cursor.fail_found("a value: a number, true, false, an identifier, a string or a list");
      return {};
  }
}

std::string names_of(const OpInfo& row) {
  std::string names;
  for (const AttributeRule& rule : row.attributes) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", rule.name);
  }
  return names;
}

/// The rule of the attribute whose name stands here; fails without one, or for a second time.
const AttributeRule* rule_here(Cursor& cursor, const OpInfo& row, const Attributes& before) {
  const Token& name = cursor.peek();
  const auto rule = std::ranges::find(row.attributes, name.text, &AttributeRule::name);
  if (rule == row.attributes.end()) {
    cursor.fail_found(row.attributes.empty()
                          ? fmt::format("'}}': {} has no attributes", row.name)
                          : fmt::format("an attribute of {}: {}", row.name, names_of(row)));
    return nullptr;
  }
  if (find(before, name.text)) {
    cursor.fail(name.where, fmt::format("attribute {} is given twice", name.text));
  }
  return &*rule;
}

Attributes read_list_of_attributes(Cursor& cursor, const OpInfo* row) {
  Attributes attributes;
  cursor.expect('{');
  if (cursor.accept('}')) return attributes;
  do {
    const AttributeRule* rule = row ? rule_here(cursor, *row, attributes) : nullptr;
    std::string name(cursor.expect(TokenKind::word, "an attribute's name").text);
    cursor.expect('=');
    attributes.push_back({std::move(name), read_value(cursor, rule)});
  } while (cursor.accept(','));
  if (!cursor.accept('}')) cursor.fail_found("',' or '}'");
  return attributes;
}

}  // namespace

Attributes read_attributes(Cursor& cursor, const OpInfo& row) {
  return cursor.peek().is('{') ? read_list_of_attributes(cursor, &row) : Attributes{};
}

Attributes read_function_attributes(Cursor& cursor) {
  return read_list_of_attributes(cursor, nullptr);
}

}  // namespace castor::text
