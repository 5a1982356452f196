// SPDX-License-Identifier: Apache-2.0
// Looking up in tables that live in registers.
#pragma once

#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

/// Asks for registers that hold the table of a lane operation that looks up.
void reserve_look_up(LaneEmitter& emitter, const LaneInst& inst);
/// The same for a sink that stores what `look_up_words` gives.
void reserve_word_table(LaneEmitter& emitter, const ByteTable& table);

/// Two vectors of 16-bit elements: those of the first half of a vector of bytes, and the rest.
struct TwoVectors {
  OwnedVector low;
  OwnedVector high;
};
/// What the table has for each byte of a whole vector.
TwoVectors look_up_words(LaneEmitter& emitter, const ByteTable& table, const Xbyak::Xmm& bytes);

// Lane operations.
void emit_look_up(LaneEmitter& emitter, const LaneInst& inst);
void emit_look_up_dwords(LaneEmitter& emitter, const LaneInst& inst);

}  // namespace castor::jit
