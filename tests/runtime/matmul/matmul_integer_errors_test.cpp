// SPDX-License-Identifier: Apache-2.0
// Every message about a matrix product that is none: in the same words whether extents are known
// when the function is verified or when it is bound.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/text/text.hpp"
#include "ir/verify/infer.hpp"

namespace castor::test {
namespace {

struct Row {
  Dims a;
  Dims b;
  std::optional<Dims> a_zero_point;
  std::optional<Dims> b_zero_point;
  std::string error;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {{}, {3}, {}, {}, "a has rank 0, expected 1 or more"},
      {{3}, {}, {}, {}, "b has rank 0, expected 1 or more"},
      {{2, 3}, {4, 5}, {}, {}, "axis 1 of a is 3, expected 4 as axis 0 of b"},
      {{3}, {4}, {}, {}, "axis 0 of a is 3, expected 4 as axis 0 of b"},
      {{2, 3}, {4}, {}, {}, "axis 1 of a is 3, expected 4 as axis 0 of b"},
      {{3}, {6, 4, 5}, {}, {}, "axis 0 of a is 3, expected 4 as axis 1 of b"},
      {{2, 4, 3},
       {5, 3, 6},
       {},
       {},
       "axis 0 of a is 2, axis 0 of b is 5: batches broadcast by numpy's rule, expected equal "
       "extents, or one of them 1"},
      {{7, 2, 4, 3},
       {5, 3, 6},
       {},
       {},
       "axis 1 of a is 2, axis 0 of b is 5: batches broadcast by numpy's rule, expected equal "
       "extents, or one of them 1"},
      {{4, 3},
       {3, 6},
       Dims{6},
       {},
       "a_zero_point has 6 entries, expected 1, or 4 as the rows of a"},
      {{4, 3},
       {3, 6},
       {},
       Dims{4},
       "b_zero_point has 4 entries, expected 1, or 6 as the columns of b"},
      {{3}, {3, 6}, Dims{3}, {}, "a_zero_point has 3 entries, expected 1, or 1 as the rows of a"},
      {{3, 4},
       {4},
       {},
       Dims{4},
       "b_zero_point has 4 entries, expected 1, or 1 as the columns of b"},
      {{2, 4, 3}, {3, 6}, Dims{4, 1}, {}, "a_zero_point has rank 2, expected 0, 1, or 3 as a"},
      {{4, 3}, {3, 6}, {}, Dims{1, 1, 6}, "b_zero_point has rank 3, expected 0, 1, or 2 as b"},
      {{2, 4, 3}, {3, 6}, Dims{2, 4, 3}, {}, "axis 2 of a_zero_point is 3, expected 1"},
      {{2, 4, 3}, {3, 6}, Dims{2, 3, 1}, {}, "axis 1 of a_zero_point is 3, expected 1, or 4 as a"},
      {{2, 4, 3}, {3, 6}, Dims{3, 4, 1}, {}, "axis 0 of a_zero_point is 3, expected 1, or 2 as a"},
      {{4, 3}, {2, 3, 6}, {}, Dims{2, 3, 6}, "axis 1 of b_zero_point is 3, expected 1"},
      {{4, 3}, {2, 3, 6}, {}, Dims{2, 1, 4}, "axis 2 of b_zero_point is 4, expected 1, or 6 as b"},
      {{4, 3}, {2, 3, 6}, {}, Dims{4, 1, 6}, "axis 0 of b_zero_point is 4, expected 1, or 2 as b"},
  };
  return all;
}

std::string shape_text(const Dims& shape, bool is_open) {
  std::string text = "u8[";
  for (int axis = 0; axis < shape.rank(); ++axis) {
    text += fmt::format("{}{}", axis > 0 ? ", " : "", is_open ? "?" : std::to_string(shape[axis]));
  }
  return text + "]";
}

/// A function of that product, which returns an operand.
std::string text_of(const Row& row, bool is_open) {
  std::string parameters =
      fmt::format("%a: {}, %b: {}", shape_text(row.a, is_open), shape_text(row.b, is_open));
  if (row.a_zero_point) parameters += ", %z: " + shape_text(*row.a_zero_point, is_open);
  if (row.b_zero_point) parameters += ", %w: " + shape_text(*row.b_zero_point, is_open);
  return fmt::format(
      "func @f({}) -> ({}) {{\n  %y = matmul_integer %a, %b, {}, {}\n  return %a\n}}", parameters,
      shape_text(row.a, is_open), row.a_zero_point ? "%z" : "none",
      row.b_zero_point ? "%w" : "none");
}

TEST(MatmulErrors, WhenVerified) {
  for (const Row& row : rows()) {
    const auto function = parse_function(text_of(row, false));
    ASSERT_FALSE(function) << row.error;
    EXPECT_EQ(function.error().message, "matmul_integer: " + row.error);
    EXPECT_EQ(function.error().code, ErrorCode::invalid_function);
  }
}

TEST(MatmulErrors, WhenBound) {
  for (const Row& row : rows()) {
    const bool has_ranks = row.error.find("rank") == std::string::npos;
    const auto function = parse_function(text_of(row, true));
    ASSERT_EQ(function.ok(), has_ranks) << row.error;
    if (!has_ranks) continue;
    std::vector<Dims> shapes = {row.a, row.b};
    if (row.a_zero_point) shapes.push_back(*row.a_zero_point);
    if (row.b_zero_point) shapes.push_back(*row.b_zero_point);
    const auto bound = bind_shapes(**function, shapes);
    ASSERT_FALSE(bound) << row.error;
    EXPECT_EQ(bound.error().message, "matmul_integer: " + row.error);
    EXPECT_EQ(bound.error().code, ErrorCode::invalid_argument);
  }
}

struct TypeRow {
  const char* types[4];  ///< null: absent
  const char* error;
};

TEST(MatmulErrors, Types) {
  constexpr TypeRow types[] = {
      {{"f32[2, 3]", "u8[3, 4]"}, "a is f32, expected i8 or u8"},
      {{"u8[2, 3]", "i16[3, 4]"}, "b is i16, expected i8 or u8"},
      {{"u4[2, 3]", "i8[3, 4]"}, "a is u4, expected i8 or u8"},
      {{"u8[2, 3]", "i8[3, 4]", "i8[]"}, "a_zero_point is i8, expected u8 as a is"},
      {{"u8[2, 3]", "i8[3, 4]", nullptr, "u8[]"}, "b_zero_point is u8, expected i8 as b is"},
      {{"fx8<frac = 1>[2, 3]", "i8[3, 4]"},
       "operand 0 is fx8<frac = 1>[2, 3], expected a type that is not quantized: only requantize "
       "takes quantized tensors"},
      {{nullptr, "i8[3, 4]"}, "operand 0 is none, but it is not optional"},
      {{"i8[3, 4]", nullptr}, "operand 1 is none, but it is not optional"},
  };
  for (const TypeRow& row : types) {
    std::string parameters = "%s: f32[]";
    std::string operands;
    for (int i = 0; i < 4; ++i) {
      if (row.types[i]) parameters += fmt::format(", %x{}: {}", i, row.types[i]);
      operands += row.types[i] ? fmt::format("{}%x{}", i > 0 ? ", " : "", i)
                               : std::string(i > 0 ? ", none" : "none");
    }
    const auto function = parse_function(
        fmt::format("func @f({}) -> (f32[]) {{\n  %y = matmul_integer {}\n  return %s\n}}",
                    parameters, operands));
    ASSERT_FALSE(function) << row.error;
    EXPECT_EQ(function.error().message, std::string("matmul_integer: ") + row.error);
  }
}

}  // namespace
}  // namespace castor::test
