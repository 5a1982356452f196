// SPDX-License-Identifier: Apache-2.0
// A cache of values that know their number and how many of them are alive.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "runtime/cache/clock_cache.hpp"

namespace castor::test {

/// A value whose number shows when it was destroyed.
class Counted {
 public:
  Counted(int number, std::atomic<int>& alive) : number_(number), alive_(alive) { ++alive_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() {
    number_ = -1;
    --alive_;
  }
  int number() const { return number_; }

 private:
  int number_;
  std::atomic<int>& alive_;
};
using CountedPtr = std::shared_ptr<const Counted>;

/// Values by number, which count for 100 bytes unless said otherwise.
class NumbersCache {
 public:
  using Cache = ClockCache<int, Counted>;
  static constexpr size_t value_bytes = 100;

  /// What one value counts for in all.
  static size_t bytes_each() { return value_bytes + Cache(0).bytes_of_an_entry(); }
  explicit NumbersCache(size_t room_for) : cache(room_for * bytes_each()) {}

  /// Three numbers have one hash, so that look-ups meet others' entries.
  static uint64_t hash_of(int number) { return static_cast<uint64_t>(number) / 3; }

  template <class Make>
  Result<CountedPtr> get(int number, const Make& make) {
    return cache.get(hash_of(number), number, make);
  }
  CountedPtr get(int number, size_t bytes = value_bytes, bool keep = true) {
    return *get(number, [&]() -> Result<Cache::Made> {
      ++made;
      return Cache::Made{value_of(number), bytes, keep};
    });
  }
  /// Whether asking for it made it. (Asking changes what is kept.)
  bool makes(int number, size_t bytes = value_bytes, bool keep = true) {
    const int before = made;
    return get(number, bytes, keep)->number() == number && made != before;
  }
  CountedPtr value_of(int number) { return std::make_shared<Counted>(number, alive); }

  std::atomic<int> alive = 0;
  std::atomic<int> made = 0;
  Cache cache;
};

}  // namespace castor::test
