// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/byte_table.hpp"

#include <bit>
#include <cstdlib>

namespace castor::jit {

namespace {

/// The 16-bit float of an integer of at most eight significant bits, which every format holds.
uint16_t half_of(int value, const FloatFormat& format) {
  if (value == 0) return 0;
  const int magnitude = std::abs(value);
  const int exponent = 31 - std::countl_zero(static_cast<uint32_t>(magnitude));
  const int fraction = (magnitude - (1 << exponent)) << (format.mantissa_bits - exponent);
  const int sign = value < 0 ? 0x8000 : 0;
  return static_cast<uint16_t>(sign | (exponent + format.bias) << format.mantissa_bits | fraction);
}

int value_of(uint8_t byte, ElementType type) {
  if (is_boolean(type)) return byte != 0;
  return is_signed_integer(type) ? static_cast<int8_t>(byte) : byte;
}

}  // namespace

std::optional<ByteTable> byte_table(const Target& target, ElementType from, ElementType to) {
  const bool is_byte = bits_of(from) == 8 && (is_integer(from) || is_boolean(from));
  const bool is_half = to == ElementType::f16 || to == ElementType::bf16;
  if (!is_byte || !is_half || !target.supports(Feature::avx512_vbmi)) {
    return std::nullopt;
  }
  ByteTable table;
  for (int byte = 0; byte < 256; ++byte) {
    const int value = value_of(static_cast<uint8_t>(byte), from);
    table[static_cast<size_t>(byte)] = half_of(value, info(to).format);
  }
  return table;
}

}  // namespace castor::jit
