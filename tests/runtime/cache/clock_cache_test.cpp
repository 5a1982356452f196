// SPDX-License-Identifier: Apache-2.0
// The cache of functions and codes, one thread at a time: what it drops when, what it counts.
#include <gtest/gtest.h>

#include <list>
#include <optional>
#include <random>
#include <vector>

#include "tests/support/numbers_cache.hpp"

namespace castor {
namespace {

using test::CountedPtr;
using test::NumbersCache;

/// The numbers of `asked` that were made.
std::vector<int> made_of(NumbersCache& numbers, std::vector<int> asked) {
  std::vector<int> made;
  for (int number : asked) {
    if (numbers.makes(number)) made.push_back(number);
  }
  return made;
}

using Made = std::vector<int>;

TEST(ClockCache, DropsWhatWasAddedFirst) {
  NumbersCache numbers(3);
  EXPECT_EQ(made_of(numbers, {0, 1, 2, 3}), Made({0, 1, 2, 3}));  // 3 for 0
  EXPECT_EQ(numbers.alive, 3);
  EXPECT_EQ(made_of(numbers, {0, 1}), Made({0, 1}));  // for 1, for 2
  EXPECT_EQ(made_of(numbers, {3, 0, 1}), Made({}));
  EXPECT_EQ(numbers.cache.counters().evictions, 3u);
}

TEST(ClockCache, GivesASecondChanceToWhatWasFound) {
  NumbersCache numbers(3);
  made_of(numbers, {0, 1, 2});
  EXPECT_EQ(made_of(numbers, {0, 1, 0}), Made({}));
  EXPECT_EQ(made_of(numbers, {3}), Made({3}));  // for 2; the order is 0 1 3
  EXPECT_EQ(made_of(numbers, {1}), Made({}));
  EXPECT_EQ(made_of(numbers, {4}), Made({4}));  // for 0, whose second chance is over: 1 3 4
  EXPECT_EQ(made_of(numbers, {5}), Made({5}));  // for 3, since 1 was found: 4 1 5
  EXPECT_EQ(made_of(numbers, {1, 4, 5}), Made({}));
  EXPECT_EQ(made_of(numbers, {0}), Made({0}));  // for 4: all had been found, it is the oldest
  EXPECT_EQ(made_of(numbers, {5, 1, 0}), Made({}));
}

/// The clock algorithm in the plainest words.
class Model {
 public:
  explicit Model(size_t capacity) : capacity_(capacity) {}

