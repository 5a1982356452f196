// SPDX-License-Identifier: Apache-2.0
// The loop over taps of the dense kernels.
#pragma once

#include <algorithm>

#include "jit/conv/last_taps.hpp"
#include "jit/emit/assembler.hpp"

namespace castor::jit {

/// Registers of the loop.
struct TapLoop {
  Xbyak::Reg64 tap;      ///< offsets of taps: from their end, counts up to 0
  Xbyak::Reg64 weights;  ///< of the next tap
};

/// Emits all taps, two at a time, an odd one first. `emit_tap(position)` emits the tap that is
/// `position` behind the loop's; `tap_bytes` are the weights of one. There is a tap at least, or,
/// where last taps follow (jit/conv/last_taps.hpp), an even number, which may be 0.
template <class EmitTap>
void emit_tap_loop(Assembler& code, const TapLoop& loop, int tap_bytes, bool last_taps_follow,
                   EmitTap emit_tap) {
  Xbyak::Label pairs;
  Xbyak::Label done;
  Xbyak::Label next;
  if (last_taps_follow) {
    code.test(loop.tap, loop.tap);
    code.jz(done, Xbyak::CodeGenerator::T_NEAR);
  } else {
    code.test(loop.tap, 4);
    code.jz(pairs, Xbyak::CodeGenerator::T_NEAR);
    emit_tap(0);
    code.add(loop.weights, tap_bytes);
    code.add(loop.tap, 4);
    code.jz(done, Xbyak::CodeGenerator::T_NEAR);
    code.L(pairs);
  }
  code.align_to(32);
  code.L(next);
  emit_tap(0);
  emit_tap(1);
  code.add(loop.weights, 2 * tap_bytes);
  code.add(loop.tap, 8);
  code.jnz(next, Xbyak::CodeGenerator::T_NEAR);
  code.L(done);
}

/// Emits the last taps of a tile of `rows` rows of `vectors`, behind all others, and what follows
/// them, by groups of rows (jit/conv/last_taps.hpp); without last taps what follows, of all rows.
/// `emit_tap(group)` emits one tap, whose offset is `last_taps` behind the loop's register,
/// `emit_end(group)` what follows. The loop's registers are only used where there are last taps.
template <class EmitTap, class EmitEnd>
void emit_groups(Assembler& code, const TapLoop& loop, int tap_bytes, int rows, int vectors,
                 int last_taps, EmitTap emit_tap, EmitEnd emit_end) {
  const int count = last_taps > 0 ? rows_of_group(vectors) : rows;
  for (int first = 0; first < rows; first += count) {
    const TileRows group = {first, std::min(first + count, rows)};
    if (last_taps > 0) {
      Xbyak::Label next;
      code.mov(loop.tap, -4 * last_taps);
      code.L(next);
      emit_tap(group);
      code.add(loop.weights, tap_bytes);
      code.add(loop.tap, 4);
      code.jnz(next, Xbyak::CodeGenerator::T_NEAR);
      code.sub(loop.weights, tap_bytes * last_taps);
    }
    emit_end(group);
  }
}

}  // namespace castor::jit
