// SPDX-License-Identifier: Apache-2.0
// CompileLimits: what exceeds one is refused by name, in texts at its position; what is at it is
// not.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <castor/castor.hpp>

#include "ir/builder.hpp"
#include "tools/testing/growing_functions.hpp"

namespace castor {
namespace {

/// Three operations, five values, three nests: %abs is computed once, and copied to %next.
constexpr std::string_view text =
    "func @f(%in: f32[?rows, 4], %m: f32[9]) -> (f32[?, 4], f32[9], f32[3, 3]) {\n"
    "  %out = neg %in\n"
    "  %abs = abs %m\n"
    "  %next = reshape %abs : [3, 3]\n"
    "  return %out, %abs, %next\n"
    "}\n";
/// With ?rows of %in and of %out.
constexpr size_t name_bytes = 1 + (2 + 4) + 1 + (3 + 4) + 3 + 4;

struct Row {
  std::string_view name;
  size_t CompileLimits::*limit;
  size_t found;
  std::string in_text;      ///< the message of the parser
  std::string in_function;  ///< the message of the runtime; empty: the limit is of texts alone
};

const Row rows[] = {
    {"text_bytes", &CompileLimits::text_bytes, text.size(),
     fmt::format("line 1, column 1: found {} bytes of text, expected at most {}", text.size(),
                 text.size() - 1),
     ""},
    {"operations", &CompileLimits::operations, 3,
     "line 4, column 3: @f: found 3 operations, expected at most 2",
     "@f: found 3 operations, expected at most 2"},
    {"values", &CompileLimits::values, 5,
     "line 4, column 3: @f: found 5 values, expected at most 4",
     "@f: found 5 values, expected at most 4"},
    {"name_bytes", &CompileLimits::name_bytes, name_bytes,
     fmt::format("line 4, column 3: @f: found {} bytes of names, expected at most {}", name_bytes,
                 name_bytes - 1),
     fmt::format("@f: found {} bytes of names, expected at most {}", name_bytes, name_bytes - 1)},
    {"nests", &CompileLimits::nests, 3, "", "@f: found 3 nests, expected at most 2"},
};

class CompileLimit : public testing::TestWithParam<Row> {};

CompileLimits with(const Row& row, size_t limit) {
  CompileLimits limits;
  limits.*row.limit = limit;
  return limits;
}

TEST_P(CompileLimit, OfTexts) {
  const Row& row = GetParam();
  EXPECT_TRUE(parse(text, {{}, with(row, row.found)}).ok());
  if (row.in_text.empty()) return;
  const auto functions = parse(text, {{}, with(row, row.found - 1)});
  ASSERT_FALSE(functions.ok());
  EXPECT_EQ(functions.error().code, ErrorCode::limit_exceeded);
  EXPECT_EQ(functions.error().to_string(), row.in_text);
}

TEST_P(CompileLimit, OfFunctions) {
  const Row& row = GetParam();
  const FunctionPtr function = parse_function(text).value();
  const Result<Runtime> enough = Runtime::create({.limits = with(row, row.found)});
  const Result<Kernel> kernel = enough->compile(function);
  EXPECT_TRUE(kernel.ok()) << kernel.error().to_string();
  EXPECT_TRUE(enough->compile(text).ok());
  if (row.in_function.empty()) return;
  const Result<Runtime> less = Runtime::create({.limits = with(row, row.found - 1)});
  const bool plans_nests = less->tier().has_value();
  if (row.name == "nests" && !plans_nests) {  // no code, so no nests
    EXPECT_TRUE(less->compile(function).ok());
    return;
  }
  for (int round = 0; round < 2; ++round) {  // refusals are not kept
    const Result<Kernel> refused = less->compile(function);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::limit_exceeded);
    EXPECT_EQ(refused.error().to_string(), row.in_function);
  }
  EXPECT_EQ(less->compile(text).error().code, ErrorCode::limit_exceeded);
  EXPECT_EQ(less->statistics().functions, 0u);
}

/// A function that is known is refused all the same where the names in it are too long.
TEST(CompileLimits, DoNotDependOnWhatIsCached) {
  CompileLimits limits;
  limits.name_bytes = name_bytes;
  const Result<Runtime> runtime = Runtime::create({.limits = limits});
  ASSERT_TRUE(runtime->compile(parse_function(text).value()).ok());
  std::string longer(text);
  longer.replace(longer.find("@f"), 2, "@longer");
  const Result<Kernel> refused = runtime->compile(parse_function(longer).value());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::limit_exceeded);
}

