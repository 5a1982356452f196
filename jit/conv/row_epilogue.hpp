// SPDX-License-Identifier: Apache-2.0
// The epilogue of kernels that go through the result row by row and need most registers themselves:
// the rows' addresses lie in the frame, and what stays the same for a row is done once.
#pragma once

#include "jit/conv/tile_epilogue.hpp"

namespace castor::jit {

/// Besides `taken`, all vectors and masks may be overwritten between the kernel's own chunks;
/// general registers are RAX, and `element`, which the kernel sets: the first sum's number in its
/// row.
class RowEpilogueEmitter final : public TileEpilogueEmitter {
 public:
  RowEpilogueEmitter(Assembler& code, const Target& target, const TileEpilogue& epilogue,
                     const TakenRegisters& taken, int frame, const Xbyak::Reg64& element);

  /// What is the same for all rows; goes to the operands' first ones. `operands`: where the address
  /// of their EpilogueOperands lies. Overwrites `element`.
  void begin(const Xbyak::Address& operands);
  /// What is the same for the row.
  void begin_row() { emit_scope(Scope::row); }
  /// Goes on to the next row, which is to be begun. Overwrites `element`.
  void next_row(const Xbyak::Address& operands);

  /// Asks for the lines of results so many elements ahead. Overwrites `scratch`.
  void prefetch(const Xbyak::Address& distance, const Xbyak::Reg64& scratch);

  OperandPlace locate(size_t operand, int) override;

 private:
  Xbyak::Address row_address(size_t operand);

  const Xbyak::Reg64 element_;
};

}  // namespace castor::jit
