// SPDX-License-Identifier: Apache-2.0
// The epilogue of kernels that go through the result row by row and need most registers themselves:
// the rows' addresses lie in the frame, and what stays the same for a row is done once.
#pragma once

#include "jit/conv/packed_sink.hpp"

namespace castor::jit {

/// Besides `taken`, all vectors and masks may be overwritten between the kernel's own chunks;
/// general registers are RAX, and `element`, which the kernel sets: the first sum's number in its
/// row.
class RowEpilogueEmitter final : public TileEpilogueEmitter {
 public:
  /// Chunks that come after each other are `row_step` elements apart. Results of 8 bits are packed
  /// where the epilogue is one of packed_epilogue.
  RowEpilogueEmitter(Assembler& code, const Target& target, const TileEpilogue& epilogue,
                     const TakenRegisters& taken, int frame, const Xbyak::Reg64& element,
                     const Xbyak::Reg64& row_step);

  /// What is the same for all rows; goes to the operands' first ones. `operands`: where the address
  /// of their EpilogueOperands lies. Overwrites `element`.
  void begin(const Xbyak::Address& operands);
  /// What is the same for the row.
  void begin_row() { emit_hoisted(LoopLevel::row); }
  /// Goes on to the next row, which is to be begun. Overwrites `element`.
  void next_row(const Xbyak::Address& operands);

  /// Stores what waits to be packed; `element` is one row further than at the last chunk.
  void flush();

  /// Asks for the lines of results so many elements ahead. Overwrites `scratch`.
  void prefetch(const Xbyak::Address& distance, const Xbyak::Reg64& scratch);

  ChunkAddress emit_chunk_address(size_t operand, int) override;

 private:
  /// Chunks lie in rows one below the other.
  class PackedRows final : public PackedSink {
   public:
    PackedRows(size_t operand, const LaneInst& store, RowEpilogueEmitter& rows)
        : PackedSink(store), operand_(operand), rows_(rows) {}

   private:
    void put(LaneEmitter& emitter, const OwnedVector& pack, int chunks, bool is_flush) override;
    void put_chunks(const Xbyak::Zmm& pack, int chunks, const Xbyak::Xmm* masked);

    size_t operand_;
    RowEpilogueEmitter& rows_;
  };

  Xbyak::Address row_address(size_t operand);

  const Xbyak::Reg64 element_;
  const Xbyak::Reg64 row_step_;
  std::deque<PackedRows> packed_;
};

}  // namespace castor::jit
