// SPDX-License-Identifier: Apache-2.0
// Memory for one tensor between pages that nobody may touch.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>

namespace castor::test {

/// Pages of memory between two inaccessible pages. `at_end` gives bytes that end where the
/// inaccessible page begins, `at_begin` bytes that begin where the other one ends: one byte beyond
/// either is a segmentation fault.
class GuardedPages {
 public:
  explicit GuardedPages(size_t capacity) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    capacity_ = (capacity + page - 1) / page * page;
    size_ = capacity_ + 2 * page;
    void* all = ::mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(all);
    data_ = base_ + page;
    if (::mprotect(data_, capacity_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  }
  ~GuardedPages() { ::munmap(base_, size_); }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;

  std::byte* at_end(size_t bytes) { return data_ + capacity_ - bytes; }
  std::byte* at_begin() { return data_; }
  void fill(std::byte value) { std::memset(data_, static_cast<int>(value), capacity_); }
  /// Whether every byte outside `kept` still has that value.
  bool is_filled_but(std::span<const std::byte> kept, std::byte value) const {
    for (const std::byte* at = data_; at != data_ + capacity_; ++at) {
      if (at == kept.data()) at += kept.size();
      if (at == data_ + capacity_) break;
      if (*at != value) return false;
    }
    return true;
  }

 private:
  size_t capacity_ = 0;
  size_t size_ = 0;
  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace castor::test
