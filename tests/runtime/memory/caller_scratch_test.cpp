// SPDX-License-Identifier: Apache-2.0
// Runs with scratch of the caller: nothing is allocated, nothing beyond the scratch is touched, the
// bits are the interpreter's; and what scratch is refused.
#include <fmt/format.h>

#include <cstring>

#include "tests/support/counting_memory.hpp"
#include "tests/support/function_case.hpp"
#include "tools/testing/executors.hpp"

namespace castor {
namespace {

struct Row {
  const char* name;
  test::FunctionCase function;
  bool takes_scratch = true;    ///< on every tier
  bool requantizes = false;     ///< inputs after x are scale, frac and zero point
  bool takes_constant = false;  ///< `@w`, of any bytes
};

test::FunctionCase conv(const std::string& x, const std::string& w, const std::string& options,
                        std::vector<test::Layout> inputs) {
  return {fmt::format("func @conv(%x: {}, %w: {}) -> i32[?, ?, ?, ?] {{\n"
                      "  %y = conv_integer %x, %w {{{}}}\n  return %y\n}}\n",
                      x, w, options),
          std::move(inputs)};
}

std::string twenty_results() {
  std::string results;
  std::string body;
  std::string names;
  for (int i = 0; i < 20; ++i) {
    results += fmt::format("{}i8[?]", i == 0 ? "" : ", ");
    body += fmt::format("  %r{} = convert %x : i8\n", i);
    names += fmt::format("{}%r{}", i == 0 ? "" : ", ", i);
  }
  return "func @many(%x: f32[?]) -> (" + results + ") {\n" + body + "  return " + names + "\n}\n";
}

std::vector<Row> rows() {
  const std::string pads = "pads = [1, 1, 1, 1]";
  return {
      {"one pass",
       {"func @f(%x: f32[?, ?]) -> u8[?, ?] {\n  %y = convert %x : u8\n  return %y\n}\n",
        {{{7, 33}}}},
       false},
      {"copy for a reshape",
       {"func @f(%x: f32[?, ?]) -> i16[6, 70] {\n  %r = reshape %x : [6, 70]\n"
        "  %y = convert %r : i16\n  return %y\n}\n",
        {{{20, 21}, {30, 1}}}}},
      {"period",
       {"func @f(%x: u8[?, 3], %m: f32[3]) -> f32[?, 3] {\n  %f = convert %x : f32\n"
        "  %y = sub %f, %m\n  return %y\n}\n",
        {{{500, 3}}, {{3}}}}},
      {"transposed",
       {"func @f(%x: u8[?, ?]) -> u16[?, ?] {\n  %y = convert %x : u16\n  return %y\n}\n",
        {{{200, 300}, {1, 200}}}},
       false},
      {"inside a byte",
       {"func @f(%x: u4[?, ?]) -> i2[?, ?] {\n  %y = convert %x : i2\n  return %y\n}\n",
        {{{9, 37}, {41, 1}, 3}},
        {{{9, 37}, {39, 1}, 1}}},
       false},
      {"more than sixteen tensors", {twenty_results(), {{{100}}}}},
      {"pixel-vectorised",
       conv("u8[?, ?, ?, ?]", "i8[?, ?, ?, ?]", pads, {{{2, 24, 13, 14}}, {{17, 24, 3, 3}}})},
      {"channel-vectorised", conv("i8[?, ?, ?, ?]", "u8[?, ?, ?, ?]", "layout = nhwc, " + pads,
                                  {{{2, 13, 14, 24}}, {{33, 24, 3, 3}}})},
      {"whole image at once",
       conv("u8[?, ?, ?, ?]", "i8[?, ?, ?, ?]", "", {{{1, 64, 7, 7}}, {{48, 64, 1, 1}}})},
      {"groups", conv("u8[?, ?, ?, ?]", "i8[?, ?, ?, ?]", "group = 4, strides = [2, 2], " + pads,
                      {{{2, 32, 15, 15}}, {{20, 8, 3, 3}}})},
      {"depthwise", conv("u8[?, ?, ?, ?]", "i8[?, ?, ?, ?]", "group = 19, " + pads,
                         {{{2, 19, 12, 31}}, {{19, 1, 3, 3}}})},
      {"depthwise, channels last",
       conv("i8[?, ?, ?, ?]", "u8[?, ?, ?, ?]", "group = 40, layout = nhwc, " + pads,
            {{{2, 12, 11, 40}}, {{40, 1, 3, 3}}})},
      {"groups, channels last", conv("u8[?, ?, ?, ?]", "i8[?, ?, ?, ?]", "group = 8, layout = nhwc",
                                     {{{1, 12, 11, 32}}, {{32, 4, 3, 3}}})},
      {"input copied", conv("u8[?, ?, ?, ?]", "i8[?, ?, ?, ?]", pads,
                            {{{1, 5, 9, 8}, {800, 8, 80, 1}}, {{6, 5, 3, 3}}})},
      {"constant weights",
       {"func @f(%x: u8[?, 16, ?, ?]) -> i32[?, 24, ?, ?] {\n  %w = constant @w : i8[24, 16, 3, "
        "3]\n"
        "  %y = conv_integer %x, %w\n  return %y\n}\n",
        {{{2, 16, 17, 18}}}},
       true,
       false,
       true},
      {"epilogue",
       {"func @f(%x: u8[?, 12, ?, ?], %w: i8[20, 12, 3, 3], %s: f32[20, 1, 1]) -> "
        "u8[?, 20, ?, ?] {\n  %y = conv_integer %x, %w {pads = [1, 1, 1, 1]}\n"
        "  %f = convert %y : f32\n  %g = mul %f, %s\n"
        "  %r = convert %g {overflow = saturate} : u8\n  return %r\n}\n",
        {{{2, 12, 17, 18}}, {{20, 12, 3, 3}}, {{20, 1, 1}}}}},
      {"epilogue of elements of four bits",
       {"func @f(%x: u8[?, 12, ?, ?], %w: i8[7, 12, 3, 3]) -> i4[?, 7, ?, ?] {\n"
        "  %y = conv_integer %x, %w\n  %f = convert %y : f32\n"
        "  %r = convert %f {overflow = saturate} : i4\n  return %r\n}\n",
        {{{2, 12, 11, 13}}, {{7, 12, 3, 3}}},
        {{{2, 7, 9, 11}, {}, 3}}}},
      {"requantize",
       {"func @f(%x: sa8<axis = 1, scale = ?, frac = ?, zero_point = ?>[?, ?], %s: i16[?], "
        "%n: i8[?], %z: i16[?]) -> f32[?, ?] {\n"
        "  %y = requantize %x, %s, %n, %z : f32\n  return %y\n}\n",
        {{{30, 50}}, {{50}}, {{50}}, {{50}}}},
       true,
       true},
      {"requantize by tables",
       {"func @f(%x: sa8<axis = 0, scale = ?, frac = ?, zero_point = ?>[?, ?], %s: i16[?], "
        "%n: i8[?], %z: i16[?]) -> fx16<frac = 3>[?, ?] {\n"
        "  %y = requantize %x, %s, %n, %z : fx16<frac = 3>\n  return %y\n}\n",
        {{{3, 5000}}, {{3}}, {{3}}, {{3}}}},
       true,
       true},
  };
}

FunctionPtr parse(const Row& row) {
  ParseOptions options;
  if (row.takes_constant) {
    options.bind_constant = [](std::string_view,
                               const TensorType& type) -> Result<std::vector<std::byte>> {
      int64_t count = 1;
      for (const Dim& dim : type.shape) count *= dim.extent;
      std::vector<std::byte> bytes(static_cast<size_t>(*byte_size(type.element, count)));
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + i / 7);
      return bytes;
    };
  }
  Result<FunctionPtr> function = parse_function(row.function.text, {}, options);
  if (!function.ok()) throw std::runtime_error(row.name + (": " + function.error().message));
  return std::move(function).value();
}

void fill_parameters(const Row& row, test::CaseTensors& tensors) {
  if (!row.requantizes) return;
  const std::vector<ConstView> inputs = tensors.inputs();
  constexpr std::byte values[] = {std::byte{0}, std::byte{0x41}, std::byte{3}, std::byte{1}};
  for (size_t i = 1; i < inputs.size(); ++i) {
    auto* data = static_cast<std::byte*>(const_cast<void*>(inputs[i].data));
    std::fill_n(data, inputs[i].bytes, values[i]);
  }
}

struct Made {
  test::CountingAllocator allocator;
  std::optional<Runtime> runtime;

