// SPDX-License-Identifier: Apache-2.0
// Calls split into tasks: the bytes of the interpreter, whatever the number of tasks and their
// order; no two tasks write one byte, and none writes beside the outputs. `--long`: more sizes and
// layouts of whole-byte types.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/function_case.hpp"
#include "tests/support/long_form.hpp"
#include "tools/testing/executors.hpp"
#include "tools/testing/thread_per_task.hpp"

namespace castor {
namespace {

using test::CaseTensors;
using test::FunctionCase;
using test::GuardedTensor;

constexpr int all_tasks[] = {1, 2, 3, 7, 16};

/// The types whose elements are stored each in their own way; with `--long` all.
std::vector<ElementType> stored_types() {
  using enum ElementType;
  std::vector<ElementType> types = test::all_element_types();
  if (test::long_form()) return types;
  std::erase_if(types,
                [](ElementType type) { return !is_sub_byte(type) && type != u8 && type != f32; });
  return types;
}

/// A function, and how it must be split on every tier.
struct SplitCase {
  FunctionCase function;
  bool is_split = true;
};

std::string conversion_text(ElementType from, ElementType to, std::string_view shape) {
  return fmt::format("func @f(%x: {}{}) -> ({}{}) {{\n  %y = convert %x : {}\n  return %y\n}}\n",
                     name_of(from), shape, name_of(to), shape, name_of(to));
}

void expect_bytes(CaseTensors& actual, CaseTensors& expected, const std::string& what) {
  for (size_t i = 0; i < actual.output_tensors().size(); ++i) {
    GuardedTensor& found = actual.output_tensors()[i];
    ASSERT_TRUE(std::ranges::equal(found.bytes(), expected.output_tensors()[i].bytes()))
        << what << ", output " << i;
    ASSERT_TRUE(found.is_clean_around()) << what << ", output " << i;
  }
}

/// With zeros, then with ones under the outputs.
void expect_bytes_of_one_task(const BoundKernel& bound, const Function& function,
                              const FunctionCase& row, int tasks, const std::string& what) {
  for (const int filler : {0x00, 0xff}) {
    CaseTensors tensors(function, row, 3, true);
    std::vector<std::span<std::byte>> memory;
    for (GuardedTensor& output : tensors.output_tensors()) {
      memory.push_back(output.bytes());
      std::memset(output.bytes().data(), filler, output.bytes().size());
    }
    test::Watchful executor(tasks, memory);
    ASSERT_TRUE(bound.run(tensors.inputs(), tensors.outputs(), {.executor = &executor}).ok());
    ASSERT_EQ(executor.shared(), "") << what;
  }
}

/// Runs a case on every tier with every number of tasks.
void check_split(const SplitCase& each, const std::string& name = "") {
  const FunctionCase& row = each.function;
  const Result<FunctionPtr> parsed = parse_function(row.text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().to_string() << "\n" << row.text;
  const FunctionPtr& function = *parsed;
  CaseTensors expected(*function, row, 3, true);
  ASSERT_TRUE(interpret(*function, expected.inputs(), expected.outputs()).ok());
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    const BoundKernel bound =
        *runtime.compile(function)->bind(expected.inputs(), expected.outputs());
    ASSERT_EQ(bound.engine(), Engine::jit);
    int max = 1;
    for (const int tasks : all_tasks) {
      const std::string what =
          fmt::format("{}, {} tasks, {}", name_of(tier), tasks, name.empty() ? row.text : name);
      CaseTensors actual(*function, row, 3, tasks % 2 == 0);
      test::Backwards executor(tasks);
      ASSERT_TRUE(bound.run(actual.inputs(), actual.outputs(), {.executor = &executor}).ok());
      expect_bytes(actual, expected, what);
      ASSERT_LE(executor.max(), tasks);
      max = std::max(max, executor.max());
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_EQ(max > 1, each.is_split) << name_of(tier) << "\n" << row.text;
    expect_bytes_of_one_task(bound, *function, row, 7,
                             fmt::format("{}\n{}", name_of(tier), row.text));
    if (testing::Test::HasFatalFailure()) return;
  }
}

/// Every type to and from f32, of sizes that end inside bytes and groups.
class ExecutorTypes : public testing::TestWithParam<ElementType> {};

TEST_P(ExecutorTypes, OneAxis) {
  for (const int64_t count : {1, 13, 1021, 9000}) {
    if (count > 2000 && !test::long_form()) continue;
    for (const bool to_f32 : {false, true}) {
      const ElementType from = to_f32 ? GetParam() : ElementType::f32;
      const ElementType to = to_f32 ? ElementType::f32 : GetParam();
      const FunctionCase row = {conversion_text(from, to, fmt::format("[{}]", count)), {{{count}}}};
      check_split({row, count > 1});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ExecutorTypes, testing::ValuesIn(test::all_element_types()),
                         [](const auto& row) { return test::test_name(row.param); });

class ExecutorLayouts : public testing::TestWithParam<ElementType> {};

/// Inputs and outputs begin inside bytes; outputs keep the bits before and after.
TEST_P(ExecutorLayouts, FromAnyElementOn) {
  for (const int64_t offset : {1, 2, 3, 4, 5, 8}) {
    if (offset > 1 && !is_sub_byte(GetParam())) continue;
    const std::string text = conversion_text(GetParam(), GetParam(), "[777]");
    check_split({{text, {{.shape = {777}, .offset = offset}}}});
    check_split({{text, {{.shape = {777}}}, {{.shape = {777}, .offset = offset}}}});
  }
}

/// Rows that end inside bytes, rows with gaps between them, elements with gaps between them.
TEST_P(ExecutorLayouts, RowsAndGaps) {
  const std::string text = conversion_text(GetParam(), GetParam(), "[37, 29]");
  const std::vector<test::Layout> layouts = {
      {.shape = {37, 29}},
      {.shape = {37, 29}, .strides = {31, 1}, .offset = 3},
      {.shape = {37, 29}, .strides = {32, 1}},
      {.shape = {37, 29}, .strides = {32, 1}, .offset = 5},
      {.shape = {37, 29}, .strides = {64, 2}, .offset = 1},
      {.shape = {37, 29}, .strides = {1, 40}},
  };
  for (const test::Layout& from : layouts) {
    for (const test::Layout& to : layouts) {
      const FunctionPtr function = *parse_function(text);
      SplitCase each = {{text, {from}, {to}}};
      CaseTensors expected(*function, each.function, 3, true);
      ASSERT_TRUE(interpret(*function, expected.inputs(), expected.outputs()).ok());
      for (const auto& [tier, runtime] : test::tier_runtimes()) {
        const BoundKernel bound =
            *runtime.compile(function)->bind(expected.inputs(), expected.outputs());
        const std::string what = fmt::format("{} from {} to {}, {}", text, to_string(from.steps()),
                                             to_string(to.steps()), name_of(tier));
        for (const int tasks : {3, 16}) {
          CaseTensors actual(*function, each.function, 3, true);
          test::Backwards executor(tasks);
          ASSERT_TRUE(bound.run(actual.inputs(), actual.outputs(), {.executor = &executor}).ok());
          expect_bytes(actual, expected, what);
          expect_bytes_of_one_task(bound, *function, each.function, tasks, what);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ExecutorLayouts, testing::ValuesIn(stored_types()),
                         [](const auto& row) { return test::test_name(row.param); });

/// What nests are made of: broadcasts, periods, tiles, several results, several nests.
const SplitCase shapes[] = {
    {{"func @few_rows(%x: f32[3, 2001], %y: f32[3, 1]) -> u8[3, 2001] {\n  %s = add %x, %y\n"
      "  %z = convert %s : u8\n  return %z\n}\n",
      {{{3, 2001}}, {{3, 1}}}}},
    {{"func @many_rows(%x: f32[400, 17], %y: f32[400, 1]) -> u4[400, 17] {\n  %s = add %x, %y\n"
      "  %z = convert %s : u4\n  return %z\n}\n",
      {{{400, 17}}, {{400, 1}}}}},
    {{"func @one_element(%x: f16[5000], %y: u4[]) -> f16[5000] {\n  %c = convert %y : f16\n"
      "  %z = mul %x, %c\n  return %z\n}\n",
      {{{5000}}, {.shape = {}, .offset = 3}}}},
    {{"func @periodic(%x: u8[999, 3], %m: f32[3]) -> f16[999, 3] {\n  %f = convert %x : f32\n"
      "  %d = sub %f, %m\n  %z = convert %d : f16\n  return %z\n}\n",
      {{{999, 3}}, {{3}}}}},
    {{"func @periodic_bits(%x: u8[1001, 7], %m: u8[7]) -> u4[1001, 7] {\n  %d = add %x, %m\n"
      "  %z = convert %d : u4\n  return %z\n}\n",
      {{{1001, 7}}, {{7}}}}},
    {{"func @repeated(%x: f32[2000, 3], %m: f32[2000, 1]) -> f32[2000, 3] {\n"
      "  %z = mul %x, %m\n  return %z\n}\n",
      {{{2000, 3}}, {{2000, 1}}}}},
    {{"func @repeated_5(%x: f32[2, 900, 5], %m: f32[2, 900, 1], %b: f32[2, 1, 1]) -> u8[2, 900, 5] "
      "{\n  %p = mul %x, %m\n  %s = add %p, %b\n  %z = convert %s : u8\n  return %z\n}\n",
      {{{2, 900, 5}}, {{2, 900, 1}}, {{2, 1, 1}}}}},
    {{"func @long_period(%x: f32[40, 251], %m: f32[251]) -> i8[40, 251] {\n  %s = add %x, %m\n"
      "  %z = convert %s : i8\n  return %z\n}\n",
      {{{40, 251}}, {{251}}}}},
    {{"func @transposed(%x: f32[300, 200]) -> u8[300, 200] {\n  %z = convert %x : u8\n"
      "  return %z\n}\n",
      {{.shape = {300, 200}, .strides = {1, 300}}}}},
    {{"func @transposed_planes(%x: f32[5, 70, 90], %y: f32[5, 70, 90]) -> f32[5, 70, 90] {\n"
      "  %z = add %x, %y\n  return %z\n}\n",
      {{.shape = {5, 70, 90}, .strides = {6300, 1, 70}}, {{5, 70, 90}}}}},
    {{"func @strided(%x: f32[4, 3000]) -> f16[4, 3000] {\n  %z = convert %x : f16\n"
      "  return %z\n}\n",
      {{.shape = {4, 3000}, .strides = {6001, 2}, .offset = 5}},
      {{.shape = {4, 3000}, .strides = {9100, 3}, .offset = 2}}}},
    {{"func @six_axes(%x: f32[2, 3, 4, 5, 6, 7], %y: f32[3, 1, 5, 1, 7]) -> i4[2, 3, 4, 5, 6, 7] "
      "{\n  %s = add %x, %y\n  %z = convert %s : i4\n  return %z\n}\n",
      {{{2, 3, 4, 5, 6, 7}}, {{3, 1, 5, 1, 7}}}}},
    {{"func @results(%x: f32[7001]) -> (u4[7001], f64[7001], u3.split[7001]) {\n"
      "  %a = convert %x : u4\n  %b = convert %x : f64\n  %c = convert %x : u3.split\n"
      "  return %a, %b, %c\n}\n",
      {{{7001}}},
      {{.shape = {7001}, .offset = 1}, {{7001}}, {.shape = {7001}, .offset = 1}}}},
    // Positions at which both results begin a byte do not exist: the caller's thread does all.
    {{"func @never_together(%x: f32[7001]) -> (u4[7001], u4[7001]) {\n"
      "  %a = convert %x : u4\n  %s = add %x, %x\n  %b = convert %s : u4\n  return %a, %b\n}\n",
      {{{7001}}},
      {{.shape = {7001}, .offset = 1}, {.shape = {7001}, .offset = 2}}},
     false},
    {{"func @nests(%x: u8[60, 100], %w: f32[1, 100]) -> (f32[60, 100], f32[100]) {\n"
      "  %f = convert %x : f32\n  %z = mul %f, %w\n  %q = reshape %w : [100]\n"
      "  %r = sqrt %q\n  return %z, %r\n}\n",
      {{{60, 100}}, {{1, 100}}}}},
    {{"func @behind_convolution(%x: u8[1, 8, 20, 21], %w: i8[9, 8, 3, 3], %s: f32[9, 1, 1]) -> "
      "(u8[1, 9, 18, 19], i32[1, 9, 18, 19]) {\n  %y = conv_integer %x, %w\n"
      "  %f = convert %y : f32\n  %m = mul %f, %s\n  %u = convert %m : u8\n  return %u, %y\n}\n",
      {{{1, 8, 20, 21}}, {{9, 8, 3, 3}}, {{9, 1, 1}}}}},
};

class ExecutorShapes : public testing::TestWithParam<SplitCase> {};

TEST_P(ExecutorShapes, GiveTheSameBytes) { check_split(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Of, ExecutorShapes, testing::ValuesIn(shapes), [](const auto& row) {
  const std::string& text = row.param.function.text;
  const size_t at = text.find('@') + 1;
  return text.substr(at, text.find('(') - at);
});

}  // namespace
}  // namespace castor
