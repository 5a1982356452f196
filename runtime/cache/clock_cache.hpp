// SPDX-License-Identifier: Apache-2.0
// A cache of shared values, bounded by bytes, whose look-ups take no lock.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "ir/support/result.hpp"
#include "runtime/cache/read_sections.hpp"
#include "runtime/cache/single_flight.hpp"
#include "runtime/cache/slot_table.hpp"
#include "runtime/cache/striped_owners.hpp"

namespace castor {

/// Counters of one cache, since it was made.
struct CacheCounters {
  uint64_t hits = 0;       ///< requests that found their value
  uint64_t misses = 0;     ///< requests that did not: they made it, or waited for who did
  uint64_t made = 0;       ///< values made successfully
  uint64_t evictions = 0;  ///< values dropped for others
  uint64_t make_ns = 0;    ///< time spent making values, failures included, in nanoseconds
  size_t entries = 0;      ///< values held at present
  size_t bytes = 0;        ///< what they count for
};

/// Values by key. Thread safe.
///
/// A request that finds its value takes no lock. It counts on a line of memory of its processor's
/// own (with more than `Stripes::max` processors, several share one), and writes one bit of the
/// entry, where that is clear. So such requests cost the same however many threads make them.
///
/// A value that is not there is made once, however many threads ask for it meanwhile: they wait,
/// and get the same value or the same failure. Failures are not kept. If making throws, one of
/// those who wait makes it. Making may use other caches, as long as these never wait for this one.
///
/// Bounded: what was added first is dropped first, unless it was found since; then it gets a second
/// chance: its bit is cleared and it counts as added last (the clock algorithm). The bound always
/// holds; a value that is larger is handed out and not kept. Whoever holds a dropped value keeps it
/// alive. The cache lets go of it as soon as no look-up is under way that may have seen it, at the
/// next request that does not find its value (or with the cache).
///
/// A process that is forked while a thread is in here must not use its copy, see ForkPrivate.
template <class Key, class Value, class Equal = std::equal_to<Key>>
class ClockCache {
 public:
  using ValuePtr = std::shared_ptr<const Value>;

  /// What a request made.
  struct Made {
    ValuePtr value;    ///< not null
    size_t bytes = 0;  ///< what it counts for, besides the cache's own bytes_of_an_entry()
    bool keep = true;  ///< false: hand it to those who wait, and forget it
    /// Kept instead of the key that was asked for, which it equals; none: that key.
    std::optional<Key> key{};
  };

  explicit ClockCache(size_t capacity_bytes)
      : capacity_bytes_(capacity_bytes), slots_(new Slots(Slots::min_bits)) {}
  /// No other thread may be in the cache.
  ~ClockCache();
  ClockCache(const ClockCache&) = delete;
  ClockCache& operator=(const ClockCache&) = delete;

  /// The value of `key`, found or made by `make()`, which returns a Result<Made>. Equal keys have
  /// equal hashes. Throws what `make` throws, and std::bad_alloc; then nothing was added.
  template <class Make>
  Result<ValuePtr> get(uint64_t hash, const Key& key, const Make& make);

  /// Drops all values; they count as evicted. The cache lets go of them as of any dropped value.
  void clear();

  /// hits is exact while no request is under way.
  CacheCounters counters() const;

  size_t capacity_bytes() const { return capacity_bytes_; }
  /// Memory of an entry, value and what the key points to excluded.
  size_t bytes_of_an_entry() const {
    return line_block_bytes(sizeof(Entry)) + StripedOwners<Value>::bytes(sections_.stripes()) +
           Slots::max_bytes_of_an_entry;
  }

 private:
  /// Has cache lines of its own, so that nothing that is written often shares one with it.
  struct alignas(cache_line_size) Entry : Retired {
    Entry(uint64_t hash_of_key, const Key& asked, const Made& made, size_t stripes, size_t all)
        : hash(hash_of_key),
          key(made.key ? *made.key : asked),
          owners(made.value, stripes),
          bytes(all) {}
    const uint64_t hash;
    const Key key;
    const StripedOwners<Value> owners;
    mutable std::atomic<bool> was_found = false;
    const size_t bytes;
    Entry* added_next = nullptr;
  };
  using Slots = SlotTable<Entry>;
  using Outcome = Result<ValuePtr>;
  using Flights = SingleFlight<Key, Outcome, Equal>;

