// SPDX-License-Identifier: Apache-2.0
// The cache of functions and codes under many threads: who makes what all ask for, and that nobody
// sees what was freed.
#include <gtest/gtest.h>

#include <functional>
#include <latch>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/numbers_cache.hpp"

namespace castor {
namespace {

using test::CountedPtr;
using test::NumbersCache;
using Made = NumbersCache::Cache::Made;

constexpr int thread_count = 8;

/// Runs `body(thread)` in that many threads, which begin together.
void in_threads(int count, const std::function<void(int)>& body) {
  std::latch ready(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      ready.arrive_and_wait();
      body(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Returns when `misses` requests did not find their value: all but one of a key wait then, or are
/// about to.
void await_misses(const NumbersCache& numbers, uint64_t misses) {
  while (numbers.cache.counters().misses < misses) std::this_thread::yield();
}

/// All ask for the same key while it is not there: one makes the value, all get it.
void expect_one_made_for_all(NumbersCache& numbers) {
  std::vector<CountedPtr> got(thread_count);
  in_threads(thread_count, [&](int thread) {
    got[static_cast<size_t>(thread)] = *numbers.get(5, [&]() -> Result<Made> {
      await_misses(numbers, thread_count);
      ++numbers.made;
      return Made{numbers.value_of(5), 100};
    });
  });
  EXPECT_EQ(numbers.made, 1);
  for (const CountedPtr& each : got) EXPECT_EQ(each.get(), got[0].get());
}

TEST(ClockCacheThreads, OneMakesForAll) {
  NumbersCache numbers(3);
  expect_one_made_for_all(numbers);
  const CacheCounters counters = numbers.cache.counters();
  EXPECT_EQ(counters.made, 1u);
  EXPECT_EQ(counters.misses, static_cast<uint64_t>(thread_count));
  EXPECT_EQ(counters.hits, 0u);
}

TEST(ClockCacheThreads, AllGetWhatIsTooLargeToKeep) {
  NumbersCache numbers(0);
  expect_one_made_for_all(numbers);
  EXPECT_EQ(numbers.cache.counters().entries, 0u);
}

TEST(ClockCacheThreads, AllGetTheFailure) {
  NumbersCache numbers(3);
  std::atomic<int> failures = 0;
  in_threads(thread_count, [&](int) {
    const Result<CountedPtr> got = numbers.get(5, [&]() -> Result<Made> {
      await_misses(numbers, thread_count);
      ++numbers.made;
      return Error{ErrorCode::executable_memory, "refused"};
    });
    if (!got.ok() && got.error().message == "refused") ++failures;
  });
  EXPECT_EQ(numbers.made, 1);
  EXPECT_EQ(failures, thread_count);
  EXPECT_TRUE(numbers.makes(5));  // nothing was kept, and nobody is thought to make it
}

TEST(ClockCacheThreads, AnotherMakesWhatOneGaveUp) {
  NumbersCache numbers(3);
  std::atomic<int> threw = 0;
  std::atomic<int> right = 0;
  in_threads(thread_count, [&](int) {
    try {
      const Result<CountedPtr> got = numbers.get(5, [&]() -> Result<Made> {
        await_misses(numbers, thread_count);
        if (++numbers.made < 4) throw std::bad_alloc();
        return Made{numbers.value_of(5), 100};
      });
      if (got.ok() && (*got)->number() == 5) ++right;
    } catch (const std::bad_alloc&) {
      ++threw;
    }
  });
  EXPECT_EQ(threw, 3);
  EXPECT_EQ(right, thread_count - 3);
  EXPECT_EQ(numbers.made, 4);
}

TEST(ClockCacheThreads, OtherKeysAreMadeAndFoundMeanwhile) {
  NumbersCache numbers(3);
  numbers.get(1);
  std::atomic<bool> others_are_done = false;
  std::thread slow([&] {
    static_cast<void>(numbers.get(3, [&]() -> Result<Made> {
      while (!others_are_done) std::this_thread::yield();
      return Made{numbers.value_of(3), 100};
    }));
  });
  await_misses(numbers, 2);
  EXPECT_FALSE(numbers.makes(1));
  EXPECT_TRUE(numbers.makes(4));  // a key of the same hash
  EXPECT_TRUE(numbers.makes(5));
  EXPECT_TRUE(numbers.makes(6));
  EXPECT_TRUE(numbers.makes(7));  // drops others
  others_are_done = true;
  slow.join();
  EXPECT_FALSE(numbers.makes(3));
}

TEST(ClockCacheThreads, MakingMayAskForAnotherKeyAndAnotherCache) {
  NumbersCache functions(50);
  NumbersCache codes(5);
  in_threads(thread_count, [&](int thread) {
    std::mt19937 random(static_cast<unsigned>(thread));
    for (int request = 0; request < 500; ++request) {
      const int number = static_cast<int>(random() % 100);
      static_cast<void>(functions.get(number, [&]() -> Result<Made> {
        const CountedPtr code = codes.get(number % 10);
        EXPECT_EQ(code->number(), number % 10);
        return Made{functions.value_of(number), 100};
      }));
    }
  });
  EXPECT_EQ(functions.cache.counters().hits + functions.cache.counters().misses,
            uint64_t{thread_count} * 500);
}

struct StressRow {
  int keys;
  size_t room;
  bool mostly_one;  ///< nearly all requests are for one key
};

/// Values are looked at before and after others had the chance to drop them.
void ask(NumbersCache& numbers, const StressRow& row, int thread, std::atomic<int>& wrong) {
  std::mt19937 random(static_cast<unsigned>(thread));
  std::vector<CountedPtr> held(5);
  for (int request = 0; request < 20000; ++request) {
    const bool hot = row.mostly_one && random() % 16 != 0;
    const int number = hot ? 0 : static_cast<int>(random() % static_cast<unsigned>(row.keys));
    CountedPtr& slot = held[random() % held.size()];
    if (slot != nullptr && slot->number() < 0) ++wrong;
    slot = numbers.get(number);
    if (slot->number() != number) ++wrong;
  }
}

TEST(ClockCacheThreads, NobodySeesWhatWasFreed) {
  for (const StressRow& row : {StressRow{1, 1, false},
                               {2, 1, false},
                               {12, 4, false},
                               {12, 4, true},
                               {1000, 100, false},
                               {1000, 2000, true}}) {
    NumbersCache numbers(row.room);
    std::atomic<int> wrong = 0;
    in_threads(thread_count, [&](int thread) { ask(numbers, row, thread, wrong); });
    EXPECT_EQ(wrong, 0) << row.keys << " keys, room for " << row.room;
    numbers.get(row.keys);  // with nobody else inside, whatever was dropped is freed
    const CacheCounters counters = numbers.cache.counters();
    EXPECT_EQ(counters.hits + counters.misses, uint64_t{thread_count} * 20000 + 1);
    EXPECT_EQ(counters.made, static_cast<uint64_t>(numbers.made));
    EXPECT_EQ(counters.made, counters.entries + counters.evictions);
    EXPECT_LE(counters.bytes, numbers.cache.capacity_bytes());
    EXPECT_EQ(static_cast<size_t>(numbers.alive), counters.entries);
    if (static_cast<size_t>(row.keys) > row.room) {
      EXPECT_GT(counters.evictions, row.room);
    }
  }
}

}  // namespace
}  // namespace castor
