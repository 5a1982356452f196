// SPDX-License-Identifier: Apache-2.0
// Reading tensor types.
#include "ir/text/read_type.hpp"

#include <fmt/format.h>

#include <charconv>

#include "ir/text/read_quantization.hpp"
#include "ir/verify/verify.hpp"

namespace castor::text {

namespace {

/// An element type, or a quantized format with its container's type.
void read_element(Cursor& cursor, ElementType& element, QuantizationPtr& quantization) {
  const std::string_view name = cursor.at(TokenKind::word) ? cursor.peek().text : "";
  if (const auto format = quantized_format_named(name)) {
    element = info(*format).container;
    quantization = read_quantization(cursor);
    return;
  }
  const auto type = element_type_named(name);
  if (type) {
    cursor.take();
  } else {
    cursor.fail_found("an element type such as f32");
  }
  element = type.value_or(ElementType{});
}

Dim read_dim(Cursor& cursor) {
  if (cursor.at(TokenKind::unknown)) return Dim::named(std::string(cursor.take().name()));
  if (!cursor.at(TokenKind::integer) || cursor.peek().text[0] == '-') {
    cursor.fail_found("an extent, '?' or '?name'");
    return {};
  }
  int64_t extent = 0;
  const std::string_view text = cursor.peek().text;
  if (std::from_chars(text.data(), text.data() + text.size(), extent).ec != std::errc{}) {
    cursor.fail(cursor.where(), fmt::format("extent {} is too large, expected at most {}",
                                            printable(text), INT64_MAX));
  }
  cursor.take();
  return extent;
}

Shape read_shape(Cursor& cursor) {
  Shape shape;
  cursor.expect('[');
  if (cursor.accept(']')) return shape;
  do {
    if (shape.size() == max_rank) {
      cursor.fail(cursor.where(),
                  fmt::format("found another dimension, expected at most {}", max_rank));
    }
    shape.push_back(read_dim(cursor));
  } while (cursor.accept(','));
  if (!cursor.accept(']')) cursor.fail_found("',' or ']'");
  return shape;
}

void verify_at(Cursor& cursor, TextPosition where, const TensorType& type, std::string_view what) {
  if (!cursor.ok()) return;
  if (Status status = verify_type(type, what); !status) {
    cursor.fail({status.error().code, status.error().message, where});
  }
}

std::string_view expected_suffix(TypeSuffix suffix) {
  switch (suffix) {
    case TypeSuffix::element: return "':' and the result's element type";
    case TypeSuffix::shape: return "':' and the result's shape";
    case TypeSuffix::tensor: return "':' and the full type";
    case TypeSuffix::optional_type: break;
  }
  return "':' and the result's type";
}

}  // namespace

TensorType read_type(Cursor& cursor, std::string_view what) {
  const TextPosition where = cursor.where();
  TensorType type;
  read_element(cursor, type.element, type.quantization);
  type.shape = read_shape(cursor);
  verify_at(cursor, where, type, what);
  return type;
}

WrittenType read_suffix(Cursor& cursor, const OpInfo& row, std::string_view what) {
  WrittenType written;
  if (!cursor.accept(':')) {
    if (row.suffix != TypeSuffix::optional_type) cursor.fail_found(expected_suffix(row.suffix));
    return written;
  }
  const TextPosition where = cursor.where();
  const bool shape_alone = cursor.peek().is('[');
  if (!shape_alone || row.suffix == TypeSuffix::element || row.suffix == TypeSuffix::tensor) {
    read_element(cursor, written.element.emplace(), written.quantization);
  }
  const bool shape_needed = row.suffix == TypeSuffix::shape || row.suffix == TypeSuffix::tensor;
  if (cursor.peek().is('[') || shape_needed) written.shape = read_shape(cursor);
  if (written.quantization && !written.shape) return written;  // its axis is checked with the shape
  verify_at(cursor, where,
            {written.element.value_or(ElementType::f32), written.shape.value_or(Shape{}),
             written.quantization},
            what);
  return written;
}

}  // namespace castor::text
