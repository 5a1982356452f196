// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/dense/coroutine.hpp"

#include <array>
#include <iterator>

#include "jit/conv/dense/k_loop.hpp"

namespace castor::jit::dense {

namespace {

/// What the coroutine's code keeps from one slice to the next and the K loop overwrites: the
/// address of the output, and the counter of loops over the staging buffer. Other registers are its
/// own while there are slices, so that no load of the K loop waits for the frame.
const std::array shared_registers = {reg::output, reg::staged};

/// Slots of the frame: the registers, then these numbers.
constexpr int point_slot = std::size(shared_registers);
constexpr int limit_slot = point_slot + 1;  ///< points that a slice passes
constexpr int left_slot = point_slot + 2;   ///< of them, in the current slice
static_assert(8 * (left_slot + 1) <= Coroutine::frame_bytes);

/// Points to go on from; others follow.
enum Point : int { at_end, at_begin, first_yield };

}  // namespace

void Coroutine::emit_yield(int count) {
  const Section slice = code_.section(CodeSection::slice);
  Xbyak::Label go_on;
  passed_ += count;
  code_.dec(number(left_slot));
  code_.jnz(go_on, Xbyak::CodeGenerator::T_NEAR);
  for (int i = 0; i < std::ssize(shared_registers); ++i) {
    code_.mov(slot(i), shared_registers[static_cast<size_t>(i)]);
  }
  emit_leave(first_yield + static_cast<int>(points_.size()));
  code_.L(go_on);
  points_.push_back(go_on);
}

void Coroutine::emit_end() {
  const Section slice = code_.section(CodeSection::slice);
  emit_leave(at_end);
}

void Coroutine::emit_leave(int point) {
  code_.mov(number(point_slot), point);
  code_.jmp(switch_back_, Xbyak::CodeGenerator::T_NEAR);
}

void Coroutine::emit_enter() {
  const Section slice = code_.section(CodeSection::slice);
  code_.mov(Xbyak::util::eax, passed_);
  code_.xor_(Xbyak::util::edx, Xbyak::util::edx);
  code_.div(Xbyak::util::ecx);
  code_.inc(Xbyak::util::eax);
  code_.mov(number(limit_slot), Xbyak::util::eax);
  code_.mov(number(point_slot), at_end);
}

void Coroutine::emit_start() {
  const Section slice = code_.section(CodeSection::slice);
  code_.mov(number(point_slot), at_begin);
}

void Coroutine::emit_unlimited() {
  const Section slice = code_.section(CodeSection::slice);
  code_.mov(number(limit_slot), passed_ + 1);
}

void Coroutine::emit_slice() {
  const Section slice = code_.section(CodeSection::slice);
  code_.cmp(number(point_slot), at_end);
  code_.je(switch_back_, Xbyak::CodeGenerator::T_NEAR);
  code_.mov(Xbyak::util::eax, number(limit_slot));
  code_.mov(number(left_slot), Xbyak::util::eax);
  code_.cmp(number(point_slot), at_begin);
  code_.je(begin_, Xbyak::CodeGenerator::T_NEAR);
  for (int i = 0; i < std::ssize(shared_registers); ++i) {
    code_.mov(shared_registers[static_cast<size_t>(i)], slot(i));
  }
  for (int i = 0; i < std::ssize(points_); ++i) {
    code_.cmp(number(point_slot), first_yield + i);
    code_.je(points_[static_cast<size_t>(i)], Xbyak::CodeGenerator::T_NEAR);
  }
  code_.L(switch_back_);
}

}  // namespace castor::jit::dense
