// SPDX-License-Identifier: Apache-2.0
// Scratch of a call's tasks beside the first, which has the call's own.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "runtime/scratch.hpp"

namespace castor::detail {

/// Blocks for the tasks of one call at a time are kept from call to call; calls that run at the
/// same time make their own. Thread safe.
class TaskScratchPool {
 public:
  TaskScratchPool() = default;
  /// Of blocks of that many bytes.
  explicit TaskScratchPool(size_t bytes) : bytes_(bytes) {}
  TaskScratchPool(TaskScratchPool&& other) noexcept
      : bytes_(other.bytes_), spare_(other.spare_.exchange(nullptr)) {}
  TaskScratchPool& operator=(TaskScratchPool&& other) noexcept {
    bytes_ = other.bytes_;
    delete spare_.exchange(other.spare_.exchange(nullptr));
    return *this;
  }
  ~TaskScratchPool() { delete spare_.load(); }

 private:
  /// Blocks that lie in one piece of memory.
  struct Set {
    /// Throws std::bad_alloc.
    Set(size_t count, size_t bytes) : memory(count * bytes), block(memory), places(count) {
      for (size_t i = 0; i < count; ++i) places[i] = block.data() + i * bytes;
    }
    ScratchPool memory;
    ScratchPool::Block block;
    std::vector<std::byte*> places;
  };

 public:
  /// The blocks of a call, for its duration.
  class Blocks {
   public:
    /// Throws std::bad_alloc.
    Blocks(TaskScratchPool& pool, size_t count) : pool_(pool), count_(count) {
      if (count == 0) return;
      set_.reset(pool.spare_.exchange(nullptr, std::memory_order_acquire));
      if (set_ == nullptr || set_->places.size() < count) {
        set_.reset();
        set_ = std::make_unique<Set>(count, pool.bytes_);
      }
    }
    Blocks(const Blocks&) = delete;
    Blocks& operator=(const Blocks&) = delete;
    ~Blocks() {
      if (set_ != nullptr) delete pool_.spare_.exchange(set_.release(), std::memory_order_acq_rel);
    }
    std::span<std::byte* const> data() const {
      if (set_ == nullptr) return {};
      return std::span<std::byte* const>(set_->places).first(count_);
    }

   private:
    TaskScratchPool& pool_;
    size_t count_;
    std::unique_ptr<Set> set_;
  };

 private:
  size_t bytes_ = 0;
  std::atomic<Set*> spare_ = nullptr;
};

}  // namespace castor::detail
