// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/frame.hpp"

#include <algorithm>
#include <array>

namespace castor::jit {

namespace {

using Xbyak::Operand;

/// Pointer registers in the order in which they are given out: first those that a function may
/// overwrite, then those that it must save.
constexpr std::array<int, 9> all_pointer_registers = {Operand::R9,  Operand::R10, Operand::R11,
                                                      Operand::RBX, Operand::RBP, Operand::R12,
                                                      Operand::R13, Operand::R14, Operand::R15};
/// The same without the frame pointer.
constexpr std::array<int, 8> other_pointer_registers = {Operand::R9,  Operand::R10, Operand::R11,
                                                        Operand::RBX, Operand::R12, Operand::R13,
                                                        Operand::R14, Operand::R15};
constexpr size_t first_saved = 3;
/// The last of them hold the account of periods where there is one.
constexpr size_t period_registers = 2;

std::span<const int> pointer_registers_for(const Assembler& code) {
  if (code.has_frame_pointer()) return other_pointer_registers;
  return all_pointer_registers;
}

int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

Frame::Frame(Assembler& code, int rank, std::span<const int> staging_bytes, const Needs& needs)
    : code_(code),
      operands_(staging_bytes.size()),
      pointer_registers_(pointer_registers_for(code)),
      is_aligned_(needs.windows) {
  const size_t available = pointer_registers_.size() - (needs.periods ? period_registers : 0);
  in_registers_ = std::min(operands_, available);
  size_t used = in_registers_;
  if (needs.packed && used < available) group_register_ = pointer_register(used++);
  if (needs.periods) used = pointer_registers_.size();
  saved_registers_ = used > first_saved ? used - first_saved : 0;
  pointer_slots_offset_ = 16 + 8 * rank;
  period_slots_offset_ = pointer_slots_offset_ + 8 * static_cast<int>(operands_ - in_registers_);
  group_slots_offset_ = period_slots_offset_ + (needs.periods ? 24 : 0);
  const int group_slots = needs.groups ? 2 + borrowed_count : 0;
  spill_offset_ = round_up(group_slots_offset_ + 8 * group_slots, 64);
  for (const int bytes : staging_bytes) {
    staging_offsets_.push_back(spill_offset_);
    spill_offset_ += bytes;
  }
}

void Frame::emit_entry() {
  for (size_t i = 0; i < saved_registers_; ++i) {
    code_.push(pointer_register(first_saved + i));
  }
  room_ = is_aligned_ ? code_.make_aligned_room(gpr::scratch, callers_stack_offset())
                      : code_.make_room();
}

FrameState Frame::emit_exit(int spill_bytes) {
  const int room = spill_offset_ + spill_bytes;
  code_.fill_in_room(room_, room);
  const FrameState body = code_.frame_state();
  is_aligned_ ? code_.leave_aligned_frame(callers_stack_offset()) : code_.raise_stack(room);
  for (size_t i = saved_registers_; i-- > 0;) code_.pop(pointer_register(first_saved + i));
  code_.emit_return();
  return body;
}

void Frame::emit_borrow(int i, const Xbyak::Reg64& each) const {
  code_.borrow(each, borrowed_offset(i));
}

void Frame::emit_give_back(int i, const Xbyak::Reg64& each) const {
  code_.give_back(each, borrowed_offset(i));
}

Xbyak::Address Frame::pointer_slot(size_t operand) const {
  return at(pointer_slots_offset_ + 8 * static_cast<int>(operand - in_registers_));
}

Xbyak::Reg64 Frame::emit_pointer(size_t operand) const {
  if (in_register(operand)) return pointer_register(operand);
  code_.mov(gpr::scratch, pointer_slot(operand));
  return gpr::scratch;
}

void Frame::emit_load_pointers() {
  for (size_t operand = 0; operand < operands_; ++operand) {
    const Xbyak::Address argument = code_.qword[gpr::arguments + 8 * operand];
    if (in_register(operand)) {
      code_.mov(pointer_register(operand), argument);
    } else {
      code_.mov(gpr::scratch, argument);
      code_.mov(pointer_slot(operand), gpr::scratch);
    }
  }
}

void Frame::emit_advance(size_t operand, const Xbyak::Address& step) {
  if (in_register(operand)) {
    code_.add(pointer_register(operand), step);
  } else {
    code_.mov(gpr::scratch, step);
    code_.add(pointer_slot(operand), gpr::scratch);
  }
}

void Frame::emit_advance(size_t operand, const Xbyak::Reg64& step) {
  in_register(operand) ? code_.add(pointer_register(operand), step)
                       : code_.add(pointer_slot(operand), step);
}

void Frame::emit_retreat(size_t operand, const Xbyak::Reg64& step) {
  in_register(operand) ? code_.sub(pointer_register(operand), step)
                       : code_.sub(pointer_slot(operand), step);
}

void Frame::emit_advance(size_t operand, int bytes) {
  if (in_register(operand)) {
    code_.add(pointer_register(operand), bytes);
  } else {
    code_.add(pointer_slot(operand), bytes);
  }
}

}  // namespace castor::jit
