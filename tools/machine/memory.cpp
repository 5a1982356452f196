// SPDX-License-Identifier: Apache-2.0
#include "tools/machine/memory.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

namespace castor::machine {

template <class D>
Region<D>& Memory<D>::add(std::string name, uint64_t base, size_t bytes, bool is_writable,
                          int64_t slope) {
  Region<D> region{
      .name = std::move(name), .base = base, .slope = slope, .is_writable = is_writable};
  region.bytes.resize(bytes);
  region.is_known.resize(bytes);
  region.is_written.resize(bytes);
  regions_.push_back(std::move(region));
  return regions_.back();
}

template <class D>
const Region<D>* Memory<D>::find(std::string_view name) const {
  const auto found = std::ranges::find(regions_, name, &Region<D>::name);
  return found == regions_.end() ? nullptr : &*found;
}

template <class D>
Region<D>* Memory<D>::find(std::string_view name) {
  return const_cast<Region<D>*>(std::as_const(*this).find(name));
}

namespace {

template <class D>
std::string position_of(const std::vector<Region<D>>& regions, Word address) {
  const Region<D>* nearest = nullptr;
  const auto distance = [&](const Region<D>& region) {
    const auto to = static_cast<int64_t>(address.value - region.base);
    return to < 0 ? -to : std::max<int64_t>(0, to - static_cast<int64_t>(region.size()));
  };
  for (const Region<D>& region : regions) {
    if (nearest == nullptr || distance(region) < distance(*nearest)) nearest = &region;
  }
  if (nearest == nullptr) return fmt::format("{:#x}", address.value);
  std::string text =
      fmt::format("{}{:+} of {} bytes", nearest->name,
                  static_cast<int64_t>(address.value - nearest->base), nearest->size());
  if (address.slope != nearest->slope) {
    text += fmt::format(", moving {} bytes an element where it moves {}", address.slope,
                        nearest->slope);
  }
  return text;
}

}  // namespace

template <class D>
Result<Region<D>*> Memory<D>::region_of(Word address, size_t count, bool writes) {
  for (Region<D>& region : regions_) {
    if (!region.contains(address, count)) continue;
    if (!writes || region.is_writable) return &region;
  }
  return Error{ErrorCode::internal, fmt::format("{} {} bytes at {}", writes ? "writes" : "reads",
                                                count, position_of(regions_, address))};
}

template <class D>
Status Memory<D>::load(D& domain, Word address, std::span<Byte> to) {
  if constexpr (std::is_same_v<D, Numbers>) {
    if (is_process_) {
      std::memcpy(to.data(), reinterpret_cast<const void*>(address.value), to.size());
      return {};
    }
  }
  const auto region = region_of(address, to.size(), false);
  if (!region) return region.error();
  const size_t first = address.value - (*region)->base;
  for (size_t i = 0; i < to.size(); ++i) {
    if (!(*region)->is_known[first + i]) {
      (*region)->bytes[first + i] = unknown_byte(domain);
      (*region)->is_known[first + i] = true;
    }
    to[i] = (*region)->bytes[first + i];
  }
  return {};
}

template <class D>
Status Memory<D>::store(Word address, std::span<const Byte> from) {
  if constexpr (std::is_same_v<D, Numbers>) {
    if (is_process_) {
      std::memcpy(reinterpret_cast<void*>(address.value), from.data(), from.size());
      return {};
    }
  }
  const auto region = region_of(address, from.size(), true);
  if (!region) return region.error();
  const size_t first = address.value - (*region)->base;
  for (size_t i = 0; i < from.size(); ++i) {
    (*region)->bytes[first + i] = from[i];
    (*region)->is_known[first + i] = true;
    (*region)->is_written[first + i] = true;
  }
  // What overlaps a word replaces it.
  const auto begin = words_.lower_bound(address.value < 7 ? 0 : address.value - 7);
  words_.erase(begin, words_.lower_bound(address.value + from.size()));
  return {};
}

template <class D>
const Word* Memory<D>::stored_word(Word address) const {
  if (address.slope != 0) return nullptr;
  const auto found = words_.find(address.value);
  return found == words_.end() ? nullptr : &found->second;
}

/// Words that are not the same in both are of unknown bytes.
template <class D>
void Memory<D>::merge_words(const Memory& other) {
  constexpr size_t word_bytes = 8;
  std::map<uint64_t, Word> all = words_;
  all.insert(other.words_.begin(), other.words_.end());
  for (const auto& [address, word] : all) {
    const Word* own = stored_word({address, 0});
    const Word* its = other.stored_word({address, 0});
    if (own != nullptr && its != nullptr && *own == *its) continue;
    words_.erase(address);
    const auto region = region_of({address, 0}, word_bytes, false);
    const size_t first = address - (*region)->base;
    std::fill_n((*region)->is_known.begin() + static_cast<int64_t>(first), word_bytes, false);
  }
}

template <class D>
void Memory<D>::merge(D& domain, const typename D::Bits& is_own, const Memory& other) {
  for (size_t r = 0; r < regions_.size(); ++r) {
    Region<D>& own = regions_[r];
    const Region<D>& its = other.regions_[r];
    for (size_t i = 0; i < own.size(); ++i) {
      own.is_known[i] = own.is_known[i] && its.is_known[i];
      own.is_written[i] = own.is_written[i] && its.is_written[i];
    }
    for (size_t i = 0; i < own.size();) {
      size_t end = i;
      while (end < own.size() && own.is_known[end]) ++end;
      merge_bytes<D>(domain, is_own, std::span(own.bytes).subspan(i, end - i),
                     std::span(its.bytes).subspan(i, end - i));
      i = end + 1;
    }
  }
  merge_words(other);
}

template class Memory<Numbers>;
template class Memory<Symbols>;

}  // namespace castor::machine
