// SPDX-License-Identifier: Apache-2.0
// Scratch of a call's tasks beside the first, which has the call's own.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "runtime/memory/scratch.hpp"

namespace castor::detail {

/// The scratch of each of a call's tasks but the first, consecutive.
struct TaskScratch {
  std::byte* first = nullptr;
  size_t step = 0;  ///< bytes from one to the next
  size_t count = 0;

  size_t size() const { return count; }
  std::byte* operator[](size_t task) const { return first + task * step; }
};

/// Blocks for the tasks of one call at a time are kept from call to call; calls that run at the
/// same time make their own. Thread safe.
class TaskScratchPool {
 public:
  TaskScratchPool() = default;
  /// Makes blocks of that many bytes, a multiple of scratch_alignment.
  TaskScratchPool(MemorySourcePtr source, size_t bytes)
      : source_(std::move(source)), bytes_(bytes) {}
  TaskScratchPool(TaskScratchPool&& other) noexcept
      : source_(std::move(other.source_)),
        bytes_(other.bytes_),
        spare_(other.spare_.exchange(nullptr)) {}
  TaskScratchPool& operator=(TaskScratchPool&& other) noexcept {
    free(spare_.exchange(nullptr));
    source_ = std::move(other.source_);
    bytes_ = other.bytes_;
    spare_ = other.spare_.exchange(nullptr);
    return *this;
  }
  ~TaskScratchPool() { free(spare_.load()); }

 private:
  /// What an allocation begins with; the blocks follow it.
  struct alignas(scratch_alignment) Head {
    size_t count = 0;
    size_t bytes = 0;  ///< the allocation's
  };

 public:
  /// The blocks of a call, for its duration.
  class Blocks {
   public:
    /// One or more, of a pool whose blocks have bytes; of null: none. Throws std::bad_alloc.
    Blocks(TaskScratchPool* pool, size_t count) : pool_(pool), count_(count) {
      if (pool == nullptr) return;
      head_ = pool->spare_.exchange(nullptr, std::memory_order_acquire);
      if (head_ != nullptr && head_->count >= count) return;
      pool->free(std::exchange(head_, nullptr));
      head_ = pool->make(count);
    }
    Blocks(const Blocks&) = delete;
    Blocks& operator=(const Blocks&) = delete;
    ~Blocks() {
      if (pool_ != nullptr) pool_->free(pool_->spare_.exchange(head_, std::memory_order_acq_rel));
    }
    /// Only where there are any.
    TaskScratch data() const {
      return {reinterpret_cast<std::byte*>(head_ + 1), pool_->bytes_, count_};
    }

   private:
    TaskScratchPool* pool_;
    size_t count_;
    Head* head_ = nullptr;
  };

 private:
  Head* make(size_t count) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, bytes_, &bytes) ||
        __builtin_add_overflow(bytes, sizeof(Head), &bytes)) {
      throw std::bad_alloc();
    }
    return std::construct_at(reinterpret_cast<Head*>(source_->allocate(bytes)), Head{count, bytes});
  }
  void free(Head* head) {
    if (head != nullptr) source_->release(reinterpret_cast<std::byte*>(head), head->bytes);
  }

  MemorySourcePtr source_;
  size_t bytes_ = 0;
  std::atomic<Head*> spare_ = nullptr;
};

}  // namespace castor::detail