  explicit Made(Tier tier) {
    RuntimeOptions options;
    options.tier = tier;
    options.allocator = allocator.callbacks();
    runtime = *Runtime::create(options);
  }
};

/// One run in scratch of exactly the size asked for, between guarded pages. `at_a_time` becomes
/// at least as many tasks as the kernel ran at a time.
void check(const Row& row, const BoundKernel& bound, const test::CountingAllocator& allocator,
           const FunctionPtr& function, int tasks, int& at_a_time) {
  test::CaseTensors expected(*function, row.function, 5, true);
  test::CaseTensors actual(*function, row.function, 5, true);
  fill_parameters(row, expected);
  fill_parameters(row, actual);
  const Status interpreted = interpret(*function, expected.inputs(), expected.outputs());
  ASSERT_TRUE(interpreted.ok()) << interpreted.error().message;
  const size_t bytes = bound.scratch_bytes(tasks);
  EXPECT_EQ(bytes % scratch_alignment, 0u);
  test::GuardedPages pages(bytes + 1);
  pages.fill(std::byte{0xee});
  test::Backwards executor(tasks);
  const RunOptions options = {.executor = tasks == 1 ? nullptr : &executor,
                              .scratch = {pages.at_end(bytes), bytes}};
  const std::vector<ConstView> inputs = actual.inputs();
  const std::vector<View> outputs = actual.outputs();
  const size_t calls = allocator.calls;
  const size_t before = test::allocations;
  const Status status = bound.run(inputs, outputs, options);
  EXPECT_EQ(test::allocations - before, 0u);
  EXPECT_EQ(allocator.calls, calls);
  ASSERT_TRUE(status.ok()) << status.error().message;
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(actual.output_tensors()[i].bytes(),
                                   expected.output_tensors()[i].bytes()));
  }
  EXPECT_TRUE(pages.is_filled_but({pages.at_end(bytes), bytes}, std::byte{0xee}));
  at_a_time = std::max(at_a_time, executor.max());
}

