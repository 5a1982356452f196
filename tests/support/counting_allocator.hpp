// SPDX-License-Identifier: Apache-2.0
// Replaces the test program's operator new, every form of it, by one that counts this thread's
// blocks and can be told to fail. Include in the one source file of a test program. castor takes
// all of its memory from operator new but for pages that it maps.
#pragma once

#include <cstdlib>
#include <new>

namespace castor::test {

/// What counts in this thread: allocations until they fail (negative: none does), whether only one
/// fails, whether one failed, and blocks that it holds.
inline thread_local long allocations_left = -1;
inline thread_local bool only_one_fails = false;
inline thread_local bool allocation_failed = false;
inline thread_local long blocks_held = 0;

/// Fails every allocation of this thread after the first `count`, until it dies.
class AllocationsFailAfter {
 public:
  explicit AllocationsFailAfter(long count) {
    allocations_left = count;
    allocation_failed = false;
  }
  AllocationsFailAfter(const AllocationsFailAfter&) = delete;
  AllocationsFailAfter& operator=(const AllocationsFailAfter&) = delete;
  ~AllocationsFailAfter() { allocations_left = -1; }
};

/// Fails one allocation of this thread, that after the first `count`.
class AllocationFails : public AllocationsFailAfter {
 public:
  explicit AllocationFails(long count) : AllocationsFailAfter(count) { only_one_fails = true; }
  ~AllocationFails() { only_one_fails = false; }
};

inline void* counted_or_null(size_t size, size_t alignment) {
  if (allocations_left == 0) {
    allocation_failed = true;
    if (only_one_fails) allocations_left = -1;
    return nullptr;
  }
  if (allocations_left > 0) --allocations_left;
  ++blocks_held;
  const size_t rounded = (size + alignment - 1) / alignment * alignment;
  return alignment <= alignof(max_align_t) ? std::malloc(size)
                                           : std::aligned_alloc(alignment, rounded);
}

inline void* counted(size_t size, size_t alignment) {
  if (void* at = counted_or_null(size, alignment)) return at;
  throw std::bad_alloc();
}

inline void release(void* at) {
  if (at != nullptr) --blocks_held;
  std::free(at);
}

}  // namespace castor::test

// NOLINTBEGIN(misc-definitions-in-headers): one source of a program includes this.
// Not inlined, so that the compiler does not see malloc meet delete.
[[gnu::noinline]] void* operator new(size_t size) { return castor::test::counted(size, 1); }
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment) {
  return castor::test::counted(size, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return castor::test::counted_or_null(size, 1);
}
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment,
                                     const std::nothrow_t&) noexcept {
  return castor::test::counted_or_null(size, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* at) noexcept { castor::test::release(at); }
[[gnu::noinline]] void operator delete(void* at, size_t) noexcept { castor::test::release(at); }
[[gnu::noinline]] void operator delete(void* at, std::align_val_t) noexcept {
  castor::test::release(at);
}
[[gnu::noinline]] void operator delete(void* at, size_t, std::align_val_t) noexcept {
  castor::test::release(at);
}
// NOLINTEND(misc-definitions-in-headers)
