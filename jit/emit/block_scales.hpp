// SPDX-License-Identifier: Apache-2.0
// What emitters share that take the scales of sixteen blocks at a time: they leave scales that are
// out of a range to the lane program, and choose how to store by the output's alignment.
#pragma once

#include <cstdint>

#include "jit/emit/control_flow.hpp"
#include "jit/emit/frame.hpp"
#include "jit/plan/nest.hpp"

namespace castor::jit {

/// Scales that are compared at once.
constexpr int scales_per_iteration = 16;

/// The bits of the f32 from which on scales are in range, and of the one at which they are no more.
struct ScaleRange {
  uint32_t min = 0;
  uint32_t limit = 0;
};

enum class ScaleSigns : uint8_t { ignored, must_be_positive };

/// Jumps to `exit` unless the sixteen scales from gpr::period on are in range. Afterwards `scales`
/// has their bits, less those of `range.min`.
void emit_leave_if_out_of_range(Assembler& code, const Xbyak::Reg64& from, const ScaleRange& range,
                                ScaleSigns signs, const Xbyak::Zmm& scales,
                                const Xbyak::Opmask& out_of_range, const Xbyak::Label& exit);

/// Emits what does a row's last elements, which short rows often have none of: one jump goes past
/// it.
template <class EmitTail>
void emit_unless_row_is_done(Assembler& code, const EmitTail& emit_tail) {
  code.cmp(gpr::index, gpr::extent);
  emit_unless(code, Condition::greater_equal, emit_tail);
}

/// Emits loops that stream where the row's output is aligned, and others that store through the
/// caches what those leave.
template <class EmitLoops>
void emit_by_alignment(Assembler& code, const Frame& frame, size_t sink, Stores stores,
                       const EmitLoops& emit_loops) {
  if (stores == Stores::streaming) {
    code.mov(gpr::counter, frame.emit_pointer(sink));
    code.test(gpr::counter, static_cast<uint32_t>(streaming_alignment - 1));
    emit_unless(code, Condition::not_equal, [&] { emit_loops(Stores::streaming); });
  }
  emit_loops(Stores::cached);
}

}  // namespace castor::jit
