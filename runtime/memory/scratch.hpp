// SPDX-License-Identifier: Apache-2.0
// Memory that a call needs beside its tensors, where the caller gives none.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

#include "runtime/memory/memory_source.hpp"

namespace castor::detail {

/// Blocks of one size for calls of one bound kernel. The first is made with the pool; only calls
/// that run at the same time make more, and all but one of those are given back. Thread safe.
class ScratchPool {
 public:
  /// Blocks begin at a multiple of this many bytes.
  static constexpr size_t alignment = scratch_alignment;

  ScratchPool() = default;
  /// Throws std::bad_alloc.
  ScratchPool(MemorySourcePtr source, size_t bytes)
      : source_(std::move(source)),
        bytes_(bytes),
        spare_(bytes == 0 ? nullptr : source_->allocate(bytes)) {}
  ScratchPool(ScratchPool&& other) noexcept
      : source_(std::move(other.source_)),
        bytes_(std::exchange(other.bytes_, 0)),
        spare_(other.spare_.exchange(nullptr)) {}
  ScratchPool& operator=(ScratchPool&& other) noexcept {
    free(spare_.exchange(nullptr));
    source_ = std::move(other.source_);
    bytes_ = std::exchange(other.bytes_, 0);
    spare_ = other.spare_.exchange(nullptr);
    return *this;
  }
  ~ScratchPool() { free(spare_.load()); }

  size_t bytes() const { return bytes_; }

  /// A block for the duration of a call.
  class Block {
   public:
    /// Takes a block of a pool whose blocks have bytes; null: none. Throws std::bad_alloc.
    explicit Block(ScratchPool* pool) : pool_(pool) {
      if (pool == nullptr) return;
      data_ = pool->spare_.exchange(nullptr, std::memory_order_acquire);
      if (data_ == nullptr) data_ = pool->source_->allocate(pool->bytes_);
    }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block() {
      if (pool_ != nullptr) pool_->free(pool_->spare_.exchange(data_, std::memory_order_acq_rel));
    }
    std::byte* data() const { return data_; }

   private:
    ScratchPool* pool_;
    std::byte* data_ = nullptr;
  };

 private:
  void free(std::byte* block) {
    if (block != nullptr) source_->release(block, bytes_);
  }

  MemorySourcePtr source_;
  size_t bytes_ = 0;
  std::atomic<std::byte*> spare_ = nullptr;
};

}  // namespace castor::detail
