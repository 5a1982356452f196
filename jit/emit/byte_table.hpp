// SPDX-License-Identifier: Apache-2.0
// Looking bytes up in a table of 256 words (VBMI).
#pragma once

#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

/// The words for the lower and the upper half of a vector of bytes.
struct TwoVectors {
  OwnedVector low;
  OwnedVector high;
};

/// Reserves registers for the table: 256 low bytes and 256 high bytes in eight of them.
void reserve_table(LaneEmitter& emitter, const ByteTable& table);

/// result[i] = table[bytes[i]], in order.
TwoVectors look_up(LaneEmitter& emitter, const ByteTable& table, const Xbyak::Xmm& bytes);

}  // namespace castor::jit
