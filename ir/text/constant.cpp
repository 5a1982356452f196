// SPDX-License-Identifier: Apache-2.0
// The literals of a constant.
#include "ir/text/constant.hpp"

#include <fmt/format.h>

#include "ir/text/literal.hpp"
#include "ir/text/text.hpp"
#include "ir/types/elements.hpp"

namespace castor::text {

namespace {

bool at_literal(const Cursor& cursor) {
  return cursor.at(TokenKind::integer) || cursor.at(TokenKind::decimal) ||
         cursor.at(TokenKind::bits) || cursor.at(TokenKind::word);
}

void skip(Cursor& cursor, int depth) {
  if (at_literal(cursor)) {
    cursor.take();
    return;
  }
  if (!cursor.peek().is('[')) {
    return cursor.fail_found(depth == 0 ? "a literal, a list or '@'" : "a literal or a list");
  }
  if (depth == max_nesting) {
    return cursor.fail(
        cursor.where(),
        fmt::format("found a list inside {} lists, expected at most {}", max_nesting, max_nesting));
  }
  cursor.take();
  if (cursor.accept(']')) return;
  do {
    skip(cursor, depth + 1);
  } while (cursor.accept(','));
  if (!cursor.accept(']')) cursor.fail_found("',' or ']'");
}

/// Reads lists of one type; `bytes` grows with the text, never with the type.
class Reader {
 public:
  Reader(Cursor& cursor, const TensorType& type) : cursor_(cursor), type_(type) {}

  std::vector<std::byte> read() {
    if (type_.shape.empty()) {
      literal();
    } else if (!cursor_.peek().is('[')) {
      cursor_.fail_found(fmt::format("a list of literals for {}", to_string(type_)));
    } else if (holds_lists()) {
      nested(0);
    } else {
      flat(count());
    }
    return std::move(bytes_);
  }

 private:
  bool holds_lists() const {
    Cursor inside = cursor_;
    inside.take();
    return inside.peek().is('[');
  }

  int64_t count() const {
    Dims extents;
    for (const Dim& dim : type_.shape) extents.push_back(dim.extent);
    return element_count(extents).value_or(0);
  }

  void literal() {
    if (!at_literal(cursor_)) {
      return cursor_.fail_found(fmt::format("a literal of {}", name_of(type_.element)));
    }
    const Result<uint64_t> bits = read_literal(cursor_.peek(), type_.element);
    if (!bits) return cursor_.fail(bits.error());
    append(*bits);
    cursor_.take();
  }

  void append(uint64_t bits) {
    bytes_.resize(static_cast<size_t>(byte_size(type_.element, appended_ + 1).value()));
    write_element(bytes_.data(), type_.element, appended_++, bits);
  }

  /// A list of exactly `size` entries, each by `entry`; `scope` names it in messages.
  template <class Entry>
  void list(int64_t size, const std::string& scope, const Entry& entry) {
    const TextPosition where = cursor_.where();
    int64_t found = 0;
    cursor_.expect('[');
    if (!cursor_.peek().is(']')) {
      do {
        if (found++ == size) {
          cursor_.fail(cursor_.where(), fmt::format("found more than {} entries in {} of {}", size,
                                                    scope, to_string(type_)));
        }
        entry();
      } while (cursor_.accept(','));
    }
    if (!cursor_.accept(']')) return cursor_.fail_found("',' or ']'");
    if (found < size) {
      cursor_.fail(where, fmt::format("found {} of {} entries in {} of {}", found, size, scope,
                                      to_string(type_)));
    }
  }

  void flat(int64_t size) {
    list(size, "the list", [this] { literal(); });
  }

  void nested(size_t axis) {
    list(type_.shape[axis].extent, fmt::format("axis {}", axis), [this, axis] {
      if (axis + 1 < type_.shape.size()) return nested(axis + 1);
      literal();
    });
  }

  Cursor& cursor_;
  const TensorType& type_;
  std::vector<std::byte> bytes_;
  int64_t appended_ = 0;
};

/// Appends what the axes from `axis` on hold, from element `index` on, which it moves.
void append_nested(std::string& text, std::span<const std::byte> bytes, const TensorType& type,
                   size_t axis, int64_t& index) {
  if (axis == type.shape.size()) {
    text += literal_text(read_element(bytes.data(), type.element, index++), type.element);
    return;
  }
  text += '[';
  for (int64_t i = 0; i < type.shape[axis].extent; ++i) {
    if (i != 0) text += ", ";
    append_nested(text, bytes, type, axis + 1, index);
  }
  text += ']';
}

}  // namespace

void skip_literals(Cursor& cursor) { skip(cursor, 0); }

std::vector<std::byte> read_literals(Cursor& cursor, const TensorType& type) {
  return Reader(cursor, type).read();
}

std::string literals_text(std::span<const std::byte> bytes, const TensorType& type) {
  if (bytes.empty()) return "[]";
  std::string text;
  int64_t index = 0;
  append_nested(text, bytes, type, 0, index);
  return text;
}

}  // namespace castor::text
