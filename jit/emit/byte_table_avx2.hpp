// SPDX-License-Identifier: Apache-2.0
// Looks up bytes in tables of 64 entries and more by vpshufb, which has sixteen (AVX2).
#pragma once

#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

void reserve_look_up_in_sixteens(LaneEmitter& emitter, const ByteTable& table);

/// What the table has for each byte, by the entries' low bytes. `to` is not `bytes`.
void emit_look_up_in_sixteens(LaneEmitter& emitter, const ByteTable& table, const Xbyak::Xmm& bytes,
                              const Xbyak::Xmm& to);

}  // namespace castor::jit
