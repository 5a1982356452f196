// SPDX-License-Identifier: Apache-2.0
// Reductions in the IR: text, builder, result types, mistakes.
#include <fmt/format.h>

#include "ir/builder.hpp"
#include "ir/verify/infer.hpp"
#include "tests/support/texts.hpp"

namespace castor::test {
namespace {

std::string around(std::string_view parameter, std::string_view result,
                   std::string_view operation) {
  return fmt::format("func @f(%x: {}) -> ({}) {{\n  %y = {}\n  return %y\n}}\n", parameter, result,
                     operation);
}

TEST(ReductionText, PrintsAsItStands) {
  const std::string texts[] = {
      around("f32[2, 3]", "f32[]", "reduce_max %x"),
      around("f32[2, 3]", "f32[2]", "reduce_min %x {axes = [1]}"),
      around("f32[2, 3]", "f32[3]", "reduce_max_abs %x {axes = [-2]}"),
      around("f32[?n, 3]", "f32[?n, 1]", "reduce_sum %x {axes = [1], keep_dims = true}"),
      around("f32[?n, 3]", "f32[?n, 3]", "reduce_sum %x {axes = []}"),
      around("u8[?n, 3]", "i32[?n]", "reduce_sum %x {axes = [1], accumulator = i32}"),
      around("i4[?, 3]", "i64[3]", "reduce_sum %x {axes = [0], accumulator = i64}"),
      around("f16[2, 3, 4, 5]", "f16[3, 5]", "reduce_max %x {axes = [2, 0]}"),
  };
  for (const std::string& text : texts) {
    const auto function = parse_function(text);
    ASSERT_TRUE(function) << text << function.error().to_string();
    EXPECT_EQ(print(**function), text);
  }
}

TEST(ReductionBuilder, SaysWhatTheTextSays) {
  FunctionBuilder builder("f");
  const ValueId x = builder.parameter("x", {ElementType::u8, {"?n", 5}});
  builder.result(builder.reduce(
      OpKind::reduce_sum, x, {.axes = {{1}}, .keep_dims = true, .accumulator = ElementType::i32}));
  builder.result(builder.reduce(OpKind::reduce_max, x));
  const auto function = builder.finish();
  ASSERT_TRUE(function) << function.error().to_string();
  EXPECT_EQ(print(**function),
            "func @f(%x: u8[?n, 5]) -> (i32[?n, 1], u8[]) {\n"
            "  %0 = reduce_sum %x {axes = [1], keep_dims = true, accumulator = i32}\n"
            "  %1 = reduce_max %x\n  return %0, %1\n}\n");
}

struct Mistake {
  const char* parameter;
  const char* operation;
  const char* message;
};

TEST(ReductionTypes, MistakesSayWhatWasFoundAndExpected) {
  constexpr Mistake mistakes[] = {
      {"f32[2, 3]", "reduce_max %x {axes = [2]}",
       "reduce_max: found axis 2, expected -2 to 1 for an operand of rank 2"},
      {"f32[2, 3]", "reduce_max %x {axes = [-3]}",
       "reduce_max: found axis -3, expected -2 to 1 for an operand of rank 2"},
      {"f32[]", "reduce_min %x {axes = [0]}",
       "reduce_min: found axis 0, expected none for an operand of rank 0"},
      {"f32[2, 3]", "reduce_max %x {axes = [1, -1]}", "reduce_max: axis 1 is given twice"},
      {"f32[2, 3]", "reduce_sum %x {accumulator = i32}",
       "reduce_sum: found accumulator = i32 for f32, expected it for integers only"},
      {"u64[2, 3]", "reduce_sum %x {accumulator = i32}",
       "reduce_sum: found accumulator = i32 for u64, expected at least 64 bits"},
      {"boolean[2]", "reduce_sum %x",
       "reduce_sum: operand 0 is boolean, expected an integer or a float (not boolean, f8e8m0, "
       "nf4)"},
      {"f8e8m0[2]", "reduce_max %x",
       "reduce_max: operand 0 is f8e8m0, expected an integer or a float (not boolean, f8e8m0, "
       "nf4)"},
      {"f32[2]", "reduce_max %x {axes = [true]}",
       "reduce_max: axes = [true] is a list, expected a list of integers"},
      {"f32[2]", "reduce_max %x {keep_dims = 1}",
       "reduce_max: keep_dims = 1 is an integer, expected true or false"},
  };
  for (const Mistake& mistake : mistakes) {
    const std::string error =
        texts::error_of(around(mistake.parameter, "f32[]", mistake.operation));
    EXPECT_NE(error.find(mistake.message), std::string::npos) << error;
  }
}

TEST(ReductionTypes, ExtentsFollowWhenTheyAreBound) {
  const auto function = parse_function(
      around("f32[?n, ?, 4]", "f32[?, 1, 1]", "reduce_sum %x {axes = [1, 2], keep_dims = true}"));
  ASSERT_TRUE(function) << function.error().to_string();
  const std::vector<Dims> shapes = {{7, 3, 4}};
  const auto bound = bind_shapes(**function, shapes);
  ASSERT_TRUE(bound);
  EXPECT_EQ(bound->values[(*function)->results[0]], (Dims{7, 1, 1}));
}

}  // namespace
}  // namespace castor::test
