// SPDX-License-Identifier: Apache-2.0
// A runtime's cache: what it shares, what it counts, what it drops and what it never keeps.
#include <gtest/gtest.h>

#include <thread>

#include "jit/core/core_tuning.hpp"
#include "runtime/runtime_state.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/key_functions.hpp"
#include "tests/support/to_f16.hpp"

namespace castor {
namespace {

using test::make_runtime;
using test::to_f16_text;

TEST(Cache, NewShapesOfAKnownPatternCompileNothing) {
  const Runtime runtime = make_runtime();
  const Kernel kernel = std::move(runtime.compile(to_f16_text)).value();
  const uint64_t compiled = runtime.statistics().codes;
  EXPECT_EQ(compiled, 1u);
  for (int64_t n = 0; n < 40; ++n) {
    for (int64_t c = 0; c < 25; ++c) ASSERT_TRUE(kernel.bind({{n, c}}).ok());
  }
  // Compiled were tensors beyond L1, for which a core that prefetches has other code.
  const bool prefetches = jit::choose_target({})->tuning().prefetch.output_bytes > 0;
  EXPECT_EQ(runtime.statistics().codes, compiled + (prefetches ? 1 : 0));
}

TEST(Cache, EqualFunctionsShareTheirCode) {
  const Runtime runtime = make_runtime();
  ASSERT_TRUE(runtime.compile(to_f16_text).ok());
  ASSERT_TRUE(runtime.compile(to_f16_text).ok());
  const Result<Kernel> renamed = runtime.compile(
      "func @other(%in: f32[?n, ?c]) -> (f16[?n, ?c]) { %out = convert %in : f16 return %out }");
  ASSERT_TRUE(renamed.ok()) << renamed.error().to_string();
  EXPECT_EQ(renamed->function().name, "other");
  const CacheStatistics statistics = runtime.statistics();
  EXPECT_EQ(statistics.functions, 1u);
  EXPECT_EQ(statistics.function_hits, 2u);
  EXPECT_EQ(statistics.codes, 1u);
  // Another rank is another function, and the same code.
  ASSERT_TRUE(runtime
                  .compile("func @f(%x: f32[70000]) -> (f16[70000]) {\n%y = convert %x : f16\n"
                           "return %y\n}")
                  .ok());
  EXPECT_EQ(runtime.statistics().functions, 2u);
  EXPECT_EQ(runtime.statistics().codes, 1u);
  EXPECT_EQ(runtime.statistics().code_hits, 1u);
}

TEST(Cache, IsBoundedAndKernelsOutliveIt) {
  RuntimeOptions options;
  options.cache_bytes = 4096;
  std::optional<Kernel> first;
  {
    const Runtime runtime = make_runtime(options);
    first = std::move(runtime.compile(to_f16_text)).value();
    for (const test::Conversion& conversion : test::all_conversions()) {
      std::byte in[8] = {};
      std::byte out[8] = {};
      ASSERT_TRUE(runtime
                      .convert(ConstView(in, conversion.from, {1}, 8),
                               View(out, conversion.to, {1}, 8), conversion.options)
                      .ok());
      ASSERT_LE(runtime.statistics().code_bytes, 4096u);
    }
  }
  const float in[2] = {1, 2};
  uint16_t out[2] = {};
  const ConstView x(in, ElementType::f32, {1, 2}, 8);
  const View y(out, ElementType::f16, {1, 2}, 4);
  ASSERT_TRUE(first->bind({{1, 2}})->run({&x, 1}, {&y, 1}).ok());
  EXPECT_EQ(out[1], 0x4000);
}

TEST(Cache, GivesMemoryBack) {
  RuntimeOptions options;
  options.cache_bytes = size_t{16} << 10;
  auto state = detail::make_runtime(options, jit::SystemCalls::real());
  ASSERT_TRUE(state.ok());
  for (const test::Conversion& conversion : test::all_conversions()) {
    FunctionBuilder builder("f");
    const ValueId x = builder.parameter("x", {conversion.from, {"?n"}});
    builder.result(builder.convert(x, conversion.to, conversion.options));
    const FunctionPtr function = std::move(builder.finish()).value();
    ASSERT_TRUE((*state)->table->get().get(function, **state).ok());
    ASSERT_LE((*state)->table->get().kernel_counters().bytes, options.cache_bytes / 2);
    ASSERT_LE((*state)->store->cache.counters().bytes, options.cache_bytes / 2);
  }
  // Arenas go when their last code does: few are left of those that all this code took.
  EXPECT_LE((*state)->store->memory.mapped_bytes(),
            2 * jit::CodeMemory::largest_arena_bytes + options.cache_bytes);
}

/// Compiles function number `key` and runs it.
bool works(const Runtime& runtime, int key) {
  const Result<Kernel> kernel = runtime.compile(test::key_function(key));
  return kernel.ok() && test::computes_key_function(*kernel, key);
}

TEST(Cache, CountsHitsMissesEvictionsTimeAndBytes) {
  RuntimeOptions options;
  options.cache_bytes = size_t{64} << 10;
  const Runtime runtime = make_runtime(options);
  EXPECT_EQ(runtime.statistics().function_misses, 0u);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(works(runtime, 0));
  const CacheStatistics one = runtime.statistics();
  EXPECT_EQ(one.functions, 1u);
  EXPECT_EQ(one.function_misses, 1u);
  EXPECT_EQ(one.codes, 1u);
  EXPECT_EQ(one.code_misses, 1u);
  EXPECT_GT(one.code_compile_ns, 1000u);
  EXPECT_GT(one.function_compile_ns, one.code_compile_ns);
  EXPECT_GT(one.code_bytes, 100u);
  EXPECT_GT(one.function_bytes, one.code_bytes / 2);

  ASSERT_TRUE(works(runtime, 0));
  const CacheStatistics two = runtime.statistics();
  EXPECT_EQ(two.function_hits, 1u);
  EXPECT_EQ(two.function_compile_ns, one.function_compile_ns);
  EXPECT_EQ(two.code_compile_ns, one.code_compile_ns);
  EXPECT_EQ(two.function_bytes, one.function_bytes);

  for (int key = 1; key < 300; ++key) ASSERT_TRUE(works(runtime, key));
  const CacheStatistics many = runtime.statistics();
  EXPECT_EQ(many.functions, 300u);
  EXPECT_EQ(many.function_misses, 300u);
  EXPECT_EQ(many.codes, many.code_misses);
  EXPECT_GT(many.function_evictions, 200u);
  EXPECT_GT(many.code_evictions, 200u);
  EXPECT_LE(many.function_bytes, options.cache_bytes / 2);
  EXPECT_LE(many.code_bytes, options.cache_bytes / 2);
  const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(many.function_compile_ns, static_cast<uint64_t>(elapsed.count()));
}

TEST(Cache, WhatIsUsedStaysAndWhatIsNotGoes) {
  RuntimeOptions options;
  options.cache_bytes = size_t{64} << 10;
  const Runtime runtime = make_runtime(options);
  ASSERT_TRUE(works(runtime, 0));
  ASSERT_TRUE(works(runtime, 1));
  for (int key = 2; key < 300; ++key) {
    ASSERT_TRUE(works(runtime, key));
    ASSERT_TRUE(works(runtime, 0));
  }
  const uint64_t compiled = runtime.statistics().functions;
  EXPECT_EQ(compiled, 300u);
  ASSERT_TRUE(works(runtime, 1));
  EXPECT_EQ(runtime.statistics().functions, compiled + 1);
}

TEST(Cache, KeepsNothingWhereItHasNoRoom) {
  RuntimeOptions options;
  options.cache_bytes = 0;
  const Runtime runtime = make_runtime(options);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(works(runtime, 5));
    uint8_t out = 0;
    const float in = 7;
    ASSERT_TRUE(
        runtime
            .convert(ConstView(&in, ElementType::f32, {1}, 4), View(&out, ElementType::u8, {1}, 1))
            .ok());
    EXPECT_EQ(out, 7);
  }
  const CacheStatistics statistics = runtime.statistics();
  EXPECT_EQ(statistics.functions, 4u);
  EXPECT_EQ(statistics.function_hits, 0u);
  EXPECT_EQ(statistics.function_bytes + statistics.code_bytes, 0u);
}

/// A function with a constant that is larger than the cache.
TEST(Cache, LargeConstantsAreNotKeptAndDropNothing) {
  RuntimeOptions options;
  options.cache_bytes = size_t{128} << 10;
  const Runtime runtime = make_runtime(options);
  ASSERT_TRUE(works(runtime, 0));
  const std::vector<std::byte> zeros(size_t{256} << 10);
  FunctionBuilder builder("large");
  const auto elements = static_cast<int64_t>(zeros.size());
  const TensorType type{ElementType::u8, Shape({Dim(elements)})};
  builder.result(
      builder.binary(OpKind::add, builder.parameter("x", type), builder.constant(type, zeros)));
  const FunctionPtr function = std::move(builder.finish()).value();
  for (uint64_t round = 1; round < 3; ++round) {
    ASSERT_TRUE(runtime.compile(function).ok());
    EXPECT_EQ(runtime.statistics().functions, 1 + round);
  }
  EXPECT_EQ(runtime.statistics().function_evictions, 0u);
  ASSERT_TRUE(works(runtime, 0));
  EXPECT_EQ(runtime.statistics().function_hits, 1u);
}

TEST(Cache, RuntimesShareNothing) {
  const Runtime a = make_runtime();
  const Runtime b = make_runtime();
  for (int key = 0; key < 5; ++key) ASSERT_TRUE(works(a, key));
  EXPECT_EQ(b.statistics().functions, 0u);
  ASSERT_TRUE(works(b, 0));
  EXPECT_EQ(b.statistics().codes, 1u);
  EXPECT_EQ(a.statistics().functions, 5u);
}

TEST(Cache, KernelsHeldByManySurviveEvictionAndTheRuntime) {
  std::vector<Kernel> held;
  {
    RuntimeOptions options;
    options.cache_bytes = size_t{64} << 10;
    const Runtime runtime = make_runtime(options);
    for (int key = 0; key < 200; ++key) {
      held.push_back(*runtime.compile(test::key_function(key)));
      held.push_back(*runtime.compile(test::key_function(key, "same")));  // found
    }
    EXPECT_EQ(runtime.statistics().function_hits, 200u);
    EXPECT_GT(runtime.statistics().function_evictions, 150u);
  }
  for (size_t i = 0; i < held.size(); ++i) {
    ASSERT_TRUE(test::computes_key_function(held[i], static_cast<int>(i / 2))) << i;
  }
}

TEST(Cache, ServesEightThreads) {
  RuntimeOptions options;
  options.cache_bytes = size_t{64} << 10;  // small enough to evict meanwhile
  const Runtime runtime = make_runtime(options);
  const std::vector<test::Conversion> conversions = test::all_conversions();
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < conversions.size(); ++i) {
        const test::Conversion& conversion = conversions[(i * 7 + t * 31) % conversions.size()];
        uint64_t in = 0x3c00123442c80000 + i;
        uint64_t out = 0;
        const Status status =
            runtime.convert(ConstView(&in, conversion.from, {1}, 8),
                            View(&out, conversion.to, {1}, 8), conversion.options);
        const auto element_of = [](const uint64_t& word, ElementType type) {
          return samples::load_pattern(std::as_bytes(std::span(&word, 1)), type, 0);
        };
        const uint64_t expected = numerics::convert(
            element_of(in, conversion.from), conversion.from, conversion.to, conversion.options);
        if (!status.ok() || element_of(out, conversion.to) != expected) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace castor
