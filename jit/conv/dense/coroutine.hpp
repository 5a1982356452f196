// SPDX-License-Identifier: Apache-2.0
// Code that runs in slices between the products of tile registers.
#pragma once

#include <vector>

#include "jit/emit/assembler.hpp"

namespace castor::jit::dense {

/// Emits code that gives way at many points: what becomes of a register tile's accumulators, a
/// slice of it in each k step of the next tile. A product of tile registers takes 16 cycles of one
/// port, so that other instructions cost nothing beside it; but no CPU looks far enough ahead to
/// find the next products after all those instructions by itself.
///
/// The general registers that epilogues use are its own while there are slices, but for two that
/// the frame keeps. So nothing that the products need comes from the frame: a load from there would
/// wait for older stores of results, since one of them always has the same low twelve bits of its
/// address, and products would wait with it. Jumps are direct, as everywhere in emitted code: the
/// frame has the number of the point to go on from.
class Coroutine {
 public:
  static constexpr int frame_bytes = 64;

  /// `frame`: bytes from the stack pointer to `frame_bytes` of its own.
  Coroutine(Assembler& code, int frame) : code_(code), frame_(frame) {}

  // Its own code, which is emitted first:
  void emit_begin() { code_.L(begin_); }
  /// A slice may end here. `count`: how often this point is passed each time.
  void emit_yield(int count);
  /// All slices from here on are empty, until it is started again.
  void emit_end();

  // The code beside it:
  /// As many slices as ECX says will reach the end. Overwrites EDX. The coroutine is at its end.
  void emit_enter();
  /// The next slice runs from the beginning.
  void emit_start();
  /// Slices run to the end.
  void emit_unlimited();
  /// Runs a slice. Overwrites RAX, RCX and what epilogues may. Emitted once.
  void emit_slice();

 private:
  void emit_leave(int point);
  Xbyak::Address slot(int index) { return code_.ptr[Xbyak::util::rsp + frame_ + 8 * index]; }
  Xbyak::Address number(int index) { return code_.dword[Xbyak::util::rsp + frame_ + 8 * index]; }

  Assembler& code_;
  const int frame_;
  Xbyak::Label begin_;
  std::vector<Xbyak::Label> points_;
  int passed_ = 0;  ///< points, from beginning to end
  Xbyak::Label switch_back_;
};

}  // namespace castor::jit::dense
