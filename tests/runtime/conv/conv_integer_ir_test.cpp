// SPDX-License-Identifier: Apache-2.0
// conv_integer in the IR: its text, the builder, the verifier, the canonical form, and what they
// make of operands that are absent.
#include <fmt/format.h>

#include "ir/builder.hpp"
#include "ir/rewrite/canonicalize.hpp"
#include "ir/shape/convolution.hpp"
#include "ir/verify/verify.hpp"
#include "tests/support/texts.hpp"

namespace castor::test {
namespace {

std::string around(const std::string& operation, const std::string& parameters,
                   const std::string& result = "i32[1, 2, 3]") {
  return "func @f(" + parameters + ") -> (" + result + ") {\n  " + operation + "\n  return %y\n}\n";
}

TEST(ConvIntegerText, PrintsAsItStands) {
  const std::string both = "%x: u8[1, 4, 3], %w: i8[2, 4, 1], ";
  const std::string texts[] = {
      around("%y = conv_integer %x, %w", "%x: u8[1, 4, 3], %w: i8[2, 4, 1]"),
      around("%y = conv_integer %x, %w, %z", both + "%z: u8[]"),
      around("%y = conv_integer %x, %w, none, %z", both + "%z: i8[2]"),
      around("%y = conv_integer %x, %w, %z, %v", both + "%z: u8[1], %v: i8[1]"),
      around("%y = conv_integer %x, %w {auto_pad = same_lower, dilations = [1], group = 2, "
             "kernel_shape = [1], strides = [1], layout = nhwc}",
             "%x: u8[1, 3, 4], %w: i8[2, 2, 1]", "i32[1, 3, 2]"),
  };
  for (const std::string& text : texts) {
    const auto function = parse_function(text);
    ASSERT_TRUE(function) << text << function.error().to_string();
    EXPECT_EQ(print(**function), text);
    const auto again = parse_function(print(**function));
    ASSERT_TRUE(again);
    EXPECT_TRUE(same_computation(**function, **again));
    EXPECT_EQ((*function)->operations[0].operands.size(), 4u);
    EXPECT_EQ(canonicalize(*function), *function);
  }
}

TEST(ConvIntegerText, AbsentOperandsAreOneThingHoweverWritten) {
  const std::string parameters = "%x: u8[1, 4, 3], %w: i8[2, 4, 1]";
  const auto plain = parse_function(around("%y = conv_integer %x, %w", parameters));
  ASSERT_TRUE(plain);
  for (const char* operands : {"%x, %w, none", "%x, %w, none, none", "%x, %w {}"}) {
    const auto other =
        parse_function(around(fmt::format("%y = conv_integer {}", operands), parameters));
    ASSERT_TRUE(other) << operands;
    EXPECT_EQ((*other)->hash, (*plain)->hash);
    EXPECT_TRUE(same_computation(**other, **plain));
    EXPECT_EQ(print(**other), print(**plain));
  }
  // Which of two zero points is absent makes a difference.
  const auto of_x = parse_function(
      around("%y = conv_integer %x, %w, %z", "%x: i8[1, 4, 3], %w: i8[2, 4, 1], %z: i8[]"));
  const auto of_w = parse_function(
      around("%y = conv_integer %x, %w, none, %z", "%x: i8[1, 4, 3], %w: i8[2, 4, 1], %z: i8[]"));
  ASSERT_TRUE(of_x && of_w);
  EXPECT_NE((*of_x)->hash, (*of_w)->hash);
  EXPECT_FALSE(same_computation(**of_x, **of_w));
}

TEST(ConvIntegerBuilder, SaysWhatTheTextSays) {
  using enum ElementType;
  FunctionBuilder builder("f");
  const ValueId x = builder.parameter("x", {u8, {"?n", 9, 9, 4}});
  const ValueId w = builder.parameter("w", {i8, {6, 2, 3, 3}});
  const ValueId z = builder.parameter("z", {i8, {6}});
  const ConvolutionOptions options{.auto_pad = AutoPad::same_upper,
                                   .group = 2,
                                   .layout = ConvolutionLayout::nhwc,
                                   .dilations = {1, 2},
                                   .kernel_shape = {3, 3},
                                   .strides = {2, 1}};
  builder.result(builder.conv_integer(x, w, options, no_value, z));
  const auto function = builder.finish();
  ASSERT_TRUE(function) << function.error().to_string();
  EXPECT_EQ(print(**function),
            "func @f(%x: u8[?n, 9, 9, 4], %w: i8[6, 2, 3, 3], %z: i8[6]) -> (i32[?n, 5, 9, 6]) {\n"
            "  %0 = conv_integer %x, %w, none, %z {auto_pad = same_upper, dilations = [1, 2], "
            "group = 2, kernel_shape = [3, 3], strides = [2, 1], layout = nhwc}\n"
            "  return %0\n}\n");
  const auto back = convolution_options((*function)->operations[0], 2);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->strides, options.strides);
  EXPECT_EQ(back->pads, std::vector<int64_t>(4, 0));
  EXPECT_EQ(back->layout, options.layout);
}

TEST(ConvIntegerVerify, FunctionsMadeByHand) {
  using enum ElementType;
  Function function;
  function.name = "f";
  function.values = {{"x", {u8, {1, 4, 3}}}, {"w", {i8, {2, 4, 1}}}, {"y", {i32, {1, 2, 3}}}};
  function.parameters = {0, 1};
  function.operations = {
      {.op = OpKind::conv_integer, .operands = {0, 1, no_value, no_value}, .results = {2}}};
  function.results = {2};
  function.result_types = {{i32, {1, 2, 3}}};
  EXPECT_TRUE(verify(function));
  Function short_of = function;
  short_of.operations[0].operands = {0, 1};
  ASSERT_FALSE(verify(short_of));
  EXPECT_EQ(verify(short_of).error().message,
            "%y = conv_integer %x, %w: an op has the operands and results of its row: found 2 "
            "operands and 1 results, expected 4 and 1");
  Function absent = function;
  absent.operations[0].operands[1] = no_value;
  ASSERT_FALSE(verify(absent));
  EXPECT_EQ(verify(absent).error().message,
            "%y = conv_integer %x, none: results have the types that follow from the operands: "
            "conv_integer: operand 1 is none, but it is not optional");
  Function wrong = function;
  wrong.operations[0].attributes = {{"group", {int64_t{3}}}};
  ASSERT_FALSE(verify(wrong));
  EXPECT_EQ(verify(wrong).error().message,
            "%y = conv_integer %x, %w {group = 3}: results have the types that follow from the "
            "operands: conv_integer: group = 3, expected a divisor of x's channels, which are 4");
}

TEST(ConvIntegerCanonical, OnlyWhatNothingNeedsGoes) {
  const auto function = parse_function(
      "func @f(%x: u8[1, 4, 3], %w: i8[2, 4, 1], %z: i8[2]) -> (f32[1, 2, 3]) {\n"
      "  %unused = conv_integer %x, %w\n"
      "  %same = convert %x : u8\n"
      "  %y = conv_integer %same, %w, none, %z\n"
      "  %f = convert %y : f32\n"
      "  return %f\n}\n");
  ASSERT_TRUE(function) << function.error().to_string();
  const FunctionPtr canonical = canonicalize(*function);
  EXPECT_EQ(print(*canonical),
            "func @f(%x: u8[1, 4, 3], %w: i8[2, 4, 1], %z: i8[2]) -> (f32[1, 2, 3]) {\n"
            "  %y = conv_integer %x, %w, none, %z\n"
            "  %f = convert %y : f32\n"
            "  return %f\n}\n");
}

}  // namespace
}  // namespace castor::test
