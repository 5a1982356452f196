// SPDX-License-Identifier: Apache-2.0
// The cache's bound in bytes of resident memory, and what its counters say beside the allocator's
// own. `--long`: 100,000 small functions, and more of the others.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <castor/castor.hpp>

#include <functional>

#include "ir/builder.hpp"
#include "tests/support/long_form.hpp"
#include "tests/support/resident_memory.hpp"

namespace castor {
namespace {

using enum ElementType;

FunctionPtr finished(FunctionBuilder& builder) {
  const Result<FunctionPtr> function = builder.finish();
  EXPECT_TRUE(function.ok()) << function.error().to_string();
  return function.ok() ? *function : nullptr;
}

/// One addition, of tensors of `n + 1` elements.
FunctionPtr small_function(size_t n) {
  FunctionBuilder builder("small");
  const ValueId x = builder.parameter("x", {f32, {n + 1}});
  builder.result(builder.binary(OpKind::add, x, x));
  return finished(builder);
}

/// Machine code of its own for each number.
FunctionPtr function_with_own_code(size_t n) {
  FunctionBuilder builder("clamped");
  builder.result(builder.clamp(builder.parameter("x", {f32, {Dim::any()}}), 0, 1.0 + double(n)));
  return finished(builder);
}

FunctionPtr function_of_dead_operations(size_t n) {
  constexpr int operations = 2000;
  FunctionBuilder builder("dead");
  const ValueId x = builder.parameter("x", {f32, {n + 1}});
  ValueId dead = x;
  for (int i = 0; i < operations; ++i) dead = builder.binary(OpKind::add, dead, x);
  builder.result(builder.unary(OpKind::neg, x));
  return finished(builder);
}

FunctionPtr function_of_long_names(size_t n) {
  constexpr size_t characters = size_t{1} << 20;
  FunctionBuilder builder("named");
  const std::string name(characters, 'x');
  const ValueId x = builder.parameter(name, {f32, {n + 1}});
  builder.result(builder.unary(OpKind::neg, x));
  return finished(builder);
}

/// A nest for each input.
FunctionPtr function_of_many_nests(size_t n) {
  constexpr size_t nests = 100;
  FunctionBuilder builder("nests");
  for (size_t i = 0; i < nests; ++i) {
    const ValueId x = builder.parameter("", {f32, {n * nests + i + 1}});
    builder.result(builder.unary(OpKind::neg, x));
  }
  return finished(builder);
}

FunctionPtr function_of_attributes(size_t n) {
  FunctionBuilder builder("convolved");
  const ValueId x = builder.parameter("x", {u8, {1, 4, 5, 5 + n}});
  const std::vector<std::byte> weights(4 * 4 * 3 * 3, std::byte{static_cast<uint8_t>(n)});
  const ValueId w = builder.constant({i8, {4, 4, 3, 3}}, weights);
  builder.result(builder.conv_integer(x, w, {.dilations = {1, 1}, .strides = {2, 2}}));
  return finished(builder);
}

struct Row {
  std::string_view name;
  FunctionPtr (*make)(size_t);
  size_t count;
  size_t long_count;
};

constexpr Row rows[] = {
    {"small", small_function, 100'000, 100'000},
    {"own_code", function_with_own_code, 100'000, 100'000},
    {"dead_operations", function_of_dead_operations, 300, 1000},
    {"long_names", function_of_long_names, 300, 1000},
    {"many_nests", function_of_many_nests, 300, 3000},
    {"convolutions", function_of_attributes, 1000, 20'000},
};

class CacheMemory : public testing::TestWithParam<Row> {};

/// Besides what the cache holds there are blocks of the allocator that are not whole pages,
/// arenas of code with a dead block or more, and what the last function took.
TEST_P(CacheMemory, IsAtMostTwiceTheBound) {
  if (test::keeps_freed_memory()) GTEST_SKIP() << "a sanitizer keeps freed memory";
  RuntimeOptions options;
  options.cache_bytes = size_t{2} << 20;
  const Result<Runtime> runtime = Runtime::create(options);
  ASSERT_TRUE(runtime.ok());
  const auto compile = [&](size_t n) {
    const FunctionPtr function = GetParam().make(n);
    const Result<Kernel> kernel = runtime->compile(function);
    EXPECT_TRUE(kernel.ok()) << kernel.error().to_string();
  };
  compile(0);
  const size_t before = test::resident_bytes();
  const size_t count = test::long_form() ? GetParam().long_count : GetParam().count;
  for (size_t n = 1; n < count && !HasFailure(); ++n) compile(n);
  const size_t after = test::resident_bytes();
  const CacheStatistics statistics = runtime->statistics();
  EXPECT_EQ(statistics.functions, count);
  EXPECT_LE(statistics.function_bytes + statistics.code_bytes, options.cache_bytes);
  EXPECT_LE(after, before + 2 * options.cache_bytes)
      << statistics.function_bytes << " bytes are counted";
  RecordProperty("grown_KiB", static_cast<int>((after - std::min(after, before)) / 1024));
}

/// Everything is kept, and nothing else is allocated.
TEST_P(CacheMemory, IsWhatTheCountersSay) {
  if (test::keeps_freed_memory()) GTEST_SKIP() << "a sanitizer allocates otherwise";
  RuntimeOptions options;
  options.cache_bytes = size_t{1} << 30;
  const Result<Runtime> runtime = Runtime::create(options);
  ASSERT_TRUE(runtime.ok());
  ASSERT_TRUE(runtime->compile(GetParam().make(0)).ok());
  const CacheStatistics before = runtime->statistics();
  const size_t code_before = runtime->memory().code_bytes;
  const size_t heap_before = test::heap_bytes();
  const size_t count = std::min<size_t>(GetParam().count, 100);
  for (size_t n = 1; n < count; ++n) ASSERT_TRUE(runtime->compile(GetParam().make(n)).ok());
  const size_t heap = test::heap_bytes() - heap_before;
  const CacheStatistics after = runtime->statistics();
  EXPECT_EQ(after.function_evictions, 0u);
  const auto counted = static_cast<double>(after.function_bytes + after.code_bytes -
                                           before.function_bytes - before.code_bytes);
  // Machine code is counted for functions and for itself; it is not in the heap.
  const auto held = static_cast<double>(heap + 2 * (runtime->memory().code_bytes - code_before));
  EXPECT_GT(counted, 0.75 * held) << GetParam().name;
  EXPECT_LT(counted, 1.6 * held) << GetParam().name;
}

INSTANTIATE_TEST_SUITE_P(Of, CacheMemory, testing::ValuesIn(rows),
                         [](const auto& row) { return std::string(row.param.name); });

/// A function that is larger than the cache is handed out, not kept, and drops nothing.
TEST(CacheMemoryOfOne, LargerThanTheCacheIsNotKept) {
  RuntimeOptions options;
  options.cache_bytes = size_t{256} << 10;
  const Result<Runtime> runtime = Runtime::create(options);
  ASSERT_TRUE(runtime.ok());
  ASSERT_TRUE(runtime->compile(small_function(0)).ok());
  const uint64_t held = runtime->statistics().function_bytes;
  FunctionPtr function = function_of_dead_operations(0);
  for (int round = 0; round < 2; ++round) {
    const Result<Kernel> kernel = runtime->compile(function);
    ASSERT_TRUE(kernel.ok());
    EXPECT_EQ(&kernel->function(), function.get());
  }
  EXPECT_EQ(function.use_count(), 1);
  EXPECT_EQ(runtime->statistics().function_bytes, held);
  EXPECT_EQ(runtime->statistics().functions, 3u);
  EXPECT_EQ(runtime->statistics().function_evictions, 0u);
}

/// Names are the caller's alone: the cache knows the function without them.
TEST(CacheMemoryOfOne, LongNamesAreNotKept) {
  RuntimeOptions options;
  options.cache_bytes = size_t{1} << 20;
  const Result<Runtime> runtime = Runtime::create(options);
  ASSERT_TRUE(runtime.ok());
  const FunctionPtr named = function_of_long_names(0);
  const Result<Kernel> first = runtime->compile(named);
  const Result<Kernel> again = runtime->compile(named);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(&first->function(), named.get());
  EXPECT_EQ(&again->function(), named.get());
  EXPECT_EQ(runtime->statistics().functions, 1u);
  EXPECT_EQ(runtime->statistics().function_hits, 1u);
  EXPECT_LT(runtime->statistics().function_bytes, 16u << 10);
  const Result<BoundKernel> bound = again->bind({{1}});
  ASSERT_TRUE(bound.ok());
  const float in = 3;
  float out = 0;
  const ConstView input(&in, f32, {1}, sizeof in);
  const View output(&out, f32, {1}, sizeof out);
  ASSERT_TRUE(bound->run({&input, 1}, {&output, 1}).ok());
  EXPECT_EQ(out, -3);
}

}  // namespace
}  // namespace castor
