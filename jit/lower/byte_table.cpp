// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/byte_table.hpp"

#include <bit>
#include <cstdlib>

namespace castor::jit {

namespace {

/// The f16 of an integer of at most eight significant bits.
uint16_t f16_of(int value) {
  if (value == 0) return 0;
  const auto magnitude = static_cast<unsigned>(std::abs(value));
  const unsigned exponent = std::bit_width(magnitude) - 1U;
  const unsigned fraction = (magnitude << (10 - exponent)) & 0x3ff;
  return static_cast<uint16_t>((value < 0 ? 0x8000U : 0U) | (exponent + 15) << 10 | fraction);
}

int value_of(uint8_t byte, ElementType type) {
  if (is_boolean(type)) return byte != 0;
  return is_signed_integer(type) ? static_cast<int8_t>(byte) : byte;
}

}  // namespace

std::optional<ByteTable> byte_table(const Target& target, ElementType from, ElementType to) {
  const bool is_byte = bits_of(from) == 8 && (is_integer(from) || is_boolean(from));
  if (!is_byte || to != ElementType::f16 || !target.supports(Feature::avx512_vbmi)) {
    return std::nullopt;
  }
  ByteTable table;
  for (int byte = 0; byte < 256; ++byte) {
    table[static_cast<size_t>(byte)] = f16_of(value_of(static_cast<uint8_t>(byte), from));
  }
  return table;
}

}  // namespace castor::jit
