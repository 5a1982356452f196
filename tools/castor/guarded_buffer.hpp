// SPDX-License-Identifier: Apache-2.0
// Memory for one tensor between canaries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace castor::tools {

/// `bytes` bytes that begin `misalignment` bytes (modulo 64) after a 64-byte boundary, with
/// canaries of at least 64 bytes on either side.
class GuardedBuffer {
 public:
  static constexpr size_t guard_bytes = 64;

  GuardedBuffer(size_t bytes, size_t misalignment)
      : bytes_(bytes), storage_(bytes + 4 * guard_bytes) {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    const size_t to_boundary = (guard_bytes - address % guard_bytes) % guard_bytes;
    begin_ = guard_bytes + to_boundary + misalignment % guard_bytes;
    for (size_t i = 0; i < storage_.size(); ++i) storage_[i] = canary(i);
  }

  std::span<std::byte> data() { return std::span(storage_).subspan(begin_, bytes_); }
  std::span<const std::byte> data() const { return std::span(storage_).subspan(begin_, bytes_); }

  /// Where, relative to the tensor's beginning, the first changed canary is; nothing if none.
  std::optional<ptrdiff_t> damage() const {
    for (size_t i = 0; i < storage_.size(); ++i) {
      if (i == begin_) i += bytes_;
      if (i < storage_.size() && storage_[i] != canary(i)) {
        return static_cast<ptrdiff_t>(i) - static_cast<ptrdiff_t>(begin_);
      }
    }
    return std::nullopt;
  }

 private:
  static std::byte canary(size_t index) { return static_cast<std::byte>(0xC5 ^ index); }

  size_t bytes_;
  size_t begin_ = 0;
  std::vector<std::byte> storage_;
};

}  // namespace castor::tools
