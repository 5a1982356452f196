// SPDX-License-Identifier: Apache-2.0
// Plans: which values share a nest, which become tensors in scratch, and the order of nests.
#include <gtest/gtest.h>

#include "ir/text/text.hpp"
#include "jit/plan/nest.hpp"

namespace castor::jit {
namespace {

FunctionPtr function_of(const std::string& text) { return std::move(parse_function(text)).value(); }

/// "a b, scratch c": the names of the values that each nest leaves, nest by nest.
std::string plan_of(const std::string& text) {
  const FunctionPtr function = function_of(text);
  std::string plan;
  for (const Nest& nest : plan_nests(*function, Target{Tier::avx512})) {
    plan += plan.empty() ? "" : ", ";
    for (size_t i = 0; i < nest.outputs.size(); ++i) {
      const NestOutput& output = nest.outputs[i];
      plan += i == 0 ? "" : " ";
      plan += output.is_scratch() ? "scratch " : "";
      plan += function->values[output.value].name;
    }
  }
  return plan;
}

TEST(Plan, ValuesOfOneShapeShareANest) {
  EXPECT_EQ(plan_of("func @f(%x: f32[4], %y: u8[7]) -> (i8[4], f16[7], f64[4]) {\n"
                    "  %a = convert %x : i8\n  %b = convert %y : f16\n"
                    "  %c = convert %x : f64\n  return %a, %b, %c\n}\n"),
            "a c, b");
  EXPECT_EQ(plan_of("func @f(%x: f32[?n], %y: u8[?n]) -> (i8[?n], f16[?n]) {\n"
                    "  %a = convert %x : i8\n  %b = convert %y : f16\n  return %a, %b\n}\n"),
            "a b")
      << "a named extent is the same everywhere";
  EXPECT_EQ(plan_of("func @f(%x: f32[?], %y: u8[?]) -> (i8[?], f16[?]) {\n"
                    "  %a = convert %x : i8\n  %b = convert %y : f16\n  return %a, %b\n}\n"),
            "a, b")
      << "of unnamed ones nothing is known";
}

TEST(Plan, CheapValuesAreComputedWhereTheyAreBroadcast) {
  EXPECT_EQ(plan_of("func @f(%x: f32[5, 7], %r: u8[7]) -> f32[5, 7] {\n"
                    "  %a = convert %r : f32\n  %y = add %x, %a\n  return %y\n}\n"),
            "y");
}

constexpr const char* costly_row =
    "  %a = sqrt %r\n  %b = div %a, %r\n  %c = sqrt %b\n  %d = div %r, %c\n";

TEST(Plan, CostlyValuesAreInScratch) {
  EXPECT_EQ(plan_of(std::string("func @f(%x: f32[5, 7], %r: f32[7]) -> f32[5, 7] {\n") +
                    costly_row + "  %y = add %x, %d\n  return %y\n}\n"),
            "scratch d, y");
}

TEST(Plan, WhatARowSharesIsHoistedInstead) {
  EXPECT_EQ(plan_of(std::string("func @f(%x: f32[5, 7], %r: f32[5, 1]) -> f32[5, 7] {\n") +
                    costly_row + "  %y = add %x, %d\n  return %y\n}\n"),
            "y");
}

TEST(Plan, OneBroadcastForTwoSpaces) {
  EXPECT_EQ(plan_of(std::string("func @f(%r: f32[7]) -> (f32[5, 7], f32[7, 3]) {\n") + costly_row +
                    "  %y = broadcast %d : [5, 7]\n"
                    "  %z = broadcast %d {mode = explicit, axes = [0]} : [7, 3]\n"
                    "  return %y, %z\n}\n"),
            "scratch d, y, z");
}

TEST(Plan, ReshapesLookAtMemory) {
  EXPECT_EQ(plan_of("func @f(%x: f32[6]) -> f32[2, 3] {\n"
                    "  %a = reshape %x : [2, 3]\n  %y = sqrt %a\n  return %y\n}\n"),
            "y");
  EXPECT_EQ(plan_of("func @f(%x: f32[6]) -> f32[2, 3] {\n  %s = sqrt %x\n"
                    "  %a = reshape %s : [2, 3]\n  %y = neg %a\n  return %y\n}\n"),
            "scratch s, y");
}

/// A value that later nests read from memory is stored once: as the result that it is.
TEST(Plan, ResultsAreReadWhereTheyAre) {
  EXPECT_EQ(plan_of("func @f(%x: f32[6]) -> (f32[6], f32[2, 3], f32[6]) {\n  %s = sqrt %x\n"
                    "  %a = reshape %s : [2, 3]\n  %y = neg %a\n  return %s, %y, %s\n}\n"),
            "s, y, s")
      << "the second time it is a copy";
  EXPECT_EQ(
      plan_of("func @f(%x: f16[6]) -> (f16[6], f16[2, 3]) attributes {excess_precision = allow} {\n"
              "  %s = sqrt %x\n  %d = mul %s, %s\n  %b = broadcast %d : [2, 6]\n"
              "  %a = reshape %d : [2, 3]\n  %y = neg %a\n  return %d, %y\n}\n")
          .substr(0, 7),
      "scratch")
      << "what is handed on in f32 is no f16 result";
}

TEST(Plan, SumsOfConvolutionsAreNotKeptForReductions) {
  EXPECT_EQ(plan_of("func @f(%x: u8[1, 4, 8, 8], %w: i8[4, 4, 3, 3]) -> f32[] {\n"
                    "  %c = conv_integer %x, %w\n  %f = convert %c : f32\n"
                    "  %m = reduce_max %f\n  return %m\n}\n"),
            "scratch c, scratch f, scratch m scratch m, m");
  EXPECT_EQ(plan_of("func @f(%x: u8[1, 4, 8, 8], %w: i8[4, 4, 3, 3]) -> (f32[], i32[1, 4, 6, 6]) "
                    "{\n  %c = conv_integer %x, %w\n  %f = convert %c : f32\n"
                    "  %m = reduce_max %f\n  return %m, %c\n}\n"),
            "scratch c, scratch m scratch m, c, m")
      << "a result is in memory anyway";
}

/// An epilogue would compute for each of its tiles what other nests compute once a row.
TEST(Plan, EpiloguesReadWhatTheirTilesShare) {
  const auto epilogue_of = [](const std::string& scale) {
    return plan_of(
        "func @f(%x: u8[1, 4, 8, 8], %w: i8[4, 4, 3, 3], %t: f32[1, 4, 8, 8], "
        "%c: f32[4, 1, 1], %e: f32[]) -> f32[1, 4, 6, 6] {\n"
        "  %y = conv_integer %x, %w\n  %f = convert %y : f32\n" +
        scale + "  %z = mul %f, %s\n  return %z\n}\n");
  };
  EXPECT_EQ(epilogue_of("  %m = reduce_max %t\n  %s = mul %m, %e\n"),
            "scratch m scratch m, scratch s, scratch y, z");
  EXPECT_EQ(epilogue_of("  %d = div %c, %e\n  %s = div %d, %e\n"), "scratch s, scratch y, z")
      << "by channel";
  EXPECT_EQ(epilogue_of("  %d = mul %e, %e\n  %s = div %d, %e\n"), "scratch y, z")
      << "as in qlinear_conv";
}

TEST(Plan, NestsReadABoundedNumberOfTensors) {
  std::string text = "func @f(%p0: f32[4]";
  std::string body = "  %s0 = add %p0, %p1\n";
  for (int i = 1; i < 200; ++i) text += ", %p" + std::to_string(i) + ": f32[4]";
  for (int i = 2; i < 200; ++i) {
    body += "  %s" + std::to_string(i - 1) + " = add %s" + std::to_string(i - 2) + ", %p" +
            std::to_string(i) + "\n";
  }
  text += ") -> f32[4] {\n" + body + "  return %s198\n}\n";
  const std::vector<Nest> nests = plan_nests(*function_of(text), Target{Tier::avx2});
  EXPECT_GT(nests.size(), 4u);
  for (const Nest& nest : nests) EXPECT_LE(nest.inputs.size(), max_inputs);
}

/// A tensor that is broadcast in many ways counts for each of them.
TEST(Plan, NestsReadABoundedNumberOfBroadcasts) {
  std::string text = "func @f(%x: f32[2]) -> f32[2, 2, 2, 2, 2, 2, 2, 2] {\n";
  const std::string target = " : [2, 2, 2, 2, 2, 2, 2, 2]\n";
  for (int i = 0; i < 100; ++i) {
    const std::string number = std::to_string(i);
    text += "  %n" + number + " = mul %x, %x\n  %b" + number + " = broadcast %n" + number +
            " {mode = explicit, axes = [" + std::to_string(i % 8) + "]}" + target;
    text += i == 0 ? ""
                   : "  %s" + number + " = add %" + (i == 1 ? "b0" : "s" + std::to_string(i - 1)) +
                         ", %b" + number + "\n";
  }
  text += "  return %s99\n}\n";
  for (const Nest& nest : plan_nests(*function_of(text), Target{Tier::avx2})) {
    EXPECT_LE(nest.inputs.size(), max_inputs);
  }
}

/// The program may contain a constant of one element, but reads no tensor for it.
TEST(Plan, ScalarConstantsAreInTheCode) {
  const FunctionPtr function = function_of(
      "func @f(%x: f32[?]) -> f32[?] {\n  %c = constant 0.5 : f32[]\n"
      "  %y = mul %x, %c\n  return %y\n}\n");
  const std::vector<Nest> nests = plan_nests(*function, Target{Tier::avx2});
  ASSERT_EQ(nests.size(), 1u);
  EXPECT_EQ(nests[0].inputs.size(), 1u);
}

}  // namespace
}  // namespace castor::jit