TEST(CallerScratch, RunsAllocateNothing) {
  for (const auto& [tier, unused] : test::tier_runtimes()) {
    Made made(tier);
    int at_a_time = 0;
    for (const Row& row : rows()) {
      SCOPED_TRACE(fmt::format("{}, {}", row.name, name_of(tier)));
      const FunctionPtr function = parse(row);
      test::CaseTensors tensors(*function, row.function, 5, true);
      const Result<Kernel> kernel = made.runtime->compile(function);
      ASSERT_TRUE(kernel.ok()) << kernel.error().message;
      const BindOptions options = {.scratch = ScratchOwner::caller};
      const Result<BoundKernel> bound = kernel->bind(tensors.inputs(), tensors.outputs(), options);
      ASSERT_TRUE(bound.ok()) << bound.error().message;
      ASSERT_EQ(bound->engine(), Engine::jit) << bound->engine_reason();
      EXPECT_TRUE(!row.takes_scratch || bound->scratch_bytes() > 0);
      EXPECT_EQ(made.runtime->memory().scratch_bytes, 0u);
      for (const int tasks : {1, 2, 5}) {
        check(row, *bound, made.allocator, function, tasks, at_a_time);
      }
    }
    EXPECT_EQ(at_a_time, 5) << name_of(tier);
  }
}

