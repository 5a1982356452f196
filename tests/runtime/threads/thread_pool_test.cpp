// SPDX-License-Identifier: Apache-2.0
// The pools of castor::threads, with oneTBB where there is one and on plain threads: every task
// once, many callers.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "castor/castor.hpp"
#include "castor/thread_pool.hpp"

namespace castor {
namespace {

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (const int threads : {1, 2, 5}) {
    const std::shared_ptr<Executor> pool = *make_thread_pool(threads);
    EXPECT_LE(pool->tasks(), threads);
    EXPECT_GE(pool->tasks(), 1);
    for (const int count : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> runs(1000);
      pool->run(
          count,
          [](void* context, int index) {
            ++(*static_cast<std::vector<std::atomic<int>>*>(context))[static_cast<size_t>(index)];
          },
          &runs);
      for (int i = 0; i < 1000; ++i) {
        ASSERT_EQ(runs[static_cast<size_t>(i)], i < count ? 1 : 0) << i << " of " << count;
      }
    }
  }
}

TEST(ThreadPool, ManyCallersShareOne) {
  const Runtime runtime = *Runtime::create({.executor = *make_thread_pool(3)});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (size_t caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&, caller] {
      const size_t count = (size_t{1} << 20) + caller;
      const auto extent = static_cast<int64_t>(count);
      std::vector<float> x(count);
      for (size_t i = 0; i < count; ++i) x[i] = static_cast<float>(i % 100) - 50;
      std::vector<int8_t> y(count, 99);
      const ConstView source(x.data(), ElementType::f32, {extent}, 4 * count);
      const View destination(y.data(), ElementType::i8, {extent}, count);
      for (int i = 0; i < 5; ++i) wrong += runtime.convert(source, destination).ok() ? 0 : 1;
      for (size_t i = 0; i < count; ++i) wrong += y[i] == static_cast<int8_t>(x[i]) ? 0 : 1;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, OfAsManyThreadsAsThereAreCores) {
  const Result<std::shared_ptr<Executor>> pool = make_thread_pool();
  ASSERT_TRUE(pool.ok());
  EXPECT_GE((*pool)->tasks(), 1);
}

}  // namespace
}  // namespace castor
