// SPDX-License-Identifier: Apache-2.0
// Looks up bytes in tables of 64 entries and more by vpshufb, which has sixteen (without VBMI).
#pragma once

#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

void reserve_look_up_in_sixteens(LaneEmitter& emitter, const ByteTable& table);

/// Whether bytes may have bits above those of the table's index.
enum class UpperBits : uint8_t { any, zero };

/// What the table has for each byte, by the entries' low bytes. `to` is not `bytes`.
void emit_look_up_in_sixteens(LaneEmitter& emitter, const ByteTable& table, const Xbyak::Xmm& bytes,
                              UpperBits upper_bits, const Xbyak::Xmm& to);

}  // namespace castor::jit
