// SPDX-License-Identifier: Apache-2.0
// Memory for the tensors of the benchmark, on huge pages where the system has them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "ir/support/result.hpp"

namespace castor::limits {

/// Anonymous memory, touched, aligned to a huge page (2 MiB). Move only.
class HugeBuffer {
 public:
  /// Asks for transparent huge pages (madvise) and, where that is refused, for reserved ones
  /// (MAP_HUGETLB), then for ordinary pages. Fails (out_of_memory) when none are to be had.
  static Result<HugeBuffer> allocate(size_t bytes);

  HugeBuffer(HugeBuffer&& other) noexcept;
  HugeBuffer& operator=(HugeBuffer&& other) noexcept;
  ~HugeBuffer();

  std::span<std::byte> bytes() const { return bytes_; }
  /// "transparent", "reserved" or "none": what the huge pages come from.
  std::string_view pages() const { return pages_; }

 private:
  HugeBuffer() = default;
  bool map(size_t bytes, int extra_flags);

  void* mapping_ = nullptr;
  size_t mapped_ = 0;
  std::span<std::byte> bytes_;
  std::string_view pages_ = "none";
};

}  // namespace castor::limits