  /// Whether the number must be made.
  bool makes(int number, size_t bytes) {
    for (Entry& entry : entries_) {
      if (entry.number == number) {
        entry.was_found = true;
        return false;
      }
    }
    if (bytes > capacity_) return true;
    while (held() + bytes > capacity_) evict();
    entries_.push_back({number, bytes, false});
    return true;
  }
  size_t held() const {
    size_t sum = 0;
    for (const Entry& entry : entries_) sum += entry.bytes;
    return sum;
  }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    int number;
    size_t bytes;
    bool was_found;
  };
  void evict() {
    while (entries_.front().was_found) {
      entries_.front().was_found = false;
      entries_.splice(entries_.end(), entries_, entries_.begin());
    }
    entries_.pop_front();
  }
  size_t capacity_;
  std::list<Entry> entries_;  // oldest first
};

TEST(ClockCache, FollowsTheModel) {
  for (const size_t room : {1, 2, 5, 40, 300}) {
    NumbersCache numbers(room);
    Model model(numbers.cache.capacity_bytes());
    std::mt19937 random(static_cast<unsigned>(room));
    const size_t own = NumbersCache::bytes_each() - NumbersCache::value_bytes;
    // With room for one, every other value fits, whatever an entry takes itself.
    const size_t sizes = room == 1 ? 2 * NumbersCache::value_bytes : 3 * NumbersCache::bytes_each();
    std::geometric_distribution<int> any_number(0.3 / static_cast<double>(room));
    for (int request = 0; request < 20000; ++request) {
      const int number = any_number(random);
      const size_t bytes = static_cast<size_t>(number) * 7919 % sizes;
      ASSERT_EQ(numbers.makes(number, bytes), model.makes(number, bytes + own))
          << "room for " << room << ", request " << request << ", number " << number;
      const CacheCounters counters = numbers.cache.counters();
      ASSERT_EQ(counters.bytes, model.held());
      ASSERT_EQ(counters.entries, model.size());
      ASSERT_LE(counters.bytes, numbers.cache.capacity_bytes());
      ASSERT_EQ(static_cast<size_t>(numbers.alive), model.size());  // nothing lingers
    }
    EXPECT_GT(numbers.cache.counters().evictions, 1000u) << "room for " << room;
  }
}

TEST(ClockCache, HandsOutWhatIsLargerThanTheBoundAndDropsNothingForIt) {
  NumbersCache numbers(3);
  made_of(numbers, {0, 1, 2});
  const size_t max = numbers.cache.capacity_bytes() - numbers.cache.bytes_of_an_entry();
  for (const size_t bytes : {max + 1, numbers.cache.capacity_bytes(), SIZE_MAX}) {
    EXPECT_TRUE(numbers.makes(7, bytes)) << bytes;
    EXPECT_TRUE(numbers.makes(7, bytes)) << bytes;  // again
    EXPECT_EQ(made_of(numbers, {0, 1, 2}), Made({})) << bytes;
  }
  EXPECT_EQ(numbers.cache.counters().evictions, 0u);
  EXPECT_TRUE(numbers.makes(8, max));  // just fits, alone
  EXPECT_FALSE(numbers.makes(8, max));
  EXPECT_EQ(numbers.cache.counters().entries, 1u);
  EXPECT_EQ(numbers.alive, 1);
}

TEST(ClockCache, KeepsNothingWithoutRoom) {
  for (const size_t capacity : {size_t{0}, NumbersCache::bytes_each() - 1}) {
    std::atomic<int> alive = 0;
    NumbersCache::Cache cache(capacity);
    for (int request = 0; request < 3; ++request) {
      const auto got = cache.get(0, 5, [&]() -> Result<NumbersCache::Cache::Made> {
        return NumbersCache::Cache::Made{std::make_shared<test::Counted>(5, alive), 100};
      });
      EXPECT_EQ((*got)->number(), 5);
    }
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(cache.counters().made, 3u);
    EXPECT_EQ(cache.counters().bytes, 0u);
  }
}

TEST(ClockCache, ForgetsWhatIsNotToBeKept) {
  NumbersCache numbers(3);
  EXPECT_TRUE(numbers.makes(1, 100, false));
  EXPECT_TRUE(numbers.makes(1, 100, false));
  EXPECT_TRUE(numbers.makes(1));
  EXPECT_FALSE(numbers.makes(1, 100, false));  // found
}

TEST(ClockCache, KeepsNoFailureAndNothingOfWhatThrew) {
  NumbersCache numbers(3);
  using CacheMade = NumbersCache::Cache::Made;
  for (int request = 0; request < 2; ++request) {
    const auto failed = numbers.get(1, []() -> Result<CacheMade> {
      return Error{ErrorCode::unsupported, "no"};
    });
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().code, ErrorCode::unsupported);
    EXPECT_EQ(failed.error().message, "no");
    EXPECT_THROW(
        static_cast<void>(numbers.get(1, []() -> Result<CacheMade> { throw std::bad_alloc(); })),
        std::bad_alloc);
  }
  EXPECT_EQ(numbers.cache.counters().bytes, 0u);
  EXPECT_TRUE(numbers.makes(1));
  EXPECT_FALSE(numbers.makes(1));
  const CacheCounters counters = numbers.cache.counters();
  EXPECT_EQ(counters.misses, 5u);
  EXPECT_EQ(counters.made, 1u);
  EXPECT_EQ(counters.hits, 1u);
}

TEST(ClockCache, ValuesSurviveEvictionAndTheCache) {
  std::atomic<int> alive = 0;
  std::optional<NumbersCache> numbers(std::in_place, 2);
  std::vector<CountedPtr> held = {numbers->get(0), numbers->get(0), numbers->get(1)};
  made_of(*numbers, {2, 3, 4, 5});
  EXPECT_EQ(numbers->alive, 4);
  held[0] = nullptr;
  EXPECT_EQ(numbers->alive, 4);  // one owner is left
  EXPECT_EQ(held[1]->number(), 0);
  held[1] = nullptr;
  EXPECT_EQ(numbers->alive, 3);
  const auto cache = std::make_unique<NumbersCache::Cache>(NumbersCache::bytes_each());
  const auto make = [&]() -> Result<NumbersCache::Cache::Made> {
    return NumbersCache::Cache::Made{std::make_shared<test::Counted>(9, alive), 100};
  };
  {
    NumbersCache::Cache short_lived(NumbersCache::bytes_each());
    held[0] = *short_lived.get(0, 9, make);
    held[1] = *short_lived.get(0, 9, make);
  }
  EXPECT_EQ(alive, 1);
  EXPECT_EQ(held[0]->number() + held[1]->number(), 18);
  held.clear();
  EXPECT_EQ(alive, 0);
}

TEST(ClockCache, CountsTheTimeOfMaking) {
  NumbersCache numbers(3);
  const auto sleep_ms = std::chrono::milliseconds(20);
  const auto begin = std::chrono::steady_clock::now();
  for (int request = 0; request < 3; ++request) {  // two failures count, too
    static_cast<void>(numbers.get(1, [&]() -> Result<NumbersCache::Cache::Made> {
      std::this_thread::sleep_for(sleep_ms);
      if (request < 2) return Error{ErrorCode::unsupported, "no"};
      return NumbersCache::Cache::Made{numbers.value_of(1), 100};
    }));
  }
  EXPECT_FALSE(numbers.makes(1));
  const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - begin;
  const uint64_t counted = numbers.cache.counters().make_ns;
  EXPECT_GE(counted, 60'000'000u);
  EXPECT_LE(counted, static_cast<uint64_t>(elapsed.count()));
}

}  // namespace
}  // namespace castor
