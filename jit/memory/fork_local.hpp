// SPDX-License-Identifier: Apache-2.0
// A pointer that a forked child finds null: how code memory notices a fork.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>

#include "jit/memory/system_memory.hpp"

namespace castor::jit {

/// An atomic pointer in a page of its own that the kernel wipes in every child (MADV_WIPEONFORK,
/// Linux 4.14). Unlike process ids it cannot be mistaken: they return after a while, and at once
/// in a new pid namespace. Reading it is one load. The page stays so marked in children, so the
/// child's children are told as well. A child that shares its parent's memory (vfork) shares the
/// pointer too, as it should.
template <class T>
class ForkLocal {
 public:
  explicit ForkLocal(const SystemCalls& system) {
    Result<MappedPages> page = MappedPages::map(system, "mmap", page_bytes, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!page.ok()) {
      refusal_ = page.error();
    } else if (system.madvise(page->begin(), page_bytes, MADV_WIPEONFORK) != 0) {
      refusal_ = refused("madvise(MADV_WIPEONFORK)", page_bytes, errno);
    } else if (system.madvise(page->begin(), page_bytes, -1) == 0) {
      // Emulators that accept any advice follow none.
      refusal_ = refused("madvise(MADV_WIPEONFORK)", page_bytes, ENOSYS);
    } else {
      page_ = std::move(*page);
      pointer_ = std::construct_at(reinterpret_cast<std::atomic<T*>*>(page_.begin()), nullptr);
    }
  }

  /// Why the system cannot do this, if it cannot; the functions below must not be called then.
  const std::optional<Error>& refusal() const { return refusal_; }

  /// The pointer that this process installed; null when it has not yet.
  T* get() const { return pointer_->load(std::memory_order_acquire); }

  /// Installs `mine` where no thread of this process has installed one. Returns the one installed.
  T* install(T* mine) {
    T* present = nullptr;
    return pointer_->compare_exchange_strong(present, mine, std::memory_order_acq_rel) ? mine
                                                                                       : present;
  }

 private:
  MappedPages page_;
  std::atomic<T*>* pointer_ = nullptr;  // zero bytes, which a wiped page holds, are null
  std::optional<Error> refusal_;
};

}  // namespace castor::jit
