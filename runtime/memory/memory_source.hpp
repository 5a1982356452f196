// SPDX-License-Identifier: Apache-2.0
// Blocks of memory from the caller's allocator, or from operator new.
#pragma once

#include <castor/memory.hpp>

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "ir/support/guarded.hpp"

namespace castor::detail {

/// Why a callback of the caller's, such as the allocator's, makes a call fail. A bad_alloc, because
/// it goes where those go; the public functions turn it into its error (see `guarded_call`).
class CallbackRefusal : public std::bad_alloc {
 public:
  explicit CallbackRefusal(Error error) : error_(std::make_shared<const Error>(std::move(error))) {}
  const Error& error() const { return *error_; }
  const char* what() const noexcept override { return error_->message.c_str(); }

 private:
  std::shared_ptr<const Error> error_;  // shared, because copying an exception must not throw
};

/// The body of a public function: `guarded`, which also knows what callbacks refuse.
template <class Body>
auto guarded_call(const Body& body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (const CallbackRefusal& refusal) {
    return refusal.error();
  } catch (...) {
    return error_of_exception();
  }
}

/// Whether an allocator has both callbacks or none.
Status check_allocator(const Allocator& allocator);

/// An allocator, and how much of its memory is in use. Thread safe; kept alive by its blocks.
class MemorySource {
 public:
  /// The allocator is checked.
  MemorySource(const Allocator& allocator, std::string_view purpose)
      : allocator_(allocator), purpose_(purpose) {}
  MemorySource(const MemorySource&) = delete;
  MemorySource& operator=(const MemorySource&) = delete;

  /// `bytes` bytes, 1 or more, at a multiple of scratch_alignment. Throws std::bad_alloc.
  std::byte* allocate(size_t bytes);
  void release(std::byte* block, size_t bytes) noexcept;
  /// Bytes allocated and not released.
  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  std::byte* from_callback(size_t bytes) const;
  void to_callback(void* block, size_t bytes) const noexcept;

  const Allocator allocator_;
  const std::string_view purpose_;  // for messages: "scratch"; a literal
  std::atomic<size_t> bytes_ = 0;
};
using MemorySourcePtr = std::shared_ptr<MemorySource>;

/// One block, released with its owner; or none.
class MemoryBlock {
 public:
  MemoryBlock() = default;
  /// Throws std::bad_alloc. None where `bytes` is 0.
  MemoryBlock(MemorySourcePtr source, size_t bytes)
      : source_(std::move(source)),
        data_(bytes == 0 ? nullptr : source_->allocate(bytes)),
        bytes_(bytes) {}
  MemoryBlock(MemoryBlock&& other) noexcept
      : source_(std::move(other.source_)),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryBlock& operator=(MemoryBlock&& other) noexcept {
    std::swap(source_, other.source_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryBlock() {
    if (data_ != nullptr) source_->release(data_, bytes_);
  }

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  MemorySourcePtr source_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace castor::detail
