// SPDX-License-Identifier: Apache-2.0
// Memory that a call needs beside its tensors.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace castor::detail {

/// Blocks of one size for calls of one bound kernel. The first is made when the kernel is bound;
/// only calls that run at the same time make more, and all but one of those are given back.
/// Thread safe.
class ScratchPool {
 public:
  /// Blocks begin at a multiple of this many bytes.
  static constexpr size_t alignment = 64;

  ScratchPool() = default;
  /// Throws std::bad_alloc.
  explicit ScratchPool(size_t bytes) : bytes_(bytes), spare_(allocate(bytes)) {}
  ScratchPool(ScratchPool&& other) noexcept
      : bytes_(other.bytes_), spare_(other.spare_.exchange(nullptr)) {}
  ScratchPool& operator=(ScratchPool&& other) noexcept {
    bytes_ = other.bytes_;
    free(spare_.exchange(other.spare_.exchange(nullptr)));
    return *this;
  }
  ~ScratchPool() { free(spare_.load()); }

  size_t bytes() const { return bytes_; }

  /// A block for the duration of a call; none where no scratch is needed.
  class Block {
   public:
    /// Throws std::bad_alloc.
    explicit Block(ScratchPool& pool) : pool_(pool) {
      if (pool.bytes_ == 0) return;
      data_ = pool.spare_.exchange(nullptr, std::memory_order_acquire);
      if (data_ == nullptr) data_ = allocate(pool.bytes_);
    }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block() {
      if (data_ != nullptr) free(pool_.spare_.exchange(data_, std::memory_order_acq_rel));
    }
    std::byte* data() const { return data_; }

   private:
    ScratchPool& pool_;
    std::byte* data_ = nullptr;
  };

 private:
  static std::byte* allocate(size_t bytes) {
    return static_cast<std::byte*>(::operator new (bytes, std::align_val_t{alignment}));
  }
  static void free(std::byte* block) { ::operator delete (block, std::align_val_t{alignment}); }

  size_t bytes_ = 0;
  std::atomic<std::byte*> spare_ = nullptr;
};

}  // namespace castor::detail