/// The kernel keeps what it made: only the first call with an executor allocates.
TEST(CallerScratch, ScratchOfTheKernelIsKept) {
  for (const auto& [tier, unused] : test::tier_runtimes()) {
    Made made(tier);
    for (const Row& row : rows()) {
      SCOPED_TRACE(fmt::format("{}, {}", row.name, name_of(tier)));
      const FunctionPtr function = parse(row);
      test::CaseTensors tensors(*function, row.function, 5, true);
      fill_parameters(row, tensors);
      const BoundKernel bound =
          *made.runtime->compile(function)->bind(tensors.inputs(), tensors.outputs());
      EXPECT_EQ(made.runtime->memory().scratch_bytes, bound.scratch_bytes());
      const std::vector<ConstView> inputs = tensors.inputs();
      const std::vector<View> outputs = tensors.outputs();
      test::Backwards executor(3);
      const RunOptions shared = {.executor = &executor};
      ASSERT_TRUE(bound.run(inputs, outputs, shared).ok());
      const size_t before = test::allocations;
      EXPECT_TRUE(bound.run(inputs, outputs).ok());
      EXPECT_TRUE(bound.run(inputs, outputs, shared).ok());
      EXPECT_EQ(test::allocations - before, 0u);
      EXPECT_GE(made.runtime->memory().scratch_bytes, bound.scratch_bytes());
    }
    EXPECT_EQ(made.runtime->memory().scratch_bytes, 0u);  // all went with their kernels
    EXPECT_EQ(made.allocator.errors, 0u);
  }
}

struct Refused {
  const char* name;
  size_t less = 0;   ///< bytes too few
  size_t shift = 0;  ///< bytes above the alignment
  bool none = false;
  std::string error;
};

TEST(CallerScratch, WhatIsRefused) {
  const Row row = rows()[6];
  const FunctionPtr function = parse(row);
  Made made(test::tier_runtimes().back().first);
  test::CaseTensors tensors(*function, row.function, 5, true);
  const BindOptions of_caller = {.scratch = ScratchOwner::caller};
  const BoundKernel bound =
      *made.runtime->compile(function)->bind(tensors.inputs(), tensors.outputs(), of_caller);
  constexpr int tasks = 3;
  const size_t bytes = bound.scratch_bytes(tasks);
  EXPECT_EQ(bytes, 3 * bound.scratch_bytes());
  EXPECT_EQ(bound.scratch_bytes(1), bound.scratch_bytes());
  EXPECT_EQ(bound.scratch_bytes(-7), bound.scratch_bytes());
  std::vector<std::byte> room(bytes + 128);
  std::byte* aligned = room.data() + (-reinterpret_cast<uintptr_t>(room.data()) & 63);
  const Refused refused[] = {
      {"none", 0, 0, true,
       fmt::format(
           "no scratch; expected {} bytes for 3 tasks, as the kernel was bound to scratch of "
           "the caller",
           bytes)},
      {"one byte too few", 1, 0, false,
       fmt::format("scratch of {} bytes; expected {} or more for 3 tasks", bytes - 1, bytes)},
      {"for one task", bytes - bound.scratch_bytes(), 0, false, "or more for 3 tasks"},
      {"not aligned", 0, 4, false, ", 4 above a multiple of 64; expected a multiple"},
  };
  test::Backwards executor(tasks);
  for (const Refused& each : refused) {
    RunOptions options = {.executor = &executor};
    if (!each.none) options.scratch = {aligned + each.shift, bytes - each.less};
    const std::vector<std::byte> before(tensors.output_tensors()[0].bytes().begin(),
                                        tensors.output_tensors()[0].bytes().end());
    const Status status = bound.run(tensors.inputs(), tensors.outputs(), options);
    ASSERT_FALSE(status.ok()) << each.name;
    EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(status.error().message.find(each.error), std::string::npos) << status.error().message;
    EXPECT_TRUE(std::ranges::equal(tensors.output_tensors()[0].bytes(), before));
  }
}

