// SPDX-License-Identifier: Apache-2.0
// What is known of the size of values, and the conversions that rely on it: numbers that surely fit
// i32 become integers without bounds and tests for NaN.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/text/text.hpp"
#include "jit/lower/magnitudes.hpp"
#include "jit/plan/nest.hpp"
#include "tests/support/on_every_engine.hpp"

namespace castor::test {
namespace {

constexpr double unknown = std::numeric_limits<double>::infinity();

/// The magnitudes of the value %v of a function of that signature and body.
double magnitude_of(const std::string& signature, const std::string& body) {
  const auto function = parse_function("func @f(" + signature + " {\n" + body + "\n}\n");
  EXPECT_TRUE(function) << function.error().to_string();
  if (!function) return -1;
  const jit::Magnitudes magnitudes(**function);
  for (ValueId value = 0; value < (*function)->values.size(); ++value) {
    if ((*function)->values[value].name == "v") return magnitudes.bound(value);
  }
  ADD_FAILURE() << "no %v";
  return -1;
}

struct BoundRow {
  const char* signature;
  const char* body;
  double bound;
};

TEST(Magnitudes, BoundsOfValues) {
  const char* const of_bytes = "%x: i8[4]) -> f32[4]";
  const BoundRow rows[] = {
      {"%v: u8[4]) -> u8[4]", "return %v", 255},
      {"%v: i8[4]) -> i8[4]", "return %v", 128},
      {"%v: i32[4]) -> i32[4]", "return %v", 0x1p31},
      {"%v: f32[4]) -> f32[4]", "return %v", unknown},
      {"%v: boolean[4]) -> boolean[4]", "return %v", 1},
      {of_bytes, "%v = convert %x : f32\nreturn %v", 128},
      {of_bytes,
       "%a = convert %x : f32\n%c = constant [1, -2.5, 0, 2] : f32[4]\n"
       "%v = mul %a, %c\nreturn %v",
       320},
      {of_bytes,
       "%a = convert %x : f32\n%c = constant [1, -2.5, 0, 2] : f32[4]\n"
       "%v = add %a, %c\nreturn %v",
       130.5},
      {of_bytes,
       "%a = convert %x : f32\n%c = constant -3.0 : f32[]\n"
       "%v = sub %c, %a\nreturn %v",
       131},
      {of_bytes, "%a = convert %x : f32\n%b = neg %a\n%c = abs %b\n%v = relu %c\nreturn %v", 128},
      {of_bytes, "%a = convert %x : f32\n%v = floor %a\nreturn %v", 129},
      {of_bytes, "%a = convert %x : f32\n%v = clamp %a {lo = 500, hi = 600.5}\nreturn %v", 600.5},
      {of_bytes,
       "%a = convert %x : f32\n%c = constant -3.0 : f32[]\n"
       "%v = prelu %a, %c\nreturn %v",
       384},
      {of_bytes,
       "%a = convert %x : f32\n%c = constant 1.0e36 : f32[]\n"
       "%v = mul %a, %c\nreturn %v",
       128e36},
      {of_bytes,
       "%a = convert %x : f32\n%c = constant 1.0e37 : f32[]\n"
       "%v = mul %a, %c\nreturn %v",
       unknown},
      {of_bytes,
       "%a = convert %x : f32\n%c = constant inf : f32[]\n"
       "%v = add %a, %c\nreturn %v",
       unknown},
      {of_bytes,
       "%a = convert %x : f32\n%c = constant nan : f32[]\n"
       "%v = max %a, %c\nreturn %v",
       unknown},
      {of_bytes, "%a = convert %x : f32\n%b = sqrt %a\n%v = mul %b, %a\nreturn %v", unknown},
      {of_bytes,
       "%a = convert %x : f32\n%c = constant [1, -2.5, 0, 300] : f32[4]\n"
       "%v = min %a, %c\nreturn %v",
       300},
      {of_bytes,
       "%a = convert %x : f32\n%c = constant 200.0 : f32[]\n%k = constant 3.0 : f32[]\n"
       "%m = less %a, %k\n%v = select %m, %a, %c\nreturn %v",
       200},
      {of_bytes, "%a = convert %x : f32\n%v = broadcast %a : [3, 4]\nreturn %a", 128},
      {of_bytes, "%a = convert %x : f32\n%v = reshape %a : [2, 2]\nreturn %a", 128},
      {of_bytes, "%a = convert %x : f64\n%v = mul %a, %a\n%y = convert %v : f32\nreturn %y",
       128 * 128},
      {"%x: i8[4], %s: f32[4]) -> f32[4]", "%a = convert %x : f32\n%v = mul %a, %s\nreturn %v",
       unknown},
      {"%x: i8[4]) -> f16[4]", "%v = convert %x : f16\nreturn %v", unknown},
      {"%x: i8[4]) -> i32[4]", "%a = convert %x : i32\n%v = mul %a, %a\nreturn %v", 128 * 128},
      {"%x: i8[4]) -> i32[4]",
       "%a = convert %x : i32\n%c = constant [7, -300, 0, 2] : i32[4]\n%v = sub %c, %a\nreturn %v",
       428},
      {"%x: i16[4]) -> i32[4]", "%a = convert %x : i32\n%v = add %a, %a\nreturn %v", 65536},
      {"%x: i16[4]) -> i16[4]", "%v = add %x, %x\nreturn %v", 32768},
      {"%x: i32[4]) -> i32[4]", "%v = clamp %x {lo = -3, hi = 2.5}\nreturn %v", 3},
      {"%x: i32[4]) -> i32[4]", "%v = clamp %x {lo = -3}\nreturn %v", 0x1p31},
      {"%x: i32[4]) -> i8[4]", "%a = clamp %x {lo = -3, hi = 9}\n%v = convert %a : i8\nreturn %v",
       9},
      {"%x: i32[4]) -> i8[4]", "%a = clamp %x {lo = -300, hi = 9}\n%v = convert %a : i8\nreturn %v",
       128},
      {"%x: i32[4]) -> u8[4]", "%a = clamp %x {lo = -3, hi = 9}\n%v = convert %a : u8\nreturn %v",
       255},
      {of_bytes,
       "%a = convert %x : f32\n%c = constant [1, -0.5, 4, 300] : f32[4]\n"
       "%v = div %a, %c\nreturn %v",
       256},
      {of_bytes,
       "%a = convert %x : f32\n%c = constant [1, 0, 4, 300] : f32[4]\n%v = div %a, %c\nreturn %v",
       unknown},
      {of_bytes, "%a = convert %x : f32\n%c = constant 1.0e-38 : f32[]\n%v = div %a, %c\nreturn %v",
       unknown},
      {"%x: u8[1, 4, 5, 5], %w: i8[4, 1, 3, 3]) -> i32[1, 4, 3, 3]",
       "%v = conv_integer %x, %w {group = 4}\nreturn %v", 9 * 255 * 255},
      {"%x: u8[1, ?, 5, 5], %w: i8[4, ?, 3, 3]) -> i32[1, 4, 3, 3]",
       "%v = conv_integer %x, %w\nreturn %v", 0x1p31},
      {"%x: u8[1, 9999, 5, 5], %w: i8[4, 9999, 3, 3]) -> i32[1, 4, 3, 3]",
       "%v = conv_integer %x, %w\nreturn %v", 0x1p31},
  };
  for (const BoundRow& row : rows) {
    const double found = magnitude_of(row.signature, row.body);
    EXPECT_GE(found, row.bound) << row.body;
    EXPECT_LE(found, row.bound * (1 + 1e-5)) << row.body;
  }
}

/// Instructions that hold a conversion's operand in bounds.
int bounding(const std::string& text) {
  const FunctionPtr function = parse_function(text).value();
  int count = 0;
  for (const jit::Nest& nest : jit::plan_nests(*function, jit::Target{Tier::avx512})) {
    for (const jit::LaneInst& inst : nest.program.code) {
      count += inst.op == jit::LaneOp::float_min || inst.op == jit::LaneOp::float_compare;
    }
  }
  return count;
}

/// What the interpreter is compared with below is code without bounds where these are known.
TEST(Magnitudes, ConversionsThatNeedNoBounds) {
  const auto scaled = [](const char* scale, const char* to) {
    return fmt::format(
        "func @f(%x: u8[4]) -> {1}[4] {{\n  %s = constant {0} : f32[]\n  %a = convert %x : f32\n"
        "  %b = mul %a, %s\n  %y = convert %b {{overflow = saturate}} : {1}\n  return %y\n}}\n",
        scale, to);
  };
  for (const char* to : {"u4", "i4", "u8", "i8", "u16", "i16", "i32"}) {
    EXPECT_EQ(bounding(scaled("4.0e6", to)), 0) << to;
    EXPECT_GT(bounding(scaled("5.0e6", to)), 0) << to;
  }
}

/// Constants around what i32 and the destination hold, every byte, every rounding.
TEST(Magnitudes, ConvertedAsByTheInterpreter) {
  const char* const scales[] = {"0.37", "-1.5", "257.0", "-33000.5", "4.1e6", "8.4e6", "-8.43e6"};
  const char* const shifts[] = {"0.5", "-127.5", "65535.5", "-1.0e9", "1.073e9", "2.0e9"};
  const char* const roundings[] = {"toward_zero", "nearest_even", "down",
                                   "up",          "nearest_away", "half_up"};
  std::mt19937_64 random(1);
  const auto any_of = [&](const auto& all) { return all[random() % std::size(all)]; };
  for (ElementType from : {ElementType::u8, ElementType::i8, ElementType::i16}) {
    Patterns x{from, {256}, {}};
    for (uint64_t i = 0; i < 256; ++i) {
      x.elements.push_back(from == ElementType::i16 ? random() & 0xffff : i);
    }
    for (const char* between : {"f32", "f64"}) {
      for (ElementType to : {ElementType::u1, ElementType::u4, ElementType::i4, ElementType::u8,
                             ElementType::i8, ElementType::u16, ElementType::i16, ElementType::i32,
                             ElementType::u32, ElementType::i64, ElementType::u64}) {
        for (const char* overflow : {"saturate", "wrap"}) {
          for (const char* scale : scales) {
            const std::string text = fmt::format(
                "func @f(%x: {0}[256]) -> {1}[256] {{\n"
                "  %k = constant {2} : f32[]\n  %l = constant {3} : f32[]\n"
                "  %s = convert %k : {6}\n  %t = convert %l : {6}\n"
                "  %a = convert %x : {6}\n  %b = mul %a, %s\n  %c = add %b, %t\n"
                "  %y = convert %c {{overflow = {4}, rounding = {5}}} : {1}\n  return %y\n}}\n",
                name_of(from), name_of(to), scale, any_of(shifts), overflow, any_of(roundings),
                between);
            const auto function = parse_function(text);
            ASSERT_TRUE(function) << function.error().to_string();
            const Patterns expected = interpreted(**function, {x});
            ASSERT_EQ(mistake_anywhere(*function, {x}, expected), "") << text;
          }
        }
      }
    }
  }
}

/// What is rounded up to the smallest subnormal number, twice, gets four times as large.
TEST(Magnitudes, SubnormalNumbersAreRoundedUp) {
  Patterns x{ElementType::u8, {256}, {}};
  for (uint64_t i = 0; i < 256; ++i) x.elements.push_back(i);
  std::string text = "func @f(%x: u8[256]) -> i8[256] {\n  %0 = convert %x : f32\n";
  const double factors[] = {0x1p-100, 1.01 * 0x1p-50 / 255, 0x1p100, 1.01 * 0x1p-101, 0x1p127,
                            0x1p53};
  int last = 0;
  for (double factor : factors) {
    text += fmt::format("  %c{0} = constant {1:.9e} : f32[]\n  %{2} = mul %{0}, %c{0}\n", last,
                        factor, last + 1);
    ++last;
  }
  text += fmt::format("  %y = convert %{} {{overflow = saturate}} : i8\n  return %y\n}}\n", last);
  const auto function = parse_function(text);
  ASSERT_TRUE(function) << function.error().to_string();
  const Patterns expected = interpreted(**function, {x});
  EXPECT_EQ(expected.elements.back(), 127u);
  EXPECT_EQ(mistake_anywhere(*function, {x}, expected), "");
}

}  // namespace
}  // namespace castor::test
