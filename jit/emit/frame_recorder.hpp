// SPDX-License-Identifier: Apache-2.0
// What code does to its stack frame, noted while it is emitted, for unwinding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jit/code.hpp"

namespace castor::jit {

/// DWARF's numbers of registers that frames are described by, from those of instructions.
constexpr uint8_t dwarf_number(int index) {
  constexpr std::array<uint8_t, 8> exchanged = {0, 2, 1, 3, 7, 6, 4, 5};
  return index < 8 ? exchanged[static_cast<size_t>(index)] : static_cast<uint8_t>(index);
}

/// How the caller's frame is found at one instruction.
struct FrameState {
  /// Registers that a function must save: rbx, rbp, r12 to r15.
  static constexpr size_t max_saved = 6;
  struct Saved {
    uint8_t reg = 0;
    int32_t value = 0;  ///< from the CFA
  };

  FrameChange cfa = {};
  int32_t depth = 8;  ///< bytes from rsp to the CFA, unless the stack pointer was aligned
  std::array<Saved, max_saved> saved = {};
  size_t saved_count = 0;

  bool has_saved(uint8_t reg) const;
};

/// Records changes; `offset` is always that of the next instruction. Where a register holds the
/// CFA, or memory does, moves of the stack pointer change nothing.
class FrameRecorder {
 public:
  FrameRecorder();

  const FrameState& state() const { return state_; }
  /// The stack pointer went down, or up where `bytes` are negative.
  void lower_stack(size_t offset, int32_t bytes);
  /// A register was pushed; one popped is as the caller's.
  void push(size_t offset, uint8_t reg);
  void pop(size_t offset, uint8_t reg);
  /// The stack pointer was copied to a register, where the CFA is found from now on.
  void find_by_register(size_t offset, uint8_t reg);
  /// That register was stored at rsp + `slot`, where the CFA is found from now on.
  void find_by_memory(size_t offset, int32_t slot);
  /// The stack pointer is `depth` below the CFA again.
  void find_by_stack(size_t offset, int32_t depth);
  /// A register was stored at rsp + `slot` for a while, or loaded from there. One that was pushed
  /// is found where it was pushed; one that functions may overwrite is nobody's concern.
  void borrow(size_t offset, uint8_t reg, int32_t slot);
  void give_back(size_t offset, uint8_t reg, int32_t slot);

  /// The room that was made at a change: 0 bytes, until `fill_in_room` says how many.
  size_t make_room(size_t offset);
  void fill_in_room(size_t room, int32_t bytes);

  /// Code that is not reached from what is before it begins with another state.
  void resume(size_t offset, const FrameState& state);

  std::vector<FrameChange> take() { return std::move(changes_); }

 private:
  void add(size_t offset, FrameChange change);
  void set_cfa(size_t offset, FrameChange cfa);
  void save(size_t offset, uint8_t reg, int32_t value);
  void restore(size_t offset, uint8_t reg);

  FrameState state_;
  std::vector<FrameChange> changes_;
};

}  // namespace castor::jit
