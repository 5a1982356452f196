// SPDX-License-Identifier: Apache-2.0
// Emitters of integer arithmetic, logic and comparisons: one for each lane operation (see LaneOp).
#pragma once

#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

void emit_add(LaneEmitter& emitter, const LaneInst& inst);
void emit_sub(LaneEmitter& emitter, const LaneInst& inst);
void emit_min_signed(LaneEmitter& emitter, const LaneInst& inst);
void emit_min_unsigned(LaneEmitter& emitter, const LaneInst& inst);
void emit_max_signed(LaneEmitter& emitter, const LaneInst& inst);
void emit_max_unsigned(LaneEmitter& emitter, const LaneInst& inst);
void emit_mul(LaneEmitter& emitter, const LaneInst& inst);
void emit_mul_low_u32(LaneEmitter& emitter, const LaneInst& inst);
void emit_sub_down_to_zero(LaneEmitter& emitter, const LaneInst& inst);
void emit_dot_u8_pair(LaneEmitter& emitter, const LaneInst& inst);
void emit_dot_i16_pairs(LaneEmitter& emitter, const LaneInst& inst);
void emit_add_dot_i16_pairs(LaneEmitter& emitter, const LaneInst& inst);
void emit_mul_high_u16(LaneEmitter& emitter, const LaneInst& inst);
void emit_absolute(LaneEmitter& emitter, const LaneInst& inst);
void emit_leading_zeros(LaneEmitter& emitter, const LaneInst& inst);
void emit_bit_and(LaneEmitter& emitter, const LaneInst& inst);
void emit_bit_or(LaneEmitter& emitter, const LaneInst& inst);
void emit_bit_xor(LaneEmitter& emitter, const LaneInst& inst);
void emit_bit_andnot(LaneEmitter& emitter, const LaneInst& inst);
void emit_shift_left(LaneEmitter& emitter, const LaneInst& inst);
void emit_shift_right(LaneEmitter& emitter, const LaneInst& inst);
void emit_shift_right_signed(LaneEmitter& emitter, const LaneInst& inst);
void emit_shift_left_by(LaneEmitter& emitter, const LaneInst& inst);
void emit_shift_right_by(LaneEmitter& emitter, const LaneInst& inst);
void emit_shift_right_signed_by(LaneEmitter& emitter, const LaneInst& inst);
void emit_bit_ternary(LaneEmitter& emitter, const LaneInst& inst);
void emit_equal(LaneEmitter& emitter, const LaneInst& inst);
void emit_greater_signed(LaneEmitter& emitter, const LaneInst& inst);
void emit_compare_signed(LaneEmitter& emitter, const LaneInst& inst);
void emit_compare_unsigned(LaneEmitter& emitter, const LaneInst& inst);
void emit_any_bits(LaneEmitter& emitter, const LaneInst& inst);

/// What multiplying bytes wants in a register across the loop.
void reserve_byte_product(LaneEmitter& emitter, const LaneInst& inst);

}  // namespace castor::jit
