// SPDX-License-Identifier: Apache-2.0
// Emitters of conversions between kinds of lanes: one for each lane operation (see LaneOp).
#pragma once

#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

void emit_f16_to_f32(LaneEmitter& emitter, const LaneInst& inst);
void emit_f32_to_f16(LaneEmitter& emitter, const LaneInst& inst);
void emit_f32_to_f64(LaneEmitter& emitter, const LaneInst& inst);
void emit_f64_to_f32(LaneEmitter& emitter, const LaneInst& inst);
void emit_f16_to_f64(LaneEmitter& emitter, const LaneInst& inst);
void emit_f64_to_f16(LaneEmitter& emitter, const LaneInst& inst);
void emit_signed_to_float(LaneEmitter& emitter, const LaneInst& inst);
void emit_unsigned_to_float(LaneEmitter& emitter, const LaneInst& inst);
void emit_float_to_signed(LaneEmitter& emitter, const LaneInst& inst);
void emit_float_to_unsigned(LaneEmitter& emitter, const LaneInst& inst);

}  // namespace castor::jit