/// Nobody has counted the names of a function that is made by hand.
TEST(CompileLimits, CountNamesOfFunctionsMadeByHand) {
  CompileLimits limits;
  limits.name_bytes = name_bytes;
  const Result<Runtime> runtime = Runtime::create({.limits = limits});
  Function by_hand = *parse_function(text).value();
  by_hand.name_bytes = 0;
  by_hand.values[0].name = "a_long_name";
  const Result<Kernel> refused = runtime->compile(std::make_shared<const Function>(by_hand));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::limit_exceeded);
}

/// The parser stops at the first operation too many: the remaining text is not looked at.
TEST(CompileLimits, StopTheParserAtOnce) {
  CompileLimits limits;
  limits.operations = 1;
  const auto functions =
      parse("func @f(%x: f32[2]) -> (f32[2]) {\n  %a = neg %x\n  %b = neg %x\n  not a function",
            {{}, limits});
  ASSERT_FALSE(functions.ok());
  EXPECT_EQ(functions.error().to_string(),
            "line 3, column 3: @f: found 2 operations, expected at most 1");
}

/// Every value has its own copy of the names of its dimensions: few bytes of text become many.
TEST(CompileLimits, CountNamesOfDimensionsInEachValue) {
  const std::string name(size_t{1} << 20, 'n');
  std::string long_names = fmt::format("func @f(%x0: f32[?{}]) -> (f32[?]) {{\n", name);
  for (int i = 0; i < 1000; ++i) long_names += fmt::format("%x{} = neg %x{}\n", i + 1, i);
  const auto functions = parse(long_names + "return %x1000 }");
  ASSERT_FALSE(functions.ok());
  EXPECT_EQ(functions.error().code, ErrorCode::limit_exceeded);
  EXPECT_EQ(functions.error().where.line, 16u);
}

/// Limits above the IR's own mean these.
TEST(CompileLimits, LeaveTheRulesOfTheIrAsTheyAre) {
  CompileLimits limits;
  limits.text_bytes = SIZE_MAX;
  limits.operations = SIZE_MAX;
  limits.values = SIZE_MAX;
  const std::string blanks(max_text_bytes + 1, ' ');
  EXPECT_EQ(parse(blanks, {{}, limits}).error().code, ErrorCode::limit_exceeded);
  const std::string many = test::chain_of_elementwise(max_operations + 1);
  EXPECT_FALSE(parse(many, {{}, limits}).ok());
}

TEST(CompileLimits, AreGenerousUnlessSaidOtherwise) {
  const Result<Runtime> runtime = Runtime::create();
  const Result<Kernel> kernel = runtime->compile(test::chain_of_elementwise(60'000));
  EXPECT_TRUE(kernel.ok()) << kernel.error().to_string();
  const Result<Kernel> refused = runtime->compile(test::inputs_of_a_shape_each(20'000));
  if (!runtime->tier()) return;
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().to_string(), "@grown: found 20000 nests, expected at most 16384");
  const Result<Runtime> other = Runtime::create({.limits = {.nests = max_operations}});
  EXPECT_TRUE(other->compile(test::inputs_of_a_shape_each(20'000)).ok());
}

INSTANTIATE_TEST_SUITE_P(Of, CompileLimit, testing::ValuesIn(rows),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace castor
