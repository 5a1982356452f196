// SPDX-License-Identifier: Apache-2.0
// What the allocator takes for a block of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/cache/stripes.hpp"

namespace castor {

/// What a block of that many bytes takes: glibc's malloc adds a word and rounds up to 16 bytes, to
/// 32 at least. Other allocators take about as much.
constexpr size_t block_bytes(size_t bytes) {
  constexpr size_t min = 32;
  constexpr size_t unit = 16;
  if (bytes == 0) return 0;
  const size_t rounded = (bytes + sizeof(size_t) + unit - 1) / unit * unit;
  return rounded < min ? min : rounded;
}

/// What a block takes that begins at a cache line: the bytes before the first line are lost.
constexpr size_t line_block_bytes(size_t bytes) { return block_bytes(bytes + cache_line_size); }

/// Bytes that count the owners of a shared object, in the object's own block.
inline constexpr size_t owner_count_bytes = 2 * sizeof(void*);

/// What an object made with std::make_shared takes.
template <class T>
constexpr size_t shared_block_bytes() {
  return block_bytes(sizeof(T) + owner_count_bytes);
}

/// What the block of a string's characters takes: a short string holds them itself.
inline size_t block_bytes(const std::string& text) {
  const auto object = reinterpret_cast<uintptr_t>(&text);
  const bool is_short = reinterpret_cast<uintptr_t>(text.data()) - object < sizeof text;
  return is_short ? 0 : block_bytes(text.capacity() + 1);
}

}  // namespace castor
