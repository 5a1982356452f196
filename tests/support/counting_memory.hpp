// SPDX-License-Identifier: Apache-2.0
// Counts every allocation of the process, by replacing malloc and its kin (and, for sanitizers,
// which have their own malloc, operator new). Include in the one source file of a test program.
// And an allocator of callbacks that counts, and can be made to fail.
#pragma once

#include <castor/memory.hpp>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

namespace castor::test {

inline std::atomic<size_t> allocations = 0;

inline void* counted(void* at) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return at;
}

/// Callbacks over the aligned operator new.
class CountingAllocator {
 public:
  CountingAllocator() = default;
  CountingAllocator(const CountingAllocator&) = delete;
  CountingAllocator& operator=(const CountingAllocator&) = delete;

  Allocator callbacks() { return {allocate, release, this}; }

  std::atomic<size_t> calls = 0;      ///< calls of allocate
  std::atomic<size_t> held = 0;       ///< bytes
  std::atomic<bool> refuses = false;  ///< null from now on
  std::atomic<size_t> shift = 0;      ///< bytes that blocks start above an alignment
  std::atomic<size_t> errors = 0;     ///< blocks released that were not held, or with other sizes
  std::atomic<size_t> alignment = 0;  ///< asked for last

 private:
  static void* allocate(void* context, size_t bytes, size_t alignment) {
    auto& self = *static_cast<CountingAllocator*>(context);
    ++self.calls;
    self.alignment = alignment;
    if (self.refuses) return nullptr;
    auto* base = static_cast<std::byte*>(
        ::operator new (bytes + alignment, std::align_val_t{alignment}, std::nothrow));
    if (base == nullptr) return nullptr;
    std::byte* block = base + self.shift;
    self.held += bytes;
    const std::lock_guard lock(self.mutex_);
    self.blocks_[block] = {base, bytes};
    return block;
  }
  static void release(void* context, void* block, size_t bytes) {
    auto& self = *static_cast<CountingAllocator*>(context);
    const std::lock_guard lock(self.mutex_);
    const auto found = self.blocks_.find(block);
    if (found == self.blocks_.end() || found->second.bytes != bytes) {
      ++self.errors;
      return;
    }
    ::operator delete (found->second.base, std::align_val_t{64});
    self.held -= bytes;
    self.blocks_.erase(found);
  }

  struct Held {
    std::byte* base = nullptr;
    size_t bytes = 0;
  };
  std::mutex mutex_;
  std::map<void*, Held> blocks_;
};

}  // namespace castor::test

// NOLINTBEGIN(misc-definitions-in-headers): one source of a program includes this.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
[[gnu::noinline]] void* operator new(size_t size) {
  if (void* at = castor::test::counted(std::malloc(size))) return at;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return castor::test::counted(std::malloc(size));
}
[[gnu::noinline]] void operator delete(void* at) noexcept { std::free(at); }
[[gnu::noinline]] void operator delete(void* at, size_t) noexcept { std::free(at); }
#else
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* at, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void* malloc(size_t size) { return castor::test::counted(__libc_malloc(size)); }
void* calloc(size_t count, size_t size) {
  return castor::test::counted(__libc_calloc(count, size));
}
void* realloc(void* at, size_t size) { return castor::test::counted(__libc_realloc(at, size)); }
void* memalign(size_t alignment, size_t size) {
  return castor::test::counted(__libc_memalign(alignment, size));
}
void* aligned_alloc(size_t alignment, size_t size) {
  return castor::test::counted(__libc_memalign(alignment, size));
}
int posix_memalign(void** at, size_t alignment, size_t size) {
  *at = castor::test::counted(__libc_memalign(alignment, size));
  return *at == nullptr ? 12 : 0;  // ENOMEM
}
}
#endif
// NOLINTEND(misc-definitions-in-headers)
