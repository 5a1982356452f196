// SPDX-License-Identifier: Apache-2.0
// Handles of the C API shared by threads: one runtime compiles, one kernel is bound, one bound
// kernel runs, all at the same time.
#include <castor/castor.h>
#include <gtest/gtest.h>

#include <atomic>
#include <span>
#include <thread>
#include <utility>

#include "tests/support/c_world.hpp"

namespace castor::test {
namespace {

constexpr int threads = 4;
constexpr int rounds = 20;

/// One whole use of a world's handles, with outputs of its own. Whether all went right.
bool use(const World& world, std::span<const std::byte> expected) {
  castor_error error;
  castor_function* function = nullptr;
  castor_kernel* kernel = nullptr;
  castor_bound_kernel* bound = nullptr;
  castor_text* text = nullptr;
  castor_statistics statistics = CASTOR_STATISTICS;
  std::vector<std::byte> data(world.output_data.size());
  castor_view output = world.output;
  output.data = data.data();
  const bool is_right =
      world.parse(&error, &function) == CASTOR_OK &&
      castor_function_print(world.function, &text, &error) == CASTOR_OK &&
      castor_runtime_compile(world.runtime, function, &kernel, &error) == CASTOR_OK &&
      world.bind_views(&error, &bound) == CASTOR_OK &&
      castor_bound_kernel_run(world.bound, world.inputs.data(), world.inputs.size(), &output, 1,
                              nullptr, &error) == CASTOR_OK &&
      std::ranges::equal(data, expected) &&
      castor_runtime_statistics(world.runtime, &statistics, &error) == CASTOR_OK &&
      castor_bound_kernel_code_bytes(bound) == castor_bound_kernel_code_bytes(world.bound);
  EXPECT_EQ(error.status, CASTOR_OK) << error.message;
  castor_text_destroy(text);
  castor_bound_kernel_destroy(bound);
  castor_kernel_destroy(kernel);
  castor_function_destroy(function);
  return is_right;
}

TEST(CastorCThreads, ShareHandles) {
  for (const FunctionRow& row : functions()) {
    World world(row, Ready::bound, false);
    ASSERT_EQ(world.run(nullptr, nullptr), CASTOR_OK);
    const std::vector<std::byte> expected = world.output_data;
    std::atomic<int> right = 0;
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&] {
        for (int round = 0; round < rounds; ++round) right += use(world, expected) ? 1 : 0;
      });
    }
    for (std::thread& thread : all) thread.join();
    EXPECT_EQ(right, threads * rounds) << row.name;
  }
}

TEST(CastorCThreads, ConvertWithOneRuntime) {
  castor_runtime* runtime = nullptr;
  ASSERT_EQ(castor_runtime_create(nullptr, &runtime, nullptr), CASTOR_OK);
  std::atomic<int> right = 0;
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      for (castor_element_type to = CASTOR_U8; to <= CASTOR_U64; ++to) {
        const float from[3] = {1, 2, 3};
        uint64_t result[3] = {0, 0, 0};
        const int64_t n = 3;
        const castor_view x = {
            const_cast<float*>(from), CASTOR_F32, 1, &n, nullptr, 0, sizeof from};
        const castor_view y = {result, to, 1, &n, nullptr, 0, sizeof result};
        const bool is_done = castor_convert(runtime, &x, &y, nullptr, nullptr) == CASTOR_OK;
        right += is_done && (result[0] & 0xff) == 1 ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(right, threads * 4);
  castor_runtime_destroy(runtime);
}

/// Runtimes of several threads share packed weights and an executor.
TEST(CastorCThreads, SharePackedWeightsAndAnExecutor) {
  const FunctionRow& row = functions()[4];
  ASSERT_STREQ(row.name, "convolution_and_epilogue");
  World first(row, Ready::bound, false);
  ASSERT_EQ(first.run(nullptr, nullptr), CASTOR_OK);
  castor_packed_weights* weights = nullptr;
  ASSERT_EQ(castor_packed_weights_create(nullptr, &weights, nullptr), CASTOR_OK);
  std::atomic<int> right = 0;
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      castor_runtime_options options = CASTOR_RUNTIME_OPTIONS;
      options.executor = &in_order;
      options.packed_weights = weights;
      castor_runtime* runtime = nullptr;
      castor_weight_statistics statistics = CASTOR_WEIGHT_STATISTICS;
      if (castor_runtime_create(&options, &runtime, nullptr) != CASTOR_OK) return;
      {
        World world(row, Ready::runtime, false);
        castor_runtime_destroy(std::exchange(world.runtime, runtime));
        const bool is_right =
            world.parse(nullptr, &world.function) == CASTOR_OK &&
            castor_runtime_compile(runtime, world.function, &world.kernel, nullptr) == CASTOR_OK &&
            world.bind_views(nullptr, &world.bound) == CASTOR_OK &&
            world.run(nullptr, nullptr) == CASTOR_OK && world.output_data == first.output_data &&
            castor_packed_weights_statistics(weights, &statistics, nullptr) == CASTOR_OK;
        right += is_right && statistics.entries <= 1 ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(right, threads);
  castor_packed_weights_destroy(weights);
}

}  // namespace
}  // namespace castor::test
