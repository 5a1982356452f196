// SPDX-License-Identifier: Apache-2.0
// Scratch and packed weights between pages that nobody may touch.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "castor/memory.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor::test {

/// An allocator for runtimes: blocks begin or end at an inaccessible page, by their size, and hold
/// no zeroes, because nobody may read what it has not written. What is written between a block and
/// the far page ends the process when the block is given back. Thread safe.
class GuardedAllocator {
 public:
  /// The callbacks of the process's one allocator, which lives as long as any runtime.
  static Allocator callbacks() {
    static auto& allocator = *new GuardedAllocator;  // runtimes may be static: they die later
    return {.allocate = &allocate, .release = &release, .context = &allocator};
  }

 private:
  static constexpr std::byte filler{0xc7};

  static void* allocate(void* context, size_t bytes, size_t /*alignment*/) {
    auto& self = *static_cast<GuardedAllocator*>(context);
    auto pages = std::make_unique<GuardedPages>(bytes);
    pages->fill(filler);
    const size_t lines = (bytes + scratch_alignment - 1) / scratch_alignment;
    std::byte* const block =
        lines % 2 == 0 ? pages->at_end(lines * scratch_alignment) : pages->at_begin();
    const std::lock_guard lock(self.mutex_);
    self.blocks_.emplace(block, std::move(pages));
    return block;
  }
  static void release(void* context, void* block, size_t bytes) {
    auto& self = *static_cast<GuardedAllocator*>(context);
    const std::lock_guard lock(self.mutex_);
    const auto found = self.blocks_.find(block);
    if (found == self.blocks_.end()) fail("a block was given back that is none", bytes);
    if (!found->second->is_filled_but({static_cast<std::byte*>(block), bytes}, filler)) {
      fail("memory around a block was written", bytes);
    }
    self.blocks_.erase(found);
  }
  [[noreturn]] static void fail(const char* what, size_t bytes) {
    fmt::print(stderr, "{} ({} bytes of scratch or packed weights)\n", what, bytes);
    std::abort();
  }

  std::mutex mutex_;
  std::unordered_map<void*, std::unique_ptr<GuardedPages>> blocks_;
};

}  // namespace castor::test
