// SPDX-License-Identifier: Apache-2.0
// The memory of a machine: regions, outside of which nothing may be touched.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/support/result.hpp"
#include "tools/machine/numbers.hpp"
#include "tools/machine/symbols.hpp"

namespace castor::machine {

/// A number of a general register that grows with the symbolic index i of an iteration: value +
/// slope * (i - i0), where i0 is the index that the machine runs with. Without an index the slope
/// is 0.
struct Word {
  uint64_t value = 0;
  int64_t slope = 0;
  friend bool operator==(const Word&, const Word&) = default;
  friend Word operator+(const Word& a, const Word& b) {
    return {a.value + b.value, a.slope + b.slope};
  }
};

/// Consecutive bytes that code may touch: a tensor, the stack, constants, arguments. With a slope,
/// it is the stretch of a tensor that belongs to one iteration, which moves with its index.
template <class D>
struct Region {
  std::string name;
  uint64_t base = 0;
  int64_t slope = 0;
  bool is_writable = false;
  std::vector<typename D::Byte> bytes{};
  /// Whether a byte holds something: what was given, or was stored.
  std::vector<bool> is_known{};
  std::vector<bool> is_written{};

  size_t size() const { return bytes.size(); }
  bool contains(Word address, size_t count) const {
    return address.slope == slope && address.value >= base && address.value - base <= size() &&
           count <= size() - (address.value - base);
  }
};

/// Gives a region its bytes, as many as it has.
template <class D>
void fill(D& domain, Region<D>& region, std::span<const std::byte> bytes) {
  for (size_t i = 0; i < region.size(); ++i) {
    region.bytes[i] = domain.byte(std::to_integer<uint8_t>(bytes[i]));
  }
  region.is_known.assign(region.size(), true);
}

/// A byte that nothing is known of.
inline uint8_t unknown_byte(Numbers&) { return 0xcc; }
inline SymbolByte unknown_byte(Symbols& symbols) {
  return {symbols.terms().input("unknown", 8), 0};
}

inline bool are_same_bytes(uint8_t a, uint8_t b) { return a == b; }
inline bool are_same_bytes(const SymbolByte& a, const SymbolByte& b) {
  return a.term && b.term && a.term.same_as(b.term) && a.index == b.index;
}

/// Bytes become those of `other` where `is_own` is 0: by lanes, as far as both have the same.
template <class D>
void merge_bytes(D& domain, const typename D::Bits& is_own, std::span<typename D::Byte> own,
                 std::span<const typename D::Byte> other) {
  constexpr size_t most = 8;
  for (size_t i = 0; i < own.size();) {
    if (are_same_bytes(own[i], other[i])) {
      ++i;
      continue;
    }
    const auto left = static_cast<int>(std::min(most, own.size() - i));
    const int count = std::min(D::run_of(&own[i], left), D::run_of(&other[i], left));
    domain.split(domain.select(is_own, domain.join(&own[i], count), domain.join(&other[i], count)),
                 &own[i]);
    i += static_cast<size_t>(count);
  }
}

template <class D>
class Memory {
 public:
  using Byte = typename D::Byte;

  /// A region of unknown bytes. Regions are far apart, so that an address one too far is in none.
  Region<D>& add(std::string name, uint64_t base, size_t bytes, bool is_writable,
                 int64_t slope = 0);
  Region<D>* find(std::string_view name);
  const Region<D>* find(std::string_view name) const;
  std::vector<Region<D>>& regions() { return regions_; }
  const std::vector<Region<D>>& regions() const { return regions_; }
  /// Has all memory of this process at its own addresses instead of regions: the CPU says what
  /// may be touched. For numbers alone.
  void use_process() { is_process_ = true; }

  /// Fails (internal), naming the nearest region, where a byte is in no region or may not be
  /// written.
  Status load(D& domain, Word address, std::span<Byte> to);
  Status store(Word address, std::span<const Byte> from);
  /// Whole registers that grow with the index keep it in memory.
  void store_word(Word address, Word value) { words_[address.value] = value; }
  const Word* stored_word(Word address) const;

  /// Becomes the other, which has the same regions, where `is_own` is 0. What only one of them
  /// knows, or has written, is not known, or written.
  void merge(D& domain, const typename D::Bits& is_own, const Memory& other);

 private:
  void merge_words(const Memory& other);
  Result<Region<D>*> region_of(Word address, size_t count, bool writes);

  bool is_process_ = false;
  std::vector<Region<D>> regions_;
  std::map<uint64_t, Word> words_;  ///< each has 8 bytes
};

extern template class Memory<Numbers>;
extern template class Memory<Symbols>;

}  // namespace castor::machine
