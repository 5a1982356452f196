// SPDX-License-Identifier: Apache-2.0
// Emitters of changes of lane width: one for each lane operation (see LaneOp).
#pragma once

#include "jit/emit/op_helpers.hpp"

namespace castor::jit {

void emit_extend_zero(LaneEmitter& emitter, const LaneInst& inst);
void emit_extend_sign(LaneEmitter& emitter, const LaneInst& inst);
void emit_truncate(LaneEmitter& emitter, const LaneInst& inst);
void emit_combine_halves(LaneEmitter& emitter, const LaneInst& inst);
void emit_widen_to_high_half(LaneEmitter& emitter, const LaneInst& inst);
void emit_join(LaneEmitter& emitter, const LaneInst& inst);

/// The permutation that widen_to_high_half needs in a register for that many lanes (AVX-512).
std::vector<uint8_t> high_half_order(int lanes);

/// The instruction (vpmovzx, vpmovsx) that widens lanes while it loads or moves them. The source
/// operand is memory, or a register of the width that it reads.
LoadMnemonic extension(int from_bits, int to_bits, bool is_signed);

/// A truncation within a register, which sinks use as well. `to` may be `from`.
void emit_truncate(LaneEmitter& emitter, const Xbyak::Xmm& to, const Xbyak::Xmm& from,
                   int from_bits, int to_bits);
/// AVX2: brings the low `valid_bits` (64, 32 or 16) of each half of `from` together in `to`.
void emit_join_lanes(LaneEmitter& emitter, const Xbyak::Xmm& to, const Xbyak::Xmm& from,
                     int valid_bits);

}  // namespace castor::jit
