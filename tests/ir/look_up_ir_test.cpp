// SPDX-License-Identifier: Apache-2.0
// look_up in the IR: its text, the builder, its rules when verified and when bound, the canonical
// form, and what the interpreter gives.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "ir/rewrite/canonicalize.hpp"
#include "ir/shape/look_up.hpp"
#include "tests/support/interpreted.hpp"
#include "tests/support/texts.hpp"

namespace castor {
namespace {

using test::interpreted;
using test::Patterns;
using test::row_of;

std::string around(std::string_view parameters, std::string_view result, std::string_view op) {
  return fmt::format("func @f({}) -> ({}) {{\n  %y = {}\n  return %y\n}}\n", parameters, result,
                     op);
}

TEST(LookUpIr, PrintsAsItStands) {
  for (const std::string& text : {
           around("%x: u8[?n, 3], %t: f32[256]", "f32[?n, 3]", "look_up %x, %t"),
           around("%x: i8[], %t: nf4[256]", "nf4[]", "look_up %x, %t"),
           around("%x: nf4[?], %t: u4[?]", "u4[?]", "look_up %x, %t"),
           around("%x: i4[2, ?c, 4], %t: f8e8m0[?c, 16]", "f8e8m0[2, ?c, 4]",
                  "look_up %x, %t {axis = 1}"),
           around("%x: f4e2m1[2], %t: boolean[2, ?]", "boolean[2]", "look_up %x, %t {axis = 0}"),
       }) {
    texts::expect_round_trip(text);
  }
}

TEST(LookUpIr, BuilderMakesTheSameFunctions) {
  FunctionBuilder builder("f");
  const ValueId x = builder.parameter("x", {ElementType::u8, {2, 3}});
  const ValueId t = builder.parameter("t", {ElementType::f16, {256}});
  const ValueId u = builder.parameter("u", {ElementType::u8, {3, 256}});
  builder.result(builder.look_up(builder.look_up(x, u, 1), t));
  const Result<FunctionPtr> function = builder.finish();
  ASSERT_TRUE(function) << function.error().message;
  EXPECT_EQ(print(**function),
            "func @f(%x: u8[2, 3], %t: f16[256], %u: u8[3, 256]) -> (f16[2, 3]) {\n"
            "  %0 = look_up %x, %u {axis = 1}\n  %1 = look_up %0, %t\n  return %1\n}\n");
}

struct Mistake {
  const char* parameters;
  const char* attributes;
  const char* error;
};

TEST(LookUpIr, MistakesSayWhatWasFoundAndExpected) {
  const Mistake rows[] = {
      {"%x: f32[2], %t: f32[256]", "", "operand 0 is f32, expected u8, i8, u4, i4, f4e2m1 or nf4"},
      {"%x: boolean[2], %t: f32[256]", "",
       "operand 0 is boolean, expected u8, i8, u4, i4, f4e2m1 or nf4"},
      {"%x: u8[2], %t: f32[255]", "",
       "the table has 255 entries, expected 256 as codes of u8 have 8 bits"},
      {"%x: nf4[2], %t: f32[256]", "",
       "the table has 256 entries, expected 16 as codes of nf4 have 4 bits"},
      {"%x: u8[2], %t: f32[2, 256]", "",
       "the table has rank 2, expected 1: without the attribute axis one table serves all "
       "elements"},
      {"%x: u8[2], %t: f32[]", "",
       "the table has rank 0, expected 1: without the attribute axis one table serves all "
       "elements"},
      {"%x: u8[2, 3], %t: f32[256]", " {axis = 1}",
       "the table has rank 1, expected 2: a row of entries for each index of axis 1 of x"},
      {"%x: u8[2, 3], %t: f32[2, 256]", " {axis = 1}",
       "axis 0 of the table is 2, expected 3 as axis 1 of x"},
      {"%x: u8[2, 3], %t: f32[1, 256]", " {axis = 1}",
       "axis 0 of the table is 1, expected 3 as axis 1 of x"},
      {"%x: u8[2, 3], %t: f32[3, 16]", " {axis = 1}",
       "the table has 16 entries, expected 256 as codes of u8 have 8 bits"},
      {"%x: u8[2, 3], %t: f32[3, 256]", " {axis = 2}",
       "found axis = 2, expected 0 to 1 as x has rank 2"},
      {"%x: u8[2, 3], %t: f32[3, 256]", " {axis = -1}",
       "found axis = -1, expected 0 to 1 as x has rank 2"},
      {"%x: u8[], %t: f32[1, 256]", " {axis = 0}", "found axis = 0, expected none: x has rank 0"},
      {"%x: u8[2], %t: f32[2, 256]", " {axis = 0.0}", "axis = 0.0 is a float, expected an integer"},
      {"%x: u8[2], %t: sa8<scale = 1, frac = 0>[256]", "",
       "operand 1 is sa8<scale = 1, frac = 0, zero_point = 0>[256], expected a type that is not "
       "quantized: only "
       "requantize takes quantized tensors"},
  };
  for (const Mistake& row : rows) {
    const std::string text =
        around(row.parameters, "f32[2]", fmt::format("look_up %x, %t{}", row.attributes));
    const std::string error = texts::error_of(text);
    EXPECT_EQ(error.substr(error.find("look_up: ")), fmt::format("look_up: {}", row.error));
  }
}

TEST(LookUpIr, UnknownExtentsAreCheckedWhenBound) {
  const auto function = parse_function(
      around("%x: u8[?, ?], %t: f32[?, ?]", "f32[?, ?]", "look_up %x, %t {axis = 1}"));
  ASSERT_TRUE(function);
  const auto error_of = [&](const Dims& x, const Dims& t) -> std::string {
    const Dims shapes[] = {x, t};
    const Result<BoundShapes> bound = bind_shapes(**function, shapes);
    return bound ? "" : bound.error().message;
  };
  EXPECT_EQ(error_of({2, 3}, {3, 256}), "");
  EXPECT_EQ(error_of({2, 0}, {0, 256}), "");
  EXPECT_EQ(error_of({2, 3}, {2, 256}),
            "look_up: axis 0 of the table is 2, expected 3 as axis 1 of x");
  EXPECT_EQ(error_of({2, 3}, {3, 255}),
            "look_up: the table has 255 entries, expected 256 as codes of u8 have 8 bits");
}

TEST(LookUpIr, IndicesAreBitPatterns) {
  using enum ElementType;
  std::vector<uint64_t> entries(256);
  std::iota(entries.begin(), entries.end(), 1000);
  const Patterns table = row_of(u16, entries);
  const Patterns small = row_of(u16, std::vector<uint64_t>(entries.begin(), entries.begin() + 16));
  EXPECT_EQ(interpreted(OpKind::look_up, {row_of(u8, {0, 255, 128}), table}),
            row_of(u16, {1000, 1255, 1128}));
  EXPECT_EQ(interpreted(OpKind::look_up, {row_of(i8, {0, 255, 128}), table}),
            row_of(u16, {1000, 1255, 1128}));
  for (const ElementType codes : {u4, i4, f4e2m1, nf4}) {
    EXPECT_EQ(interpreted(OpKind::look_up, {row_of(codes, {0, 15, 8}), small}),
              row_of(u16, {1000, 1015, 1008}));
  }
}

TEST(LookUpIr, AnAxisHasATableForEachIndex) {
  using enum ElementType;
  std::vector<uint64_t> entries(48);
  std::iota(entries.begin(), entries.end(), 0);
  const Patterns x = {u4, {2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15}};
  const Patterns table = {u8, {3, 16}, entries};
  EXPECT_EQ(interpreted(OpKind::look_up, {x, table}, {{"axis", {int64_t{1}}}}),
            (Patterns{u8, {2, 3, 2}, {0, 1, 18, 19, 36, 37, 6, 7, 24, 25, 42, 47}}));
  const Patterns two = {u8, {2, 16}, {entries.begin(), entries.begin() + 32}};
  EXPECT_EQ(interpreted(OpKind::look_up, {x, two}, {{"axis", {int64_t{0}}}}),
            (Patterns{u8, {2, 3, 2}, {0, 1, 2, 3, 4, 5, 22, 23, 24, 25, 26, 31}}));
}

/// Signalling NaNs, booleans that are not 0 or 1.
TEST(LookUpIr, BitsAreCopied) {
  using enum ElementType;
  std::vector<uint64_t> entries(16, 0);
  entries[3] = 0x7f800001;
  EXPECT_EQ(interpreted(OpKind::look_up, {row_of(u4, {3}), row_of(f32, entries)}),
            row_of(f32, {0x7f800001}));
  entries[3] = 0x80;
  EXPECT_EQ(interpreted(OpKind::look_up, {row_of(u4, {3}), row_of(boolean, entries)}),
            row_of(boolean, {0x80}));
}

/// Tables of sub-byte elements become tables of bytes, which have the same codes.
TEST(LookUpIr, CanonicalTablesHaveWholeBytes) {
  for (const ElementInfo& element : element_table) {
    if (!is_sub_byte(element.type)) continue;
    const auto function =
        parse_function(around("%x: u8[256], %t: " + std::string(element.name) + "[256]",
                              fmt::format("{}[256]", element.name), "look_up %x, %t"));
    ASSERT_TRUE(function);
    const FunctionPtr canonical = canonicalize(*function);
    EXPECT_EQ(canonical->operations.size(), 3u) << print(*canonical);
    EXPECT_EQ(canonicalize(canonical), canonical);
    Patterns x = {ElementType::u8, {256}, {}};
    Patterns table = {element.type, {256}, {}};
    for (uint64_t i = 0; i < 256; ++i) {
      x.elements.push_back(255 - i);
      table.elements.push_back(i & ((uint64_t{1} << element.bits) - 1));
    }
    EXPECT_EQ(interpreted(*canonical, {x, table}), interpreted(**function, {x, table}))
        << element.name;
  }
}

TEST(LookUpIr, NarrowConstantTablesStayConstant) {
  const auto function = parse_function(
      "func @f(%x: i4[3]) -> (i4[3]) {\n"
      "  %t = constant [0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1] : i4[16]\n"
      "  %y = look_up %x, %t\n  return %y\n}\n");
  ASSERT_TRUE(function);
  const FunctionPtr canonical = canonicalize(*function);
  EXPECT_EQ(print(*canonical),
            "func @f(%x: i4[3]) -> (i4[3]) {\n"
            "  %0 = constant [0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1] : i8[16]\n"
            "  %1 = look_up %x, %0\n  %y = convert %1 : i4\n  return %y\n}\n");
}

}  // namespace
}  // namespace castor
