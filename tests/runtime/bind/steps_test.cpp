// SPDX-License-Identifier: Apache-2.0
// What binding makes of each nest: the kinds of steps, in the order in which they run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "jit/requantize/byte_table_kernel.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/conv/convolution_output.hpp"
#include "runtime/state_access.hpp"
#include "tests/support/conversions.hpp"

namespace castor::test {
namespace {

using detail::StepProgram;

/// Steps as words: their kind, and the number of the nest that they do.
struct InWords {
  std::string operator()(const detail::EmptyStep& step) const {
    return fmt::format("empty {}", step.nest);
  }
  std::string operator()(const detail::PaddingStep& step) const {
    return fmt::format("padding {}", step.nest);
  }
  std::string operator()(const detail::ElementwiseStep& step) const {
    const char* program = step.program == StepProgram::planned ? "elementwise"
                          : step.program == StepProgram::copy  ? "copy"
                                                               : "slices";
    return fmt::format("{}{} {}", step.tiles ? "tiled " : "", program, step.nest);
  }
  std::string operator()(const detail::FoldStep& step) const {
    if (step.main.code == nullptr) return fmt::format("start {}", step.nest);
    return fmt::format("{}{} {}", step.partitions ? "partitions, " : "",
                       step.combines ? "combine" : "fold", step.nest);
  }
  std::string operator()(const detail::RowBlockStep& step) const {
    return fmt::format("{} blocks of rows", step.count());
  }
  std::string operator()(const detail::ConvolutionStep& step) const {
    const std::string alone = fmt::format("convolution {}", step.nest);
    return step.epilogue ? fmt::format("{} with epilogue {}", alone, step.epilogue->nest) : alone;
  }
  std::string operator()(const detail::RequantizeStep& step) const {
    return fmt::format("called slices {}", step.nest);
  }
  std::string operator()(const detail::TableStep& step) const {
    const bool is_of_call = std::holds_alternative<detail::CallTables>(step.tables);
    return fmt::format("{} tables {}", is_of_call ? "called" : "constant", step.nest);
  }
};

std::string steps_of(const BoundKernel& bound) {
  std::string text;
  for (const detail::Step& step : detail::StateAccess::of(bound).steps) {
    text += (text.empty() ? "" : ", ") + std::visit(InWords(), step);
  }
  return text;
}

struct Row {
  const char* name;
  const char* text;
  std::vector<Dims> shapes;
  std::vector<Dims> strides;  ///< strides of inputs and outputs; none: dense
  const char* steps;
  const char* without_tables;  ///< on targets that look up no bytes; null: the same
};

const Row rows[] = {
    {"one_nest",
     "func @f(%x: f32[?n]) -> f16[?n] {\n  %y = convert %x : f16\n  return %y\n}\n",
     {{64}},
     {},
     "elementwise 0",
     nullptr},
    {"no_elements",
     "func @f(%x: f32[?n], %y: f32[?m]) -> (f16[?n], f16[?m]) {\n"
     "  %a = convert %x : f16\n  %b = convert %y : f16\n  return %a, %b\n}\n",
     {{0}, {3}},
     {},
     "empty 0, elementwise 1",
     nullptr},
    {"extremes_of_one_operand",
     "func @f(%x: f32[?n]) -> (f32[], f32[]) {\n  %a = reduce_min %x\n  %b = reduce_max %x\n"
     "  return %a, %b\n}\n",
     {{64}},
     {},
     "fold 0, elementwise 1",
     nullptr},
    {"nothing_to_reduce",
     "func @f(%x: f32[?n]) -> f32[] {\n  %a = reduce_min %x\n  return %a\n}\n",
     {{0}},
     {},
     "start 0, elementwise 1",
     nullptr},
    {"sum_of_blocks",
     "func @f(%x: f32[?n]) -> f32[] {\n  %a = reduce_sum %x\n  return %a\n}\n",
     {{5000}},
     {},
     "partitions, fold 0, combine 0, elementwise 1",
     nullptr},
    {"sum_over_gaps",
     "func @f(%x: f32[?n, ?m]) -> f32[] {\n  %a = reduce_sum %x\n  return %a\n}\n",
     {{3, 5}},
     {{6, 1}, {}},
     "tiled elementwise 0, combine 0, elementwise 1",
     nullptr},
    {"columns_in_another_order",
     "func @f(%x: f32[?n, ?m, ?k]) -> f32[?n, ?k] {\n  %a = reduce_max %x {axes = [1]}\n"
     "  return %a\n}\n",
     {{3, 5, 7}},
     {{1, 3, 15}, {7, 1}},
     "fold 0, tiled copy 0, tiled copy 0, elementwise 1",
     nullptr},
    {"transposed_view",
     "func @f(%x: f32[?n, ?m]) -> f16[?n, ?m] {\n  %y = convert %x : f16\n  return %y\n}\n",
     {{64, 48}},
     {{1, 64}, {48, 1}},
     "tiled elementwise 0",
     nullptr},
    {"reshape_of_a_view",
     "func @f(%x: f32[4, 6]) -> f32[24] {\n"
     "  %r = reshape %x : [24]\n  %y = abs %r\n  return %y\n}\n",
     {{4, 6}},
     {{8, 1}, {1}},
     "tiled copy 0, elementwise 0",
     nullptr},
    {"convolution",
     "func @f(%x: u8[1, 8, 9, 9], %w: i8[16, 8, 3, 3]) -> i32[1, 16, 7, 7] {\n"
     "  %y = conv_integer %x, %w\n  return %y\n}\n",
     {{1, 8, 9, 9}, {16, 8, 3, 3}},
     {{1296, 162, 18, 2}, {72, 9, 3, 1}, {1600, 100, 14, 2}},
     "tiled copy 0, convolution 0, tiled copy 0",
     nullptr},
    {"epilogue",
     "func @f(%x: u8[1, 8, 9, 9], %w: i8[16, 8, 3, 3], %s: f32[16, 1, 1]) -> f32[1, 16, 7, 7] {\n"
     "  %y = conv_integer %x, %w\n  %f = convert %y : f32\n  %r = mul %f, %s\n  return %r\n}\n",
     {{1, 8, 9, 9}, {16, 8, 3, 3}, {16, 1, 1}},
     {},
     "convolution 0 with epilogue 1",
     nullptr},
    {"constant_slices",
     "func @f(%x: fx16<frac = 4>[2, 100]) -> sa8<scale = 3, frac = 2>[2, 100] {\n"
     "  %y = requantize %x : sa8<scale = 3, frac = 2>\n  return %y\n}\n",
     {{2, 100}},
     {},
     "slices 0",
     nullptr},
    {"called_slices",
     "func @f(%x: fx16<frac = 4>[2, 100], %s: i16[]) -> sa8<scale = ?, frac = 2>[2, 100] {\n"
     "  %y = requantize %x, none, none, none, %s : sa8<scale = ?, frac = 2>\n  return %y\n}\n",
     {{2, 100}, {}},
     {},
     "called slices 0",
     nullptr},
    {"constant_tables",
     "func @f(%x: sa8<scale = 5, frac = 3>[2, 5000]) -> sa8<scale = 3, frac = 2>[2, 5000] {\n"
     "  %y = requantize %x : sa8<scale = 3, frac = 2>\n  return %y\n}\n",
     {{2, 5000}},
     {},
     "constant tables 0",
     "slices 0"},
    {"called_tables",
     "func @f(%x: sa8<scale = 5, frac = 3>[2, 90000], %s: i16[]) -> "
     "sa8<scale = ?, frac = 2>[2, 90000] {\n"
     "  %y = requantize %x, none, none, none, %s : sa8<scale = ?, frac = 2>\n  return %y\n}\n",
     {{2, 90000}, {}},
     {},
     "called tables 0",
     "called slices 0"},
    {"f32_requantized",
     "func @f(%x: f32[7]) -> f32[7] {\n  %y = requantize %x : f32\n  return %y\n}\n",
     {{7}},
     {},
     "copy 0",
     nullptr},
};

TEST(Steps, AreOfTheKindThatEachNestNeeds) {
  for (const Row& row : rows) {
    for (const auto& [tier, runtime] : tier_runtimes()) {
      SCOPED_TRACE(fmt::format("{}, {}", row.name, name_of(tier)));
      const Result<Kernel> kernel = runtime.compile(row.text);
      ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
      const Result<BoundKernel> bound = kernel->bind(row.shapes, row.strides);
      ASSERT_TRUE(bound.ok()) << bound.error().to_string();
      const bool has_tables = jit::has_byte_tables(jit::Target{tier});
      EXPECT_EQ(steps_of(*bound),
                has_tables || row.without_tables == nullptr ? row.steps : row.without_tables);
    }
  }
}

/// Forty sums of rows of three and one number for each row, of forty numbers of rows.
std::string sums_by_row(std::vector<Dims>& shapes) {
  std::string inputs;
  std::string types;
  std::string body;
  std::string results;
  for (int64_t i = 0; i < 40; ++i) {
    const char* comma = i == 0 ? "" : ", ";
    const int64_t row_count = 50 + i;
    inputs += fmt::format("{0}%x{1}: f32[{2}, 3], %p{1}: f32[{2}, 1]", comma, i, row_count);
    types += fmt::format("{}f32[{}, 3]", comma, row_count);
    body += fmt::format("  %y{0} = add %x{0}, %p{0}\n", i);
    results += fmt::format("{}%y{}", comma, i);
    shapes.push_back({row_count, 3});
    shapes.push_back({row_count, 1});
  }
  return fmt::format("func @f({}) -> ({}) {{\n{}  return {}\n}}\n", inputs, types, body, results);
}

/// Where AVX-512 code takes rows as periods, argument blocks point to the numbers of periods, which
/// must be those of their own step however often steps were moved.
TEST(Steps, KeepWhatArgumentsPointTo) {
  std::vector<Dims> shapes;
  const std::string text = sums_by_row(shapes);
  for (const auto& [tier, runtime] : tier_runtimes()) {
    SCOPED_TRACE(name_of(tier));
    const Result<Kernel> kernel = runtime.compile(text);
    ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
    const Result<BoundKernel> bound = kernel->bind(shapes, {});
    ASSERT_TRUE(bound.ok()) << bound.error().to_string();
    const detail::BoundState& state = detail::StateAccess::of(*bound);
    ASSERT_EQ(state.steps.size(), 40u);
    for (const detail::Step& any : state.steps) {
      const auto& step = std::get<detail::ElementwiseStep>(any);
      ASSERT_EQ(step.period_numbers.empty(), !jit::Target{tier}.has_avx512());
      const jit::ArgumentLayout layout(step.operands.size(), step.space.form.rank);
      const auto word = static_cast<uintptr_t>(step.main.arguments[layout.period_numbers()]);
      ASSERT_EQ(word, reinterpret_cast<uintptr_t>(step.period_numbers.data()));
    }
  }
}

}  // namespace
}  // namespace castor::test
