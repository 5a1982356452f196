// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/memory_source.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace castor::detail {

Status check_allocator(const Allocator& allocator) {
  const bool allocates = allocator.allocate != nullptr;
  if (allocates == (allocator.release != nullptr)) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("allocator: {} is null and {} is not; expected both or none",
                           allocates ? "release" : "allocate", allocates ? "allocate" : "release")};
}

std::byte* MemorySource::from_callback(size_t bytes) const {
  void* const block = [&] {
    try {
      return allocator_.allocate(allocator_.context, bytes, scratch_alignment);
    } catch (...) {
      throw CallbackRefusal(callback_error("allocate of the allocator"));
    }
  }();
  if (block == nullptr) {
    throw CallbackRefusal(
        {ErrorCode::out_of_memory,
         fmt::format("the allocator returned null for {} bytes of {}", bytes, purpose_)});
  }
  const size_t past = reinterpret_cast<uintptr_t>(block) % scratch_alignment;
  if (past == 0) return static_cast<std::byte*>(block);
  to_callback(block, bytes);
  throw CallbackRefusal(
      {ErrorCode::invalid_argument,
       fmt::format("the allocator returned {} for {} bytes of {}, {} above a multiple of {}; "
                   "expected a multiple",
                   block, bytes, purpose_, past, scratch_alignment)});
}

void MemorySource::to_callback(void* block, size_t bytes) const noexcept {
  try {
    allocator_.release(allocator_.context, block, bytes);
  } catch (...) {  // blocks die with handles: there is nobody to tell
  }
}

std::byte* MemorySource::allocate(size_t bytes) {
  std::byte* block =
      allocator_.allocate == nullptr
          ? static_cast<std::byte*>(::operator new (bytes, std::align_val_t{scratch_alignment}))
          : from_callback(bytes);
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return block;
}

void MemorySource::release(std::byte* block, size_t bytes) noexcept {
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  if (allocator_.release == nullptr) {
    ::operator delete (block, std::align_val_t{scratch_alignment});
  } else {
    to_callback(block, bytes);
  }
}

}  // namespace castor::detail
