// SPDX-License-Identifier: Apache-2.0
// How much memory this process has.
#pragma once

#include <malloc.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace castor::test {

/// Whether a sanitizer keeps freed memory, so that figures of memory say little.
constexpr bool keeps_freed_memory() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

/// Bytes of resident memory, after the allocator gave back what it can.
inline size_t resident_bytes() {
  ::malloc_trim(0);
  std::ifstream file("/proc/self/statm");
  size_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

/// Bytes of the blocks that the allocator has handed out, its own words among them.
inline size_t heap_bytes() {
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

}  // namespace castor::test
