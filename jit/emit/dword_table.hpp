// SPDX-License-Identifier: Apache-2.0
// Looking up dwords in tables of 16 or 32.
#pragma once

#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

/// Asks for registers that hold the table, where it is looked up in registers: AVX2 takes it from
/// memory.
void reserve_dword_table(LaneEmitter& emitter, const DwordTable& table);

/// Lane operation.
void emit_look_up_dwords(LaneEmitter& emitter, const LaneInst& inst);

}  // namespace castor::jit
