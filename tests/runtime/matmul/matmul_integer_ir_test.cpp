// SPDX-License-Identifier: Apache-2.0
// matmul_integer in the IR: its text, the builder, result types, and the canonical form, in which
// products that are no single convolution are split.
#include <fmt/format.h>

#include "ir/builder.hpp"
#include "ir/rewrite/canonicalize.hpp"
#include "ir/rewrite/split_zero_points.hpp"
#include "ir/shape/matmul.hpp"
#include "tests/support/texts.hpp"

namespace castor::test {
namespace {

using enum ElementType;

std::string around(const std::string& parameters, const std::string& result,
                   const std::string& operation) {
  return "func @f(" + parameters + ") -> (" + result + ") {\n  " + operation + "\n  return %y\n}\n";
}

const std::string both = "%a: u8[2, 3], %b: i8[3, 4]";

TEST(MatmulText, PrintsAsItStands) {
  const std::string texts[] = {
      around(both, "i32[2, 4]", "%y = matmul_integer %a, %b"),
      around(both + ", %z: u8[2]", "i32[2, 4]", "%y = matmul_integer %a, %b, %z"),
      around(both + ", %z: i8[1, 4]", "i32[2, 4]", "%y = matmul_integer %a, %b, none, %z"),
      around("%a: i8[?n, 2, 3], %b: u8[3], %z: i8[?n, 2, 1]", "i32[?n, 2]",
             "%y = matmul_integer %a, %b, %z"),
  };
  for (const std::string& text : texts) {
    const auto function = parse_function(text);
    ASSERT_TRUE(function) << text << function.error().to_string();
    EXPECT_EQ(print(**function), text);
    EXPECT_EQ((*function)->operations[0].operands.size(), 4u);
    EXPECT_EQ(canonicalize(*function), *function);
  }
}

TEST(MatmulText, HasNoAttributes) {
  EXPECT_EQ(texts::error_of(around(both, "i32[2, 4]", "%y = matmul_integer %a, %b {axis = 1}")),
            "line 2, column 31: found 'axis', expected '}': matmul_integer has no attributes");
}

TEST(MatmulBuilder, SaysWhatTheTextSays) {
  FunctionBuilder builder("f");
  const ValueId a = builder.parameter("a", {u8, {"?n", 5, 9}});
  const ValueId b = builder.parameter("b", {i8, {9, 4}});
  const ValueId z = builder.parameter("z", {i8, {4}});
  builder.result(builder.matmul_integer(a, b, no_value, z));
  const auto function = builder.finish();
  ASSERT_TRUE(function) << function.error().to_string();
  EXPECT_EQ(print(**function),
            "func @f(%a: u8[?n, 5, 9], %b: i8[9, 4], %z: i8[4]) -> (i32[?n, 5, 4]) {\n"
            "  %0 = matmul_integer %a, %b, none, %z\n  return %0\n}\n");
}

struct TypeRow {
  Shape a;
  Shape b;
  Shape y;
};

TEST(MatmulTypes, FollowNumpy) {
  const TypeRow rows[] = {
      {{3}, {3}, {}},
      {{2, 3}, {3}, {2}},
      {{3}, {3, 4}, {4}},
      {{3}, {5, 3, 4}, {5, 4}},
      {{5, 2, 3}, {3}, {5, 2}},
      {{2, 3}, {3, 4}, {2, 4}},
      {{7, 1, 2, 3}, {5, 3, 4}, {7, 5, 2, 4}},
      {{0, 3}, {3, 4}, {0, 4}},
      {{2, 0}, {0, 4}, {2, 4}},
      {{1, 2, 3}, {0, 3, 4}, {0, 2, 4}},
      {{"?n", "?m", "?k"}, {"?k", 4}, {"?n", "?m", 4}},
      {{"?n", "?m", "?k"}, {"?n", 3, "?p"}, {"?n", "?m", "?p"}},
      {{1, "?m", 3}, {"?n", 3, 4}, {"?n", "?m", 4}},
      {{"?", 2, 3}, {6, 3, 4}, {6, 2, 4}},
      {{"?n", 2, 3}, {"?l", 3, 4}, {"?", 2, 4}},
  };
  for (const TypeRow& row : rows) {
    const TensorType a = {u8, row.a};
    const TensorType b = {i8, row.b};
    const TensorType* const operands[] = {&a, &b, nullptr, nullptr};
    const Result<TensorType> type = matmul_type(operands);
    ASSERT_TRUE(type) << type.error().message;
    EXPECT_EQ(*type, (TensorType{i32, row.y})) << to_string(row.a) << to_string(row.b);
  }
}

TEST(MatmulCanonical, IsSplitWhereNoConvolutionTakesItsZeroPoints) {
  const auto function = parse_function(
      "func @f(%a: u8[?m, ?k], %b: i8[?k, 4], %z: u8[?m, 1], %w: i8[4]) -> (f32[?m, 4]) {\n"
      "  %y = matmul_integer %a, %b, %z, %w\n  %f = convert %y : f32\n  return %f\n}\n");
  ASSERT_TRUE(function) << function.error().to_string();
  EXPECT_EQ(print(*canonicalize(*function)),
            "func @f(%a: u8[?m, ?k], %b: i8[?k, 4], %z: u8[?m, 1], %w: i8[4]) -> (f32[?m, 4]) {\n"
            "  %0 = constant 1 : u8[]\n"
            "  %1 = broadcast %0 : [?k, 1]\n"
            "  %2 = matmul_integer %a, %1, %z\n"
            "  %3 = matmul_integer %a, %b, %z\n"
            "  %4 = convert %w : i32\n"
            "  %5 = mul %4, %2\n"
            "  %y = sub %3, %5\n"
            "  %f = convert %y : f32\n"
            "  return %f\n}\n");
}

/// Names of extents that results alone have are not taken for others.
TEST(MatmulCanonical, KeepsNamesOfResultsApart) {
  const auto function = parse_function(
      "func @r(%a: u8[?, ?], %b: i8[?, ?], %z: u8[?], %w: i8[?]) -> (i32[?d1, ?d0]) {\n"
      "  %y = matmul_integer %a, %b, %z, %w\n  return %y\n}\n");
  ASSERT_TRUE(function) << function.error().to_string();
  const std::string text = print(*canonicalize(*function));
  EXPECT_TRUE(text.starts_with("func @r(%a: u8[?d2, ")) << text;
  EXPECT_NE(text.find("-> (i32[?d1, ?d0])"), std::string::npos) << text;
}

TEST(MatmulCanonical, SumsOfAConstantAreConstants) {
  const auto function = parse_function(
      "func @f(%a: u8[?, 3], %z: u8[?]) -> (i32[?, 2]) {\n"
      "  %b = constant [1, -2, 3, -128, 5, 127] : i8[3, 2]\n"
      "  %w = constant [4, -1] : i8[2]\n"
      "  %y = matmul_integer %a, %b, %z, %w\n  return %y\n}\n");
  ASSERT_TRUE(function) << function.error().to_string();
  EXPECT_EQ(print(*canonicalize(*function)),
            "func @f(%a: u8[?d0, 3], %z: u8[?d1]) -> (i32[?, 2]) {\n"
            "  %b = constant [[1, -2], [3, -128], [5, 127]] : i8[3, 2]\n"
            "  %w = constant [4, -1] : i8[2]\n"
            "  %0 = matmul_integer %a, %b, none, %w\n"
            "  %1 = constant [-3, 0] : i32[2]\n"
            "  %2 = convert %z : i32\n"
            "  %3 = reshape %2 : [?d1, 1]\n"
            "  %4 = mul %3, %1\n"
            "  %y = sub %0, %4\n"
            "  return %y\n}\n");
}

TEST(MatmulCanonical, AConstantUnderVaryingZeroPointsIsSplitTwice) {
  const auto function = parse_function(
      "func @f(%a: u8[?, 3], %z: u8[?], %w: i8[2]) -> (i32[?, 2]) {\n"
      "  %b = constant [1, -2, 3, -128, 5, 127] : i8[3, 2]\n"
      "  %y = matmul_integer %a, %b, %z, %w\n  return %y\n}\n");
  ASSERT_TRUE(function) << function.error().to_string();
  const FunctionPtr canonical = canonicalize(*function);
  EXPECT_EQ(print(*canonical),
            "func @f(%a: u8[?d0, 3], %z: u8[?d1], %w: i8[2]) -> (i32[?, 2]) {\n"
            "  %b = constant [[1, -2], [3, -128], [5, 127]] : i8[3, 2]\n"
            "  %0 = constant 1 : u8[]\n"
            "  %1 = broadcast %0 : [3, 1]\n"
            "  %2 = matmul_integer %a, %1, %z\n"
            "  %6 = matmul_integer %a, %b\n"
            "  %7 = constant [9, -3] : i32[2]\n"
            "  %8 = convert %z : i32\n"
            "  %9 = reshape %8 : [?d1, 1]\n"
            "  %10 = mul %9, %7\n"
            "  %3 = sub %6, %10\n"
            "  %4 = convert %w : i32\n"
            "  %5 = mul %4, %2\n"
            "  %y = sub %3, %5\n"
            "  return %y\n}\n");
  EXPECT_EQ(canonicalize(canonical), canonical);
}

/// No shape says how many ones a row is multiplied by: it is added up.
TEST(MatmulCanonical, AddsRowsUpWhereTheDepthHasNoName) {
  const auto function = parse_function(
      "func @f(%p: u8[?, ?], %q: i8[?, ?], %z: u8[?, 1], %w: i8[?]) -> (i32[?, ?]) {\n"
      "  %a = reshape %p : [4, ?]\n  %b = reshape %q : [?, 5]\n"
      "  %y = matmul_integer %a, %b, %z, %w\n  return %y\n}\n");
  ASSERT_TRUE(function) << function.error().to_string();
  const FunctionPtr canonical = canonicalize(*function);
  EXPECT_EQ(reason_not_split(*canonical), "");
  EXPECT_NE(print(*canonical).find("reduce_sum"), std::string::npos) << print(*canonical);
}

TEST(MatmulCanonical, StaysWhereNothingIsSplit) {
  const auto function = parse_function(
      "func @f(%a: u8[3], %b: i8[?, 3, ?], %z: u8[], %u: i8[?, 1, ?], %v: i8[?, 1, ?])\n"
      "    -> (i32[?, ?]) {\n"
      "  %w = max %u, %v\n  %y = matmul_integer %a, %b, %z, %w\n  return %y\n}\n");
  ASSERT_TRUE(function) << function.error().to_string();
  EXPECT_EQ(canonicalize(*function), *function);
  EXPECT_NE(reason_not_split(**function), "");
}

struct SplitRow {
  const char* a;
  const char* b;
  const char* a_zero_point;  ///< null: absent
  const char* b_zero_point;
  int products;  ///< in the canonical function
};

TEST(MatmulCanonical, IsSplitNowhereElse) {
  constexpr SplitRow rows[] = {
      {"[2, 3]", "[3, 4]", "[2]", nullptr, 1},
      {"[2, 3]", "[3, 4]", "[2, 1]", "[]", 1},
      {"[2, 3]", "[3, 4]", "[2, 1]", "[1, 1]", 1},
      {"[2, 3]", "[3, 4]", "[]", "[4]", 1},
      {"[2, 3]", "[3, 4]", "[1]", "[1, 4]", 1},
      {"[5, 2, 3]", "[1, 3, 4]", nullptr, "[1, 1, 4]", 1},
      {"[5, 2, 3]", "[5, 3, 4]", "[5, 2, 1]", nullptr, 1},
      {"[3]", "[3, 4]", "[?]", "[4]", 1},
      {"[2, 3]", "[3]", "[2]", "[?]", 1},
      {"[2, 3]", "[3, 4]", "[2]", "[4]", 2},
      {"[?, 3]", "[3, ?]", "[?, 1]", "[?]", 2},
      {"[?, ?]", "[3, ?]", "[?, 1]", "[?]", 2},
      {"[5, 2, 3]", "[5, 3, 4]", nullptr, "[4]", 2},
      {"[5, 2, 3]", "[?, 3, 4]", "[]", "[?, 1, 4]", 2},
      {"[3]", "[5, 3, 4]", nullptr, "[5, 1, 4]", 2},
      {"[3]", "[?, 3, 4]", nullptr, "[?, 1, 4]", 2},
      {"[3]", "[?, 3, ?]", nullptr, "[?, 1, ?]", 2},
      {"[?, ?]", "[?, 4]", "[?, 1]", "[4]", 2},
  };
  for (const SplitRow& row : rows) {
    std::string parameters = fmt::format("%a: u8{}, %b: i8{}", row.a, row.b);
    if (row.a_zero_point) parameters += fmt::format(", %z: u8{}", row.a_zero_point);
    if (row.b_zero_point) parameters += fmt::format(", %w: i8{}", row.b_zero_point);
    const std::string text = fmt::format(
        "func @f({}) -> (boolean[]) {{\n  %y = matmul_integer %a, %b, {}, {}\n  %c = constant true "
        ": boolean[]\n  %r = select %c, %c, %c\n  return %r\n}}\n",
        parameters, row.a_zero_point ? "%z" : "none", row.b_zero_point ? "%w" : "none");
    const auto function = parse_function(text);
    ASSERT_TRUE(function) << function.error().to_string() << text;
    const FunctionPtr split = split_zero_points(*function);
    EXPECT_EQ(split == *function, row.products < 2) << text;
    EXPECT_EQ(reason_not_split(*split), "") << text;
    const auto products =
        std::ranges::count(split->operations, OpKind::matmul_integer, &Operation::op);
    EXPECT_EQ(products, row.products) << text;
  }
}

}  // namespace
}  // namespace castor::test
