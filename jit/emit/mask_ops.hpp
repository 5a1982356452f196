// SPDX-License-Identifier: Apache-2.0
// Emitters of masks and selection: one for each lane operation (see LaneOp).
#pragma once

#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

void emit_mask_and(LaneEmitter& emitter, const LaneInst& inst);
void emit_mask_or(LaneEmitter& emitter, const LaneInst& inst);
void emit_mask_xor(LaneEmitter& emitter, const LaneInst& inst);
void emit_mask_andnot(LaneEmitter& emitter, const LaneInst& inst);
void emit_mask_not(LaneEmitter& emitter, const LaneInst& inst);
void emit_mask_resize(LaneEmitter& emitter, const LaneInst& inst);
void emit_select(LaneEmitter& emitter, const LaneInst& inst);

}  // namespace castor::jit