  static Entry* find_in(const Slots& slots, uint64_t hash, const Key& key) {
    return slots.find(hash, [&](const Entry& entry) { return Equal{}(entry.key, key); });
  }
  static void remember_use(const Entry& entry) {
    if (entry.was_found.load(std::memory_order_relaxed)) return;  // a hot entry is only read
    entry.was_found.store(true, std::memory_order_relaxed);
  }

  ValuePtr find(uint64_t hash, const Key& key) const;
  template <class Make>
  Outcome make(uint64_t hash, const Key& key, const Make& make, typename Flights::Begun& flight);
  std::unique_ptr<Entry> entry_for(uint64_t hash, const Key& key, const Made& made) const;

  // With the lock held:
  const ValuePtr& add(std::unique_ptr<Entry> entry);
  void grow();
  void evict_one() noexcept;
  void evict_oldest() noexcept;
  void append(Entry* entry) noexcept;
  Entry* take_oldest() noexcept;
  Slots& slots() const { return *slots_.load(std::memory_order_relaxed); }

  // Written seldom: whatever look-ups read.
  const size_t capacity_bytes_;
  mutable ReadSections sections_;
  std::atomic<Slots*> slots_;  // owned

  // Written by requests that do not find their value, under the lock.
  alignas(cache_line_size) mutable std::mutex mutex_;
  Flights flights_{mutex_};
  Entry* oldest_ = nullptr;  // owned, with all that were added after it
  Entry* newest_ = nullptr;
  CacheCounters counters_;  // all but the hits
};

template <class Key, class Value, class Equal>
ClockCache<Key, Value, Equal>::~ClockCache() {
  while (oldest_ != nullptr) delete take_oldest();
  delete &slots();
}

template <class Key, class Value, class Equal>
auto ClockCache<Key, Value, Equal>::find(uint64_t hash, const Key& key) const -> ValuePtr {
  const ReadSections::Section section(sections_);
  const Entry* const entry = find_in(*slots_.load(std::memory_order_seq_cst), hash, key);
  if (entry == nullptr) return nullptr;
  remember_use(*entry);
  return entry->owners.at(section.stripe());
}

template <class Key, class Value, class Equal>
template <class Make>
auto ClockCache<Key, Value, Equal>::get(uint64_t hash, const Key& key, const Make& make)
    -> Result<ValuePtr> {
  if (ValuePtr found = find(hash, key)) return found;
  std::unique_lock lock(mutex_);
  for (bool is_counted = false;; is_counted = true) {
    if (const Entry* entry = find_in(slots(), hash, key)) {  // it came meanwhile
      remember_use(*entry);
      return entry->owners.at(sections_.current_stripe());
    }
    if (!is_counted) ++counters_.misses;
    const auto flight = flights_.find(hash, key);
    if (flight == nullptr) break;
    if (std::optional<Outcome> outcome = Flights::wait(lock, flight)) return *std::move(outcome);
  }
  typename Flights::Begun flight(flights_, hash, key);
  lock.unlock();
  return this->make(hash, key, make, flight);
}

/// Makes the value, adds it, and hands it to those who wait.
template <class Key, class Value, class Equal>
template <class Make>
auto ClockCache<Key, Value, Equal>::make(uint64_t hash, const Key& key, const Make& make,
                                         typename Flights::Begun& flight) -> Outcome {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const Result<Made> made = make();
  const std::chrono::nanoseconds elapsed = Clock::now() - begin;
  std::unique_ptr<Entry> entry = made.ok() ? entry_for(hash, key, *made) : nullptr;

  RetiredList unseen;  // freed when the lock is released
  const std::lock_guard lock(mutex_);
  counters_.make_ns += static_cast<uint64_t>(elapsed.count());
  if (!made.ok()) {
    flight.end(made.error());
    return made.error();
  }
  ValuePtr value = entry != nullptr ? add(std::move(entry)) : made->value;
  ++counters_.made;
  flight.end(value);
  unseen = sections_.reclaim();
  return value;
}

/// Null for what is not to be kept, or cannot be.
template <class Key, class Value, class Equal>
auto ClockCache<Key, Value, Equal>::entry_for(uint64_t hash, const Key& key, const Made& made) const
    -> std::unique_ptr<Entry> {
  const size_t own = bytes_of_an_entry();
  const bool fits = own <= capacity_bytes_ && made.bytes <= capacity_bytes_ - own;
  if (!made.keep || !fits) return nullptr;
  return std::make_unique<Entry>(hash, key, made, sections_.stripes(), own + made.bytes);
}

/// Returns the entry's value. Throws std::bad_alloc, and then has added nothing.
template <class Key, class Value, class Equal>
auto ClockCache<Key, Value, Equal>::add(std::unique_ptr<Entry> entry) -> const ValuePtr& {
  while (counters_.bytes > capacity_bytes_ - entry->bytes) evict_one();
  if (!slots().has_room_for(counters_.entries + 1)) grow();
  slots().insert(entry.get());
  append(entry.get());
  ++counters_.entries;
  counters_.bytes += entry->bytes;
  return entry.release()->owners.at(sections_.current_stripe());
}

template <class Key, class Value, class Equal>
void ClockCache<Key, Value, Equal>::grow() {
  auto larger = std::make_unique<Slots>(slots().bits() + 1);
  for (Entry* entry = oldest_; entry != nullptr; entry = entry->added_next) larger->insert(entry);
  Slots* const smaller = slots_.exchange(larger.release(), std::memory_order_seq_cst);
  sections_.retire(std::unique_ptr<Retired>(smaller));
}

/// There must be an entry. Entries that are found all the time are given one chance, not more.
template <class Key, class Value, class Equal>
void ClockCache<Key, Value, Equal>::evict_one() noexcept {
  for (size_t chances = counters_.entries; chances > 0; --chances) {
    if (!oldest_->was_found.load(std::memory_order_relaxed)) break;
    oldest_->was_found.store(false, std::memory_order_relaxed);
    append(take_oldest());
  }
  evict_oldest();
}

template <class Key, class Value, class Equal>
void ClockCache<Key, Value, Equal>::evict_oldest() noexcept {
  std::unique_ptr<Entry> evicted(take_oldest());
  slots().erase(evicted.get());
  --counters_.entries;
  ++counters_.evictions;
  counters_.bytes -= evicted->bytes;
  sections_.retire(std::move(evicted));
}

template <class Key, class Value, class Equal>
void ClockCache<Key, Value, Equal>::append(Entry* entry) noexcept {
  entry->added_next = nullptr;
  (newest_ != nullptr ? newest_->added_next : oldest_) = entry;
  newest_ = entry;
}

template <class Key, class Value, class Equal>
auto ClockCache<Key, Value, Equal>::take_oldest() noexcept -> Entry* {
  Entry* const entry = oldest_;
  oldest_ = entry->added_next;
  if (oldest_ == nullptr) newest_ = nullptr;
  return entry;
}

template <class Key, class Value, class Equal>
void ClockCache<Key, Value, Equal>::clear() {
  RetiredList unseen;  // freed when the lock is released
  const std::lock_guard lock(mutex_);
  while (oldest_ != nullptr) evict_oldest();
  unseen = sections_.reclaim();
}

template <class Key, class Value, class Equal>
CacheCounters ClockCache<Key, Value, Equal>::counters() const {
  const std::lock_guard lock(mutex_);
  CacheCounters counters = counters_;
  // Every request begins with one look-up; misses, whose look-ups are over, are never more.
  counters.hits = sections_.entered() - counters.misses;
  return counters;
}

}  // namespace castor
