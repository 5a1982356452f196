// SPDX-License-Identifier: Apache-2.0
#include "ir/types/elements.hpp"

#include <bit>
#include <cstring>

#include "ir/shape/shape.hpp"
#include "ir/types/storage.hpp"

namespace castor {

namespace {

static_assert(std::endian::native == std::endian::little, "whole bytes are stored little endian");

size_t whole_bytes(ElementType type) { return static_cast<size_t>(bits_of(type)) / 8; }

int64_t byte_offset(ElementType type, int64_t index) {
  return index * static_cast<int64_t>(whole_bytes(type));
}

void write_bit(std::byte* data, int64_t at, bool bit) {
  const std::byte mask = std::byte{1} << (at % 8);
  data[at / 8] = bit ? data[at / 8] | mask : data[at / 8] & ~mask;
}

}  // namespace

uint64_t read_element(const std::byte* data, ElementType type, int64_t index) {
  uint64_t bits = 0;
  if (!is_sub_byte(type)) {
    std::memcpy(&bits, data + byte_offset(type, index), whole_bytes(type));
    return bits;
  }
  for (int bit = 0; bit < bits_of(type); ++bit) {
    const int64_t at = storage_bit(type, index, bit);
    bits |= (std::to_integer<uint64_t>(data[at / 8]) >> (at % 8) & 1) << bit;
  }
  return bits;
}

void write_element(std::byte* data, ElementType type, int64_t index, uint64_t bits) {
  if (!is_sub_byte(type)) {
    std::memcpy(data + byte_offset(type, index), &bits, whole_bytes(type));
    return;
  }
  for (int bit = 0; bit < bits_of(type); ++bit) {
    write_bit(data, storage_bit(type, index, bit), (bits >> bit & 1) != 0);
  }
}

void clear_unused_bits(std::byte* data, ElementType type, int64_t count) {
  const int64_t end = *byte_size(type, count) * 8;
  for (int64_t index = count; index * bits_of(type) < end; ++index) {
    for (int bit = 0; bit < bits_of(type); ++bit) {
      const int64_t at = storage_bit(type, index, bit);
      if (at < end) write_bit(data, at, false);
    }
  }
}

}  // namespace castor
