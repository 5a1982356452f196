// SPDX-License-Identifier: Apache-2.0
// Tables of 256 or 64 entries that follow from tables of 16, as those from small floats to wider
// ones do: for these there is vpshufb.
//
// A float's fields are moved, and its exponent gets another bias. If no carry crosses the middle of
// the code, each half of the code sets bits of the result on its own; where the biases differ by an
// odd number, each half of the code with the exponent less one. What differs are the codes at
// either end of the magnitudes: subnormal numbers, infinities and NaNs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "jit/lane/program.hpp"

namespace castor::jit {

/// With moved = code + shift, modulo the number of codes, an entry is low[moved & 15] ^ high[moved
/// >> 4]. With (code + offset) & mask below 16 it has ^ exceptions[that] besides, and that of the
/// code with the sign bit alone ^ negative_zero.
struct NibbleTable {
  using Sixteen = std::array<uint16_t, 16>;

  int index_bits = 8;
  int shift = 0;
  Sixteen low = {};
  Sixteen high = {};
  Sixteen exceptions = {};
  int offset = 0;
  int mask = 0xff;  ///< all bits of a code, or all but the sign
  uint16_t negative_zero = 0;

  int sign() const { return 1 << (index_bits - 1); }
  /// The entry of a code.
  uint16_t entry(int code) const;
};

/// The same table in this form; nothing where it has none.
std::optional<NibbleTable> nibble_table(const ByteTable& table);

}  // namespace castor::jit
