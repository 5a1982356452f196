// SPDX-License-Identifier: Apache-2.0
// Looks up 16-bit entries in tables of 16 by the halves of each byte (AVX2).
#pragma once

#include "jit/emit/lane_emitter.hpp"
#include "jit/lower/nibble_table.hpp"

namespace castor::jit {

/// Reserves registers for the tables.
void reserve_nibble_table(LaneEmitter& emitter, const NibbleTable& table);
/// Looks up both bytes of each entry, into two registers apart from `bytes`.
void emit_look_up_by_nibbles(LaneEmitter& emitter, const NibbleTable& table,
                             const Xbyak::Xmm& bytes, const Xbyak::Xmm& low,
                             const Xbyak::Xmm& high);

}  // namespace castor::jit
