// SPDX-License-Identifier: Apache-2.0
// The cache: what it shares, what it counts, how far it grows, and eight threads at once.
#include <gtest/gtest.h>

#include <thread>

#include "runtime/state.hpp"
#include "tests/support/conversions.hpp"
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
  EXPECT_EQ(runtime.statistics().codes, compiled);
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
  ASSERT_TRUE(
      runtime.compile("func @f(%x: f32[4]) -> (f16[4]) {\n%y = convert %x : f16\nreturn %y\n}")
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
    ASSERT_TRUE((*state)->table.get().get(function, **state).ok());
    ASSERT_LE((*state)->table.get().kernel_counters().bytes, options.cache_bytes / 2);
    ASSERT_LE((*state)->store->cache.counters().bytes, options.cache_bytes / 2);
  }
  // Arenas go when their last code does: few are left of those that all this code took.
  EXPECT_LE((*state)->store->memory.mapped_bytes(),
            2 * jit::CodeMemory::largest_arena_bytes + options.cache_bytes);
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
