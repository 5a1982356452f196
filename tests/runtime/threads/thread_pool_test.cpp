// SPDX-License-Identifier: Apache-2.0
// The pool of castor::threads: every task once, many callers, threads that spin and that sleep.
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <ctime>
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

void count_run(void* context, int /*index*/) { ++*static_cast<std::atomic<int>*>(context); }

TEST(ThreadPool, ShortCallsFollowEachOther) {
  const std::shared_ptr<Executor> pool = *make_thread_pool(2);
  for (int i = 0; i < 20'000; ++i) {
    std::atomic<int> runs = 0;
    pool->run(2, count_run, &runs);
    ASSERT_EQ(runs, 2) << "call " << i;
  }
}

/// After a pause that is longer than they wait in a loop.
TEST(ThreadPool, ThreadsThatSleepComeBack) {
  struct Meeting {
    std::atomic<int> present = 0;
  };
  // Each task waits for the other, so that both have to run at the same time.
  const auto meet = [](void* context, int /*index*/) {
    std::atomic<int>& present = static_cast<Meeting*>(context)->present;
    ++present;
    while (present < 2) std::this_thread::yield();
  };
  const std::shared_ptr<Executor> pool = *make_thread_pool(2);
  if (pool->tasks() < 2) GTEST_SKIP() << "one core";
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 2 == 0 ? 3 : 0));
    Meeting meeting;
    pool->run(2, meet, &meeting);
    ASSERT_EQ(meeting.present, 2);
  }
}

/// Nanoseconds of processor time of all threads of the process.
int64_t processor_time() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

TEST(ThreadPool, IdleThreadsSleep) {
  const std::shared_ptr<Executor> pool = *make_thread_pool(4);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        std::atomic<int> runs = 0;
        pool->run(1 + i % 4, count_run, &runs);
        ASSERT_EQ(runs, 1 + i % 4);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const int64_t before = processor_time();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_LT(processor_time() - before, 10'000'000);
}

TEST(ThreadPool, HasNoMoreThreadsThanProcessorsToRunOn) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &all)) continue;
    CPU_SET(i, &one);
    break;
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const int tasks = (*make_thread_pool(8))->tasks();
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(tasks, 1);
}

TEST(ThreadPool, EndsWhileThreadsSpinAndWhileTheySleep) {
  for (const int pause_us : {0, 50, 1000}) {
    for (int i = 0; i < 20; ++i) {
      const std::shared_ptr<Executor> pool = *make_thread_pool(2);
      std::atomic<int> runs = 0;
      pool->run(3, count_run, &runs);
      ASSERT_EQ(runs, 3);
      std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
    }
  }
}

TEST(ThreadPool, OfAsManyThreadsAsThereAreCores) {
  const Result<std::shared_ptr<Executor>> pool = make_thread_pool();
  ASSERT_TRUE(pool.ok());
  EXPECT_GE((*pool)->tasks(), 1);
}

}  // namespace
}  // namespace castor
