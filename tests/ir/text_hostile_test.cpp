// SPDX-License-Identifier: Apache-2.0
// Hostile texts: long, deep and mutated ones are read or refused, in linear time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/text/text.hpp"
#include "tests/support/texts.hpp"

namespace castor {
namespace {

using texts::error_of;
using texts::expect_round_trip;
using texts::with_bindings;

// Puts what follows on line 2, into the body of a function.
#define IN_F "func @f(%x: f32[2]) -> (f32[2]) {\n"

std::string repeated(std::string_view text, size_t count) {
  std::string out;
  out.reserve(text.size() * count);
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

TEST(TextHostile, NestingIsBounded) {
  const std::string attribute = IN_F "%y = convert %x {overflow = ";
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  // 32 lists are read, and then refused by the verifier for their kind.
  EXPECT_NE(error_of(attribute + nested(max_nesting) + "} : f32 return %y }").find("is a list"),
            std::string::npos);
  EXPECT_EQ(error_of(attribute + nested(max_nesting + 1)),
            "line 2, column 61: found a list inside 32 lists, expected at most 32");
  EXPECT_EQ(error_of(IN_F "%y = constant " + nested(max_nesting + 1)),
            "line 2, column 47: found a list inside 32 lists, expected at most 32");
  const std::string deepest = "[" + repeated("1, ", 15) + "1]";
  expect_round_trip("func @f() -> i8[" + deepest.substr(1) + "{ %y = constant " +
                    std::string(16, '[') + "7" + std::string(16, ']') + " : i8" + deepest +
                    " return %y }");
}

TEST(TextHostile, TooLongTextsAreRefused) {
  const std::string blanks(max_text_bytes + 1, ' ');
  EXPECT_EQ(error_of(blanks),
            "line 1, column 1: found 16777217 bytes of text, expected at most 16777216");
  EXPECT_EQ(error_of(std::string_view(blanks).substr(1)),
            "line 1, column 16777217: found the end of the text, expected 'func'");
}

TEST(TextHostile, LongTextsTakeLinearTime) {
  // Each of these takes minutes where anything is quadratic.
  const size_t size = max_text_bytes - 200;
  const std::string head = "func @f(%x: f32[2]) -> (f32[2]) {\n";
  for (std::string_view garbage : {"[", "a", "\"", "/", "%", "\n", "1", "{", "\x80", "-"}) {
    EXPECT_NE(error_of(repeated(garbage, size)), "no error");
    EXPECT_NE(error_of(head + "%y = constant " + repeated(garbage, size)), "no error");
    EXPECT_NE(error_of(head + "%y = convert %x {overflow = " + repeated(garbage, size)),
              "no error");
  }
  EXPECT_NE(error_of(head + "%y = convert " + repeated("%x, ", size / 4)), "no error");
  EXPECT_NE(error_of("func @f(%x: f32[" + repeated("1, ", size / 3)), "no error");
  EXPECT_NE(error_of(head + "return " + repeated("%x, ", size / 4) + "%x }"), "no error");
  const std::string digits = "0." + std::string(size - 2, '7');
  const auto one =
      parse_function("func @f() -> f32[] {%y = constant " + digits + " : f32[] return %y}");
  ASSERT_TRUE(one.ok()) << one.error().to_string();
  EXPECT_NE(print(**one).find("constant 0.7777778 :"), std::string::npos);
  const size_t count = size / 3;
  const auto many = parse_function(
      fmt::format("func @f() -> i8[{0}] {{%y = constant [{1}0] : i8[{0}] return %y}}", count + 1,
                  repeated("1, ", count)));
  ASSERT_TRUE(many.ok()) << many.error().to_string();
  EXPECT_EQ((*many)->operations[0].data->bytes.size(), count + 1);
}

TEST(TextHostile, LongMessagesAreCut) {
  const std::string error = error_of(IN_F "%y = convert %x {overflow = [" +
                                     repeated("abc, ", 1000) + "d]} : f32 return %y }");
  EXPECT_LT(error.size(), 1100u);
  EXPECT_NE(error.find("..."), std::string::npos);
}

TEST(TextHostile, MutatedTextsAreReadOrRefused) {
  std::vector<std::string> good;
  for (std::string_view text : texts::canonical_texts) good.emplace_back(text);
  for (const texts::Spelling& row : texts::spellings) good.emplace_back(row.text);
  const std::string_view parts = "%@?()[]{},:=->\"\\/ \n\r\t0129xe.+naif_$\x7f\x80\xff";
  std::mt19937_64 random(4);
  int read = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = good[random() % good.size()];
    for (uint64_t n = 1 + random() % 3; n > 0 && !text.empty(); --n) {
      const size_t at = random() % text.size();
      const char part = random() % 4 ? parts[random() % parts.size()] : static_cast<char>(random());
      switch (random() % 4) {
        case 0: text[at] = part; break;
        case 1: text.insert(at, 1, part); break;
        case 2: text.erase(at, 1 + random() % 8); break;
        default: text.insert(at, text, random() % text.size(), random() % 16);
      }
    }
    const auto functions = parse(text, with_bindings);
    if (functions) {
      ++read;
      expect_round_trip(text);
    } else {
      EXPECT_TRUE(functions.error().where.known()) << text << functions.error().message;
      EXPECT_FALSE(functions.error().message.empty()) << text;
      EXPECT_NE(functions.error().code, ErrorCode::internal) << text;
    }
  }
  EXPECT_GT(read, 500);  // the mutations are small enough to leave some texts good
}

}  // namespace
}  // namespace castor
