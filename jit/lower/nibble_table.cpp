// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/nibble_table.hpp"

#include <algorithm>

namespace castor::jit {

namespace {

constexpr int sixteen = 16;

size_t at(int index) { return static_cast<size_t>(index); }

/// Puts what low and high do not say yet into `made`; false where it does not fit.
bool set_exceptions(NibbleTable& made, const ByteTable& table, int mask) {
  const int codes = 1 << made.index_bits;
  const auto differs = [&](int code) { return made.entry(code) != table.entries[at(code)]; };
  made.mask = mask;
  // Exceptions at the upper end are moved down beside those at the lower one.
  for (int code = mask; code > mask - sixteen; --code) {
    if (differs(code)) made.offset = mask + 1 - code;
  }
  for (int code = 0; code <= mask; ++code) {
    if (!differs(code)) continue;
    const int index = (code + made.offset) & mask;
    if (index >= sixteen) return false;
    made.exceptions[at(index)] = made.entry(code) ^ table.entries[at(code)];
  }
  const int sign = made.sign();
  if (mask < sign) made.negative_zero = made.entry(sign) ^ table.entries[at(sign)];
  for (int code = 0; code < codes; ++code) {
    if (differs(code)) return false;
  }
  return true;
}

/// Low and high of a table, by the codes of a row and a column that are no exceptions in any format
/// of a float.
NibbleTable halves_of(const ByteTable& table, int shift) {
  NibbleTable made = {.index_bits = table.index_bits, .shift = shift};
  const int codes = 1 << table.index_bits;
  const int rows = codes / sixteen;
  const auto entry_of = [&](int row, int column) {
    const int moved = row * sixteen + column;
    return table.entries[at((moved - shift) & (codes - 1))];
  };
  const int row = rows / 4;
  const int column = shift == -8 ? 0 : 8;
  for (int i = 0; i < sixteen; ++i) made.low[at(i)] = entry_of(row, i);
  for (int i = 0; i < rows; ++i) {
    made.high[at(i)] = entry_of(i, column) ^ made.low[at(column)];
  }
  // Bits that low has in all of its entries are high's, which saves the look-up of a byte.
  for (const int byte : {0x00ff, 0xff00}) {
    const auto common = static_cast<uint16_t>(made.low[0] & byte);
    const auto has_common = [&](uint16_t entry) { return (entry & byte) == common; };
    if (!std::ranges::all_of(made.low, has_common)) continue;
    for (uint16_t& entry : made.low) entry ^= common;
    for (uint16_t& entry : made.high) entry ^= common;
  }
  return made;
}

}  // namespace

uint16_t NibbleTable::entry(int code) const {
  const int moved = (code + shift) & ((1 << index_bits) - 1);
  uint16_t found = low[at(moved % sixteen)] ^ high[at(moved / sixteen)];
  const int index = (code + offset) & mask;
  if (index < sixteen) found ^= exceptions[at(index)];
  if (code == sign()) found ^= negative_zero;
  return found;
}

std::optional<NibbleTable> nibble_table(const ByteTable& table) {
  if (table.index_bits != 8 && table.index_bits != 6) return std::nullopt;
  // Less one in the exponent of f8e4m3fnuz and of f8e5m2fnuz.
  for (const int shift : {0, -8, -4}) {
    const NibbleTable halves = halves_of(table, shift);
    NibbleTable by_byte = halves;
    if (table.index_bits == 8 && set_exceptions(by_byte, table, 0xff)) return by_byte;
    NibbleTable by_magnitude = halves;
    if (set_exceptions(by_magnitude, table, halves.sign() - 1)) return by_magnitude;
  }
  return std::nullopt;
}

}  // namespace castor::jit
