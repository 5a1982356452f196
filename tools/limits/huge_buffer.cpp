// SPDX-License-Identifier: Apache-2.0
#include "tools/limits/huge_buffer.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>
#include <utility>

namespace castor::limits {

namespace {
constexpr size_t huge_page_bytes = size_t{2} << 20;
}

HugeBuffer::HugeBuffer(HugeBuffer&& other) noexcept { *this = std::move(other); }

HugeBuffer& HugeBuffer::operator=(HugeBuffer&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  std::swap(bytes_, other.bytes_);
  std::swap(pages_, other.pages_);
  return *this;
}

HugeBuffer::~HugeBuffer() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

/// Maps one huge page more than asked for, so that the buffer can begin at one.
bool HugeBuffer::map(size_t bytes, int extra_flags) {
  const size_t whole = (bytes + 2 * huge_page_bytes - 1) & ~(huge_page_bytes - 1);
  void* at = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | extra_flags,
                  -1, 0);
  if (at == MAP_FAILED) return false;
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
  mapping_ = at;
  mapped_ = whole;
  const auto begin = reinterpret_cast<uintptr_t>(at);
  const uintptr_t aligned = (begin + huge_page_bytes - 1) & ~(huge_page_bytes - 1);
  bytes_ = {static_cast<std::byte*>(at) + (aligned - begin), bytes};
  return true;
}

Result<HugeBuffer> HugeBuffer::allocate(size_t bytes) {
  HugeBuffer buffer;
  if (!buffer.map(bytes, 0)) {
    return Error{ErrorCode::out_of_memory, fmt::format("cannot map {} bytes", bytes)};
  }
  if (madvise(buffer.mapping_, buffer.mapped_, MADV_HUGEPAGE) == 0) {
    buffer.pages_ = "transparent";
  } else if (buffer.map(bytes, MAP_HUGETLB)) {
    buffer.pages_ = "reserved";
  }
  std::memset(buffer.bytes_.data(), 0, bytes);
  return buffer;
}

}  // namespace castor::limits
