// SPDX-License-Identifier: Apache-2.0
// A hash table of pointers that is read without a lock while one thread changes it.
#pragma once

#include <atomic>
#include <memory>

#include "runtime/cache/read_sections.hpp"

namespace castor {

/// Open addressing with linear probing; `Entry` has a member `hash`. Entries belong to someone
/// else. One thread at a time inserts and erases; any number read, within read sections. Retired as
/// a whole when a larger table replaces it.
///
/// Erasing moves entries that follow, so a reader may, rarely, not find one that is there. It
/// never finds one that was erased before its read section began.
template <class Entry>
class SlotTable : public Retired {
 public:
  static constexpr int min_bits = 4;
  /// An entry has at most four slots in a table that doubled when it had to.
  static constexpr size_t max_bytes_of_an_entry = 4 * sizeof(std::atomic<Entry*>);

  /// 2^bits slots. Throws std::bad_alloc.
  explicit SlotTable(int bits)
      : bits_(bits),
        mask_((size_t{1} << bits) - 1),
        slots_(std::make_unique<std::atomic<Entry*>[]>(mask_ + 1)) {}

  int bits() const { return bits_; }
  /// Whether `entries` leave half of the slots free, and so end every probe soon.
  bool has_room_for(size_t entries) const { return entries <= (mask_ + 1) / 2; }

  /// The entry of this hash that `matches(entry)`, or null.
  template <class Matches>
  Entry* find(uint64_t hash, const Matches& matches) const {
    size_t at = home(hash);
    for (size_t probes = 0; probes <= mask_; ++probes, at = next(at)) {
      Entry* const entry = slots_[at].load(std::memory_order_seq_cst);
      if (entry == nullptr) return nullptr;
      if (entry->hash == hash && matches(*entry)) return entry;
    }
    return nullptr;  // not even a free slot: the table changed under the reader's eyes
  }

  /// There must be room.
  void insert(Entry* entry) noexcept {
    size_t at = home(entry->hash);
    while (peek(at) != nullptr) at = next(at);
    put(at, entry);
  }

  /// `entry` must be there. Entries after it move up, where that brings them nearer their home.
  void erase(const Entry* entry) noexcept {
    size_t hole = home(entry->hash);
    while (peek(hole) != entry) hole = next(hole);
    for (size_t at = next(hole); Entry* moved = peek(at); at = next(at)) {
      const size_t from_home = (at - home(moved->hash)) & mask_;
      const size_t from_hole = (at - hole) & mask_;
      if (from_home < from_hole) continue;
      put(hole, moved);
      hole = at;
    }
    put(hole, nullptr);
  }

 private:
  /// The upper bits of a product with 2^64 / golden ratio: poor hashes are spread, too.
  size_t home(uint64_t hash) const {
    return static_cast<size_t>((hash * 0x9e3779b97f4a7c15) >> (64 - bits_));
  }
  size_t next(size_t at) const { return (at + 1) & mask_; }
  Entry* peek(size_t at) const { return slots_[at].load(std::memory_order_relaxed); }
  void put(size_t at, Entry* entry) { slots_[at].store(entry, std::memory_order_seq_cst); }

  const int bits_;
  const size_t mask_;
  const std::unique_ptr<std::atomic<Entry*>[]> slots_;
};

}  // namespace castor
