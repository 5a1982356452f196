// SPDX-License-Identifier: Apache-2.0
// The text form: round trips, positions, constants, built functions.
#include "ir/text/text.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/builder.hpp"
#include "tests/support/texts.hpp"
#include "tools/testing/samples.hpp"

namespace castor {
namespace {

using texts::expect_round_trip;
using texts::printed;
using texts::with_bindings;

TEST(Text, CanonicalTextsPrintAsTheyStand) {
  for (std::string_view text : texts::canonical_texts) {
    const auto functions = parse(text, with_bindings);
    ASSERT_TRUE(functions.ok()) << functions.error().to_string();
    EXPECT_EQ(printed(*functions), text);
    expect_round_trip(text);
  }
}

TEST(Text, OtherSpellingsPrintCanonically) {
  for (const texts::Spelling& row : texts::spellings) {
    expect_round_trip(row.text);
    const auto functions = parse(row.text);
    ASSERT_TRUE(functions.ok());
    EXPECT_EQ(printed(*functions), row.canonical);
  }
}

TEST(Text, OperationsKnowTheirPositions) {
  const auto function = parse_function(
      "func @f(%x: f32[2]) -> (i8[2], f32[]) {\n"
      "  %y = convert %x : i8 %c =\n"
      "\t\tconstant 1 : f32[]\n"
      "  return %y, %c\n}");
  ASSERT_TRUE(function.ok());
  const auto& operations = (*function)->operations;
  ASSERT_EQ(operations.size(), 2u);
  EXPECT_EQ(operations[0].where.line, 2u);
  EXPECT_EQ(operations[0].where.column, 3u);
  EXPECT_EQ(operations[1].where.line, 2u);
  EXPECT_EQ(operations[1].where.column, 24u);
  EXPECT_EQ(print(**function, operations[0]), "%y = convert %x : i8");
}

/// Every code of the types of up to 8 bits, at every count that ends within a byte or a group.
TEST(Text, SmallConstantsArePackedAndReadBack) {
  for (const ElementInfo& row : element_table) {
    if (row.bits > 8) continue;
    const auto codes = static_cast<size_t>(1) << row.bits;
    for (size_t count : {codes, codes + 1, codes + 3, codes + 7}) {
      std::string list;
      std::vector<uint64_t> patterns;
      for (size_t i = 0; i < count; ++i) {
        patterns.push_back(i % codes);
        list += fmt::format("{}{:#x}", i == 0 ? "" : ", ", patterns.back());
      }
      const std::string text =
          fmt::format("func @f() -> ({0}[{1}]) {{ %a = constant [{2}] : {0}[{1}] return %a }}",
                      row.name, count, list);
      expect_round_trip(text);
      const auto function = parse_function(text);
      ASSERT_TRUE(function.ok()) << text << function.error().to_string();
      EXPECT_EQ((*function)->operations[0].data->bytes, samples::pack(row.type, patterns)) << text;
    }
  }
}

TEST(Text, ConstantsHoldTheirBits) {
  const auto function = parse_function(
      "func @f() -> (u16[2], i8[2, 2]) { %a = constant [258, 65535] : u16[2] "
      "%b = constant @w : i8[2, 2] return %a, %b }",
      "f", with_bindings);
  ASSERT_TRUE(function.ok());
  const auto& operations = (*function)->operations;
  const auto bytes = [](std::initializer_list<int> values) {
    std::vector<std::byte> list;
    for (int value : values) list.push_back(static_cast<std::byte>(value));
    return list;
  };
  EXPECT_EQ(operations[0].data->bytes, bytes({2, 1, 255, 255}));
  EXPECT_EQ(operations[0].data->binding, "");
  EXPECT_EQ(operations[1].data->bytes, bytes({1, 2, 3, 4}));
  EXPECT_EQ(operations[1].data->binding, "w");
}

TEST(Text, BuiltFunctionsReadBack) {
  FunctionBuilder builder("built");
  const ValueId x = builder.parameter("", {ElementType::f64, {"?n", 3, "?"}});
  const ValueId y = builder.convert(
      x, ElementType::i16, {.overflow = Overflow::wrap, .rounding = Rounding::nearest_away});
  const std::array<std::byte, 4> bytes = {std::byte{1}, {}, std::byte{255}, std::byte{127}};
  const ValueId c = builder.constant({ElementType::i16, {2, 1}}, bytes);
  builder.result(y);
  builder.result(c);
  builder.result(y, TensorType{ElementType::i16, {"?n", "?", "?m"}});
  const auto function = builder.finish();
  ASSERT_TRUE(function.ok()) << function.error().to_string();
  const std::string text = print(**function);
  EXPECT_EQ(text,
            "func @built(%0: f64[?n, 3, ?]) -> (i16[?n, 3, ?], i16[2, 1], i16[?n, ?, ?m]) {\n"
            "  %1 = convert %0 {overflow = wrap, rounding = nearest_away} : i16\n"
            "  %2 = constant [[1], [32767]] : i16[2, 1]\n"
            "  return %1, %2, %1\n}\n");
  const auto back = parse_function(text);
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_TRUE(same_computation(**function, **back));
  EXPECT_EQ(print(**back), text);
}

TEST(Text, FunctionsArePickedByName) {
  const std::string_view two =
      "func @a(%x: u8[]) -> u8[] {return %x} func @b(%x: i8[]) -> i8[] {return %x}";
  EXPECT_EQ((*parse_function(two, "b"))->name, "b");
  EXPECT_EQ((*parse_function(two.substr(0, 37)))->name, "a");
  EXPECT_EQ(parse_function(two).error().message,
            "found 2 functions (@a, @b), expected one function");
  EXPECT_EQ(parse_function(two, "c").error().message, "found 2 functions (@a, @b), expected @c");
  EXPECT_EQ(parse_function(two, "c").error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace castor
