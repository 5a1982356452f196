// SPDX-License-Identifier: Apache-2.0
// Emitters of float arithmetic and comparisons: one for each lane operation (see LaneOp).
#pragma once

#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

/// Reserves the constant of a quotient.
void reserve_quotient(LaneEmitter& emitter, const LaneInst& inst);
void emit_float_add(LaneEmitter& emitter, const LaneInst& inst);
void emit_float_sub(LaneEmitter& emitter, const LaneInst& inst);
void emit_float_mul(LaneEmitter& emitter, const LaneInst& inst);
void emit_float_div(LaneEmitter& emitter, const LaneInst& inst);
void emit_float_quotient(LaneEmitter& emitter, const LaneInst& inst);
void emit_float_sqrt(LaneEmitter& emitter, const LaneInst& inst);
void emit_quotient_to_signed(LaneEmitter& emitter, const LaneInst& inst);
void emit_float_sub_product(LaneEmitter& emitter, const LaneInst& inst);
void emit_float_min(LaneEmitter& emitter, const LaneInst& inst);
void emit_float_max(LaneEmitter& emitter, const LaneInst& inst);
void emit_range_min(LaneEmitter& emitter, const LaneInst& inst);
void emit_range_max(LaneEmitter& emitter, const LaneInst& inst);
void emit_range_magnitude(LaneEmitter& emitter, const LaneInst& inst);
void emit_range_magnitude_from(LaneEmitter& emitter, const LaneInst& inst);
void emit_fix_up(LaneEmitter& emitter, const LaneInst& inst);
void emit_round(LaneEmitter& emitter, const LaneInst& inst);
void emit_float_compare(LaneEmitter& emitter, const LaneInst& inst);

}  // namespace castor::jit
