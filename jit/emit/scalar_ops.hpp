// SPDX-License-Identifier: Apache-2.0
// Emitters of lane operations that no vector instruction does: lane by lane, through the stack.
#pragma once

#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

void emit_divide_each(LaneEmitter& emitter, const LaneInst& inst);
void emit_remainder_each(LaneEmitter& emitter, const LaneInst& inst);
void emit_float_remainder_each(LaneEmitter& emitter, const LaneInst& inst);

}  // namespace castor::jit
