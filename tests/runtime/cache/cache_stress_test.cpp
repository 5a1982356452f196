// SPDX-License-Identifier: Apache-2.0
// Eight threads compile, hold and run kernels while the cache drops them all the time.
#include <gtest/gtest.h>

#include <latch>
#include <random>
#include <thread>

#include "tests/support/key_functions.hpp"
#include "tests/support/to_f16.hpp"

namespace castor {
namespace {

constexpr int thread_count = 8;

struct Row {
  std::string_view name;
  int keys;
  size_t cache_bytes;
  int requests;     ///< requests per thread
  bool mostly_one;  ///< seven in eight are for key 0
};
constexpr Row rows[] = {
    {"one key, no cache", 1, 0, 100, false},
    {"few keys, room for one or two", 4, size_t{40} << 10, 200, false},
    {"few keys, room for all", 4, size_t{1} << 20, 2000, false},
    {"many keys, room for few", 400, size_t{64} << 10, 200, false},
    {"many keys, room for few, one hot", 400, size_t{64} << 10, 1000, true},
    {"many keys, room for all", 400, size_t{8} << 20, 1000, false},
};

struct Held {
  Kernel kernel;
  int key;
};

/// Compiles random functions and runs them at once and once more later, when they were dropped.
void stress(const Runtime& runtime, const Row& row, const std::vector<FunctionPtr>& functions,
            int thread, std::atomic<int>& wrong) {
  std::mt19937 random(static_cast<unsigned>(thread));
  std::vector<std::optional<Held>> held(20);
  for (int request = 0; request < row.requests; ++request) {
    const bool hot = row.mostly_one && random() % 8 != 0;
    const int key = hot ? 0 : static_cast<int>(random() % static_cast<unsigned>(row.keys));
    const FunctionPtr function =  // the same object, or an equal one
        random() % 4 != 0 ? functions[static_cast<size_t>(key)] : test::key_function(key, "other");
    Result<Kernel> kernel = runtime.compile(function);
    if (!kernel.ok() || kernel->function().name != function->name ||
        !test::computes_key_function(*kernel, key)) {
      ++wrong;
      continue;
    }
    std::optional<Held>& slot = held[random() % held.size()];
    if (slot && !test::computes_key_function(slot->kernel, slot->key)) ++wrong;
    slot = Held{std::move(kernel).value(), key};
  }
}

TEST(CacheStress, KernelsAreRightWhateverIsDropped) {
  for (const Row& row : rows) {
    RuntimeOptions options;
    options.cache_bytes = row.cache_bytes;
    const Runtime runtime = test::make_runtime(options);
    std::vector<FunctionPtr> functions;
    for (int key = 0; key < row.keys; ++key) functions.push_back(test::key_function(key));
    std::atomic<int> wrong = 0;
    std::latch ready(thread_count);
    std::vector<std::thread> threads;
    for (int i = 0; i < thread_count; ++i) {
      threads.emplace_back([&, i] {
        ready.arrive_and_wait();
        stress(runtime, row, functions, i, wrong);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0) << row.name;
    const CacheStatistics statistics = runtime.statistics();
    const uint64_t requests = static_cast<uint64_t>(thread_count * row.requests);
    EXPECT_EQ(statistics.function_hits + statistics.function_misses, requests) << row.name;
    EXPECT_LE(statistics.function_bytes + statistics.code_bytes, row.cache_bytes) << row.name;
    if (row.name.ends_with("room for all")) {
      EXPECT_EQ(statistics.functions, static_cast<uint64_t>(row.keys)) << row.name;
      EXPECT_EQ(statistics.function_evictions, 0u) << row.name;
    } else if (row.keys > 1) {
      EXPECT_GT(statistics.function_evictions, 50u) << row.name;
    }
  }
}

}  // namespace
}  // namespace castor
