// SPDX-License-Identifier: Apache-2.0
// Replaces the test program's operator new by one that can be told to fail. Include in the one
// source file of a test program.
#pragma once

#include <cstdlib>
#include <new>

namespace castor::test {

/// Allocations of this thread until they fail; negative: none does.
inline thread_local int allocations_left = -1;

/// Fails every allocation of this thread after the first `count`, until it dies.
class AllocationsFailAfter {
 public:
  explicit AllocationsFailAfter(int count) { allocations_left = count; }
  ~AllocationsFailAfter() { allocations_left = -1; }
};

inline void* allocate_or_null(size_t size) {
  if (allocations_left == 0) return nullptr;
  if (allocations_left > 0) --allocations_left;
  return std::malloc(size);
}

inline void* allocate_aligned_or_null(size_t size, size_t alignment) {
  if (allocations_left == 0) return nullptr;
  if (allocations_left > 0) --allocations_left;
  return std::aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
}

}  // namespace castor::test

// Not inlined, so that the compiler does not see malloc meet delete.
[[gnu::noinline]] void* operator new(size_t size) {
  if (void* at = castor::test::allocate_or_null(size)) return at;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return castor::test::allocate_or_null(size);
}
[[gnu::noinline]] void operator delete(void* at) noexcept { std::free(at); }
[[gnu::noinline]] void operator delete(void* at, size_t) noexcept { std::free(at); }
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment) {
  const size_t bytes = static_cast<size_t>(alignment);
  if (void* at = castor::test::allocate_aligned_or_null(size, bytes)) return at;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* at, std::align_val_t) noexcept { std::free(at); }
[[gnu::noinline]] void operator delete(void* at, size_t, std::align_val_t) noexcept {
  std::free(at);
}
