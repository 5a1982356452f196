// SPDX-License-Identifier: Apache-2.0
// Many shared owners of one value, so that threads on different cores count their references apart.
#pragma once

#include <memory>
#include <new>
#include <vector>

#include "runtime/cache/block_bytes.hpp"
#include "runtime/cache/stripes.hpp"

namespace castor {

/// Allocates whole cache lines.
template <class T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}

  static constexpr size_t bytes_of(size_t count) {
    return (count * sizeof(T) + cache_line_size - 1) & ~(cache_line_size - 1);
  }
  T* allocate(size_t count) {
    return static_cast<T*>(::operator new (bytes_of(count), std::align_val_t{cache_line_size}));
  }
  void deallocate(T* at, size_t) { ::operator delete (at, std::align_val_t{cache_line_size}); }
  bool operator==(const LineAllocator&) const = default;
};

/// Copying a std::shared_ptr writes its reference count. One count for all threads would travel
/// between the cores with every copy; so the value has one for each stripe, each in a cache line of
/// its own. Whoever copied from a stripe keeps the value alive, by that stripe alone.
template <class Value>
class StripedOwners {
 public:
  using Pointer = std::shared_ptr<const Value>;

  /// `value` is not null. Throws std::bad_alloc.
  StripedOwners(const Pointer& value, size_t stripes) {
    owners_.reserve(stripes);
    for (size_t i = 0; i < stripes; ++i) {
      const auto keeper = std::allocate_shared<Keeper>(LineAllocator<Keeper>(), Keeper{value});
      owners_.push_back(Pointer(keeper, value.get()));
    }
  }

  /// Never changes, so any number of threads may copy it.
  const Pointer& at(size_t stripe) const { return owners_[stripe]; }

  /// Memory that the owners of one value take, the value not included.
  static constexpr size_t bytes(size_t stripes) {
    return stripes * line_block_bytes(sizeof(Keeper) + owner_count_bytes) +
           line_block_bytes(stripes * sizeof(Pointer));
  }

 private:
  struct Keeper {
    Pointer value;
  };
  std::vector<Pointer, LineAllocator<Pointer>> owners_;
};

}  // namespace castor