TEST(CallerScratch, IsApartFromTensors) {
  const FunctionPtr function = *parse_function(
      "func @f(%x: u8[?, 3], %m: f32[3]) -> f32[?, 3] {\n  %f = convert %x : f32\n"
      "  %y = sub %f, %m\n  return %y\n}\n");
  const BoundKernel bound =
      *test::tier_runtimes().back().second.compile(function)->bind({{100, 3}, {3}});
  const size_t bytes = bound.scratch_bytes();
  ASSERT_GT(bytes, 0u);
  alignas(64) std::array<std::byte, 16384> memory{};
  ASSERT_LT(bytes, 8192u);
  const float mean[3] = {1, 2, 3};
  struct Place {
    size_t x, y, scratch;
    std::string_view error;
  };
  const Place places[] = {
      {0, 1024, 8192, ""},
      {8192 + bytes - 1, 1024, 8192, "scratch overlaps input %x; expected memory of its own"},
      {0, 8192 - 1196, 8192, "scratch overlaps output 0 (%y); expected memory of its own"},
      {8192 + bytes, 8192 - 1200, 8192, ""},  // they touch
  };
  for (const Place& place : places) {
    const ConstView inputs[] = {{&memory[place.x], ElementType::u8, {100, 3}, 300},
                                {mean, ElementType::f32, {3}, 12}};
    const View output(&memory[place.y], ElementType::f32, {100, 3}, 1200);
    const RunOptions options = {.scratch = std::span(memory).subspan(place.scratch)};
    const Status status = bound.run(inputs, {&output, 1}, options);
    EXPECT_EQ(status.ok() ? "" : status.error().message, place.error);
  }
}

/// Between the two rows of a tensor is room.
TEST(CallerScratch, MayBeInAGapOfATensor) {
  constexpr size_t row = 16384;
  const FunctionPtr function = *parse_function(
      "func @f(%x: f32[?, ?]) -> i16[6, 100] {\n  %r = reshape %x : [6, 100]\n"
      "  %y = convert %r : i16\n  return %y\n}\n");
  const std::vector<Dims> strides = {{row / sizeof(float), 1}, {100, 1}};
  const BoundKernel bound = *test::tier_runtimes().back().second.compile(function)->bind(
      std::vector<Dims>{{2, 300}}, strides);
  const size_t bytes = bound.scratch_bytes();
  ASSERT_GT(bytes, 0u);
  ASSERT_LT(bytes, row - 2048);
  alignas(64) static std::array<std::byte, 2 * row> memory{};
  for (size_t i = 0; i < 600; ++i) {
    const auto value = static_cast<float>(i);
    std::memcpy(&memory[i / 300 * row + i % 300 * sizeof(float)], &value, sizeof(value));
  }
  std::vector<int16_t> result(600, -1);
  const ConstView input(memory.data(), ElementType::f32, {2, 300}, strides[0], 0, memory.size());
  const View output(result.data(), ElementType::i16, {6, 100}, 1200);
  const auto run = [&](size_t scratch) {
    const RunOptions options = {.scratch = std::span(memory).subspan(scratch, bytes)};
    return bound.run({&input, 1}, {&output, 1}, options);
  };
  EXPECT_FALSE(run(1152).ok());  // 1200 bytes are the row's
  EXPECT_FALSE(run(row - bytes + 64).ok());
  EXPECT_EQ(result[0], -1);
  ASSERT_TRUE(run(1216).ok());
  for (size_t i = 0; i < result.size(); ++i) ASSERT_EQ(result[i], static_cast<int16_t>(i));
}

TEST(CallerScratch, InterpretersTakeNone) {
  RuntimeOptions options;
  options.interpret = true;
  const BoundKernel bound =
      *Runtime::create(options)
           ->compile("func @f(%x: f32[2]) -> u8[2] {\n  %y = convert %x : u8\n  return %y\n}\n")
           ->bind({{2}}, {.scratch = ScratchOwner::caller});
  EXPECT_EQ(bound.scratch_bytes(4), 0u);
  const float x[2] = {1, 2};
  uint8_t y[2] = {};
  const ConstView input(x, ElementType::f32, {2}, sizeof x);
  const View output(y, ElementType::u8, {2}, sizeof y);
  EXPECT_TRUE(bound.run({&input, 1}, {&output, 1}).ok());
  EXPECT_EQ(y[1], 2);
}

}  // namespace
}  // namespace castor
