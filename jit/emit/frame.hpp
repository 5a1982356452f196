// SPDX-License-Identifier: Apache-2.0
// The stack frame and the general registers of a nest's code.
#pragma once

#include <optional>
#include <vector>

#include "jit/emit/assembler.hpp"

namespace castor::jit {

/// Registers with one meaning throughout the code (System V calling convention).
namespace gpr {
inline const Xbyak::Reg64 arguments(Xbyak::Operand::RDI);
inline const Xbyak::Reg64 index(Xbyak::Operand::RSI);   ///< element of the innermost axis
inline const Xbyak::Reg64 extent(Xbyak::Operand::RDX);  ///< of the innermost axis
inline const Xbyak::Reg64 scratch(Xbyak::Operand::RAX);
inline const Xbyak::Reg64 counter(Xbyak::Operand::RCX);
inline const Xbyak::Reg64 limit(Xbyak::Operand::R8);   ///< last index of a whole iteration
inline const Xbyak::Reg64 cursor(Xbyak::Operand::R8);  ///< in copies to and from staging buffers
inline const Xbyak::Reg64 stack(Xbyak::Operand::RSP);
// Only where the innermost axis is made of periods; else they may hold operand pointers, or be the
// group register.
inline const Xbyak::Reg64 phase(Xbyak::Operand::R15);   ///< of `index` in its period
inline const Xbyak::Reg64 period(Xbyak::Operand::R14);  ///< number of the period
}  // namespace gpr

/// Where the code keeps what has no fixed register: operand pointers (in registers while there are
/// any), loop counters, the caller's MXCSR, staging buffers, spilled vectors.
class Frame {
 public:
  /// What a nest's code keeps in its frame beside pointers, counters and staging buffers.
  struct Needs {
    bool groups = false;   ///< numbers by which sub-byte elements are copied (emit/windows.hpp)
    bool packed = false;   ///< a register for the addresses of packed elements, if one is left
    bool windows = false;  ///< staging buffers that vectors are stored to, and nothing borrowed
    bool periods = false;  ///< an account of periods
  };
  /// `staging_bytes`: of each operand, multiples of 64.
  Frame(Assembler& code, int rank, std::span<const int> staging_bytes, const Needs& needs);

  /// Saves registers and makes room on the stack; `emit_exit` undoes both and returns to the
  /// caller. The room is only known at the end, so `emit_exit` fills it in where `emit_entry` has
  /// subtracted it. The result: how the caller's frame is found from code between them.
  void emit_entry();
  FrameState emit_exit(int spill_bytes);

  Xbyak::Address saved_mxcsr() const { return at(0); }
  Xbyak::Address chunk_count() const { return at(8); }
  Xbyak::Address loop_counter(int axis) const { return at(16 + 8 * axis); }
  /// Elements by which an iteration of the main loop, or a chunk of the tail, moves within a
  /// period.
  Xbyak::Address iteration_phase() const { return at(period_slots_offset_); }
  Xbyak::Address chunk_phase() const { return at(period_slots_offset_ + 8); }
  /// Whole periods in a chunk.
  Xbyak::Address chunk_periods() const { return at(period_slots_offset_ + 16); }
  Xbyak::Address group_begin() const { return at(group_slots_offset_); }
  Xbyak::Address group_end() const { return at(group_slots_offset_ + 8); }
  /// A register for the offset of packed elements in an iteration of the main loop; nothing where
  /// operand pointers take all.
  std::optional<Xbyak::Reg64> group_register() const { return group_register_; }
  /// Slots for registers that a copying loop borrows: stores one in its slot, and loads it again.
  static constexpr int borrowed_count = 8;
  void emit_borrow(int i, const Xbyak::Reg64& each) const;
  void emit_give_back(int i, const Xbyak::Reg64& each) const;
  int staging_offset(size_t operand) const { return staging_offsets_[operand]; }
  int spill_offset() const { return spill_offset_; }

  /// Whether the operand's pointer has a register of its own.
  bool in_register(size_t operand) const { return operand < in_registers_; }
  /// The operand's pointer in a register: its own, or gpr::scratch, into which it is loaded.
  Xbyak::Reg64 emit_pointer(size_t operand) const;
  /// Loads all pointers from the argument block.
  void emit_load_pointers();
  /// Adds a number of bytes from the argument block to an operand's pointer.
  void emit_advance(size_t operand, const Xbyak::Address& step);
  void emit_advance(size_t operand, const Xbyak::Reg64& step);
  void emit_retreat(size_t operand, const Xbyak::Reg64& step);
  /// Adds a number of bytes that follows from the size of the code.
  void emit_advance(size_t operand, int bytes);

 private:
  Xbyak::Address at(int offset) const { return code_.qword[gpr::stack + offset]; }
  int borrowed_offset(int i) const { return group_slots_offset_ + 16 + 8 * i; }
  /// In code with windows, which borrows nothing.
  int callers_stack_offset() const { return borrowed_offset(0); }
  Xbyak::Reg64 pointer_register(size_t i) const { return Xbyak::Reg64(pointer_registers_[i]); }
  Xbyak::Address pointer_slot(size_t operand) const;

  Assembler& code_;
  size_t operands_;
  /// In the order in which they are given out: first those that a function may overwrite.
  std::span<const int> pointer_registers_;
  size_t in_registers_;
  std::optional<Xbyak::Reg64> group_register_;
  int pointer_slots_offset_;
  int period_slots_offset_;
  int group_slots_offset_;
  std::vector<int> staging_offsets_;  ///< by operand
  int spill_offset_;
  size_t saved_registers_;  ///< from first_saved on
  const bool is_aligned_;   ///< begins with a cache line, so that no window's store crosses one
  Assembler::Room room_;
};

}  // namespace castor::jit
