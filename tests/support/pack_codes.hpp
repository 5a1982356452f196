// SPDX-License-Identifier: Apache-2.0
// Codes of at most 8 bits into storage, quickly enough for millions of them.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "ir/types/element_type.hpp"

namespace castor::test {

/// Packs whole groups of 8 codes, one in each byte of `codes`, in the storage order of a type of
/// at most 8 bits (no split layout); does the same as samples::pack.
inline void pack_codes(ElementType type, std::span<const uint8_t> codes,
                       std::span<std::byte> bytes) {
  const auto bits = static_cast<size_t>(bits_of(type));
  const StorageOrder order = info(type).order;
  assert(bits <= 8 && codes.size() % 8 == 0 && bytes.size() == codes.size() / 8 * bits);
  assert(order != StorageOrder::split && (order != StorageOrder::msb_first || bits == 1));
  for (size_t group = 0; group * 8 < codes.size(); ++group) {
    uint64_t word = 0;  // the group's `bits` bytes, little endian
    for (size_t i = 0; i < 8; ++i) {
      const size_t place = order == StorageOrder::msb_first ? 7 - i : i;
      word |= uint64_t{codes[group * 8 + i]} << (place * bits);
    }
    std::memcpy(bytes.data() + group * bits, &word, bits);
  }
}

}  // namespace castor::test
