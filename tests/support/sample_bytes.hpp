// SPDX-License-Identifier: Apache-2.0
// Bytes of no meaning to fill tensors with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace castor::test {

/// Bytes that depend on the seed alone.
inline void fill_with_samples(std::span<std::byte> bytes, uint64_t seed) {
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (std::byte& byte : bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<std::byte>(state >> 32);
  }
}

}  // namespace castor::test
