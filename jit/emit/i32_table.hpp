// SPDX-License-Identifier: Apache-2.0
// Looks up 32-bit lanes in tables of 16 or 32 entries.
#pragma once

#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

/// Reserves registers for the table where it is looked up in registers: AVX2 takes it from memory.
void reserve_i32_table(LaneEmitter& emitter, const I32Table& table);

/// Lane operation.
void emit_look_up_i32(LaneEmitter& emitter, const LaneInst& inst);

}  // namespace castor::jit
