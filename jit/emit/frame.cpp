// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/frame.hpp"

#include <algorithm>
#include <array>

namespace castor::jit {

namespace {

using Xbyak::Operand;

/// Pointer registers in the order in which they are given out: first those that a function may
/// overwrite, then those that it must save.
constexpr std::array<int, 9> pointer_registers = {Operand::R9,  Operand::R10, Operand::R11,
                                                  Operand::RBX, Operand::RBP, Operand::R12,
                                                  Operand::R13, Operand::R14, Operand::R15};
constexpr size_t first_saved = 3;
/// The last of them hold the account of periods where there is one.
constexpr size_t period_registers = 2;

int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

Frame::Frame(Assembler& code, int rank, std::span<const int> staging_bytes, bool groups,
             bool periods)
    : code_(code), operands_(staging_bytes.size()) {
  const size_t available = pointer_registers.size() - (periods ? period_registers : 0);
  in_registers_ = std::min(operands_, available);
  const size_t used = periods ? pointer_registers.size() : in_registers_;
  saved_registers_ = used > first_saved ? used - first_saved : 0;
  pointer_slots_offset_ = 16 + 8 * rank;
  period_slots_offset_ = pointer_slots_offset_ + 8 * static_cast<int>(operands_ - in_registers_);
  group_slots_offset_ = period_slots_offset_ + (periods ? 24 : 0);
  const int group_slots = groups ? 2 + borrowed_count : 0;
  spill_offset_ = round_up(group_slots_offset_ + 8 * group_slots, 64);
  for (const int bytes : staging_bytes) {
    staging_offsets_.push_back(spill_offset_);
    spill_offset_ += bytes;
  }
}

void Frame::emit_entry() {
  for (size_t i = 0; i < saved_registers_; ++i) {
    code_.push(Xbyak::Reg64(pointer_registers[first_saved + i]));
  }
  constexpr int any_large_number = 0x7ffffff0;  // makes room for a 32-bit field
  code_.sub(gpr::stack, any_large_number);
  room_field_ = code_.getSize() - 4;
}

void Frame::emit_exit(int spill_bytes) {
  const int room = spill_offset_ + spill_bytes;
  code_.patch(room_field_, static_cast<uint32_t>(room));
  code_.add(gpr::stack, room);
  for (size_t i = saved_registers_; i-- > 0;) {
    code_.pop(Xbyak::Reg64(pointer_registers[first_saved + i]));
  }
}

Xbyak::Address Frame::pointer_slot(size_t operand) const {
  return at(pointer_slots_offset_ + 8 * static_cast<int>(operand - in_registers_));
}

Xbyak::Reg64 Frame::emit_pointer(size_t operand) const {
  if (in_register(operand)) return Xbyak::Reg64(pointer_registers[operand]);
  code_.mov(gpr::scratch, pointer_slot(operand));
  return gpr::scratch;
}

void Frame::emit_load_pointers() {
  for (size_t operand = 0; operand < operands_; ++operand) {
    const Xbyak::Address argument = code_.qword[gpr::arguments + 8 * operand];
    if (in_register(operand)) {
      code_.mov(Xbyak::Reg64(pointer_registers[operand]), argument);
    } else {
      code_.mov(gpr::scratch, argument);
      code_.mov(pointer_slot(operand), gpr::scratch);
    }
  }
}

void Frame::emit_advance(size_t operand, const Xbyak::Address& step) {
  if (in_register(operand)) {
    code_.add(Xbyak::Reg64(pointer_registers[operand]), step);
  } else {
    code_.mov(gpr::scratch, step);
    code_.add(pointer_slot(operand), gpr::scratch);
  }
}

void Frame::emit_advance(size_t operand, int bytes) {
  if (in_register(operand)) {
    code_.add(Xbyak::Reg64(pointer_registers[operand]), bytes);
  } else {
    code_.add(pointer_slot(operand), bytes);
  }
}

}  // namespace castor::jit
