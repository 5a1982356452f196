// SPDX-License-Identifier: Apache-2.0
// Binding unknown extents.
#include "ir/infer.hpp"

#include <gtest/gtest.h>

#include "ir/text.hpp"

namespace castor {
namespace {

FunctionPtr parsed(std::string_view text) {
  const auto function = parse_function(text);
  EXPECT_TRUE(function) << (function ? "" : function.error().to_string());
  return function ? *function : nullptr;
}

struct GoodBinding {
  const char* text;
  std::vector<Dims> parameters;
  std::vector<Dims> values;
};

TEST(BindShapes, GivesEveryValueItsExtents) {
  const std::vector<GoodBinding> cases = {
      {"func @f(%x: u8[2, 3]) -> (f16[2, 3]) { %y = convert %x : f16 return %y }",
       {{2, 3}},
       {{2, 3}, {2, 3}}},
      {"func @f(%x: u8[?, ?n, 3]) -> (f16[?, ?n, ?]) { %y = convert %x : f16 return %y }",
       {{4, 5, 3}},
       {{4, 5, 3}, {4, 5, 3}}},
      {"func @f(%x: u8[?n], %y: u8[?n, ?m]) -> (u8[?m, ?m]) { return %y }",
       {{7}, {7, 7}},
       {{7}, {7, 7}}},
      {"func @f(%x: u8[?], %y: u8[?]) -> (u8[?k], u8[?k]) { return %x, %y }",
       {{7}, {7}},
       {{7}, {7}}},
      {"func @f(%x: u8[]) -> (i16[2]) { %c = constant [1, 2] : i16[2] return %c }",
       {{}},
       {{}, {2}}},
      {"func @f(%x: u64[?, ?]) -> (u64[?, 0]) { return %x }", {{INT64_MAX, 0}}, {{INT64_MAX, 0}}},
      {"func @f(%x: u8[?]) -> (u8[?]) { return %x }", {{INT64_MAX}}, {{INT64_MAX}}},
  };
  for (const GoodBinding& good : cases) {
    const FunctionPtr function = parsed(good.text);
    ASSERT_TRUE(function);
    const auto bound = bind_shapes(*function, good.parameters);
    ASSERT_TRUE(bound) << good.text << "\n" << bound.error().message;
    EXPECT_EQ(bound->values, good.values) << good.text;
  }
}

struct BadBinding {
  const char* text;
  std::vector<Dims> parameters;
  const char* message;
};

TEST(BindShapes, SaysWhatDoesNotFit) {
  const char* const two = "func @f(%x: u8[?n, 3], %y: u8[?, ?n]) -> (u8[?n, 3]) { return %x }";
  const char* const open = "func @f(%x: f64[?, ?]) -> (f64[?, ?]) { return %x }";
  const std::vector<BadBinding> cases = {
      {two, {{2, 3}}, "@f has 2 parameters, but 1 shapes are given"},
      {two,
       {{2}, {2, 2}},
       "parameter 0 (%x): found [2] of rank 1, expected rank 2 as in u8[?n, 3]"},
      {two, {{2, 4}, {2, 2}}, "parameter 0 (%x), axis 1: found 4, expected 3 as in u8[?n, 3]"},
      {two,
       {{2, 3}, {9, 4}},
       "parameter 1 (%y), axis 1: found 4, expected 2, the extent of ?n in parameter 0 (%x), axis "
       "0"},
      {two,
       {{-1, 3}, {9, 4}},
       "parameter 0 (%x), axis 0: found -1, expected an extent that is not negative"},
      {open,
       {{INT64_MAX, 2}},
       "%x: f64[9223372036854775807, 2] is too large: its elements must not exceed 2^63 - 1"},
      {open,
       {{INT64_MAX, 1}},
       "%x: f64[9223372036854775807, 1] is too large: its bytes must not exceed 2^63 - 1"},
      {"func @f(%x: u8[?]) -> (f64[?]) { %y = convert %x : f64 return %y }",
       {{int64_t{1} << 60}},
       "%y: f64[1152921504606846976] is too large: its bytes must not exceed 2^63 - 1"},
      {"func @f(%x: u8[?]) -> (u8[3]) { return %x }",
       {{4}},
       "result 0 (%x), axis 0: found 4, expected 3 as in u8[3]"},
      {"func @f(%x: u8[?n, ?]) -> (u8[?, ?n]) { return %x }",
       {{4, 5}},
       "result 0 (%x), axis 1: found 5, expected 4, the extent of ?n in parameter 0 (%x), axis 0"},
      {"func @f(%x: u8[?], %y: u8[?]) -> (u8[?k], u8[?k]) { return %x, %y }",
       {{4}, {5}},
       "result 1 (%y), axis 0: found 5, expected 4, the extent of ?k in result 0 (%x), axis 0"},
  };
  for (const BadBinding& bad : cases) {
    const FunctionPtr function = parsed(bad.text);
    ASSERT_TRUE(function);
    const auto bound = bind_shapes(*function, bad.parameters);
    ASSERT_FALSE(bound) << bad.text;
    EXPECT_EQ(bound.error().message, bad.message);
    EXPECT_EQ(bound.error().code, ErrorCode::invalid_argument);
  }
}

/// Many names stay cheap: a quadratic search would take minutes.
TEST(BindShapes, TakesAsManyNamesAsAFunctionCanHave) {
  FunctionBuilder builder("f");
  std::vector<Dims> extents;
  for (int i = 0; i < 60000; ++i) {
    Shape shape;
    for (int axis = 0; axis < 4; ++axis) {
      shape.push_back(Dim::named("n" + std::to_string(4 * i + axis)));
    }
    builder.parameter("", {ElementType::u8, shape});
    extents.push_back({1, 2, 3, i});
  }
  builder.result(0);
  const auto function = builder.finish();
  ASSERT_TRUE(function) << function.error().message;
  EXPECT_TRUE(bind_shapes(**function, extents));
}

}  // namespace
}  // namespace castor
