// SPDX-License-Identifier: Apache-2.0
// The epilogue of tiles all of whose lanes are stored: row by row, the vectors of a row together.
#pragma once

#include "jit/conv/packed_sink.hpp"

namespace castor::jit {

/// As a TileEpilogueEmitter, of vectors that lie side by side in rows, without masks. What is the
/// same for a row is done once for it. Results of 8 bits are packed where the epilogue is one of
/// packed_epilogue: then rows come in groups.
class FullEpilogueEmitter final : public TileEpilogueEmitter {
 public:
  /// `row_vectors`: of each row.
  FullEpilogueEmitter(Assembler& code, const Target& target, const TileEpilogue& epilogue,
                      int frame, int row_vectors);

  /// Rows of a group: they make up whole packs.
  int group_rows() const;
  /// What is the same for all rows.
  void begin();
  /// Applies the program to rows that follow each other, at most a group, and goes on to the next
  /// row. `sums`: of the first row's first vector; those of the others lie behind it. `operands`:
  /// where the address of their EpilogueOperands lies.
  void apply_rows(const Xbyak::RegExp& sums, int rows, const Xbyak::Address& operands);

  ChunkMode mode(size_t) const override { return ChunkMode::whole; }
  ChunkAddress emit_chunk_address(size_t operand, int) override;

 private:
  /// Chunks lie side by side in a row, then in the next one.
  class PackedVectors final : public PackedSink {
   public:
    PackedVectors(size_t operand, const LaneInst& store, FullEpilogueEmitter& full)
        : PackedSink(store), operand_(operand), full_(full) {}

   private:
    void put(LaneEmitter& emitter, const OwnedVector& pack, int chunks, bool is_flush) override;

    size_t operand_;
    FullEpilogueEmitter& full_;
  };

  void add_row_step(size_t operand, int sign);
  void put_parts(const Xbyak::Reg64& row, const Xbyak::Zmm& pack, int first, int end, int vector);

  const int row_vectors_;
  int row_ = 0;     ///< of the group
  int vector_ = 0;  ///< of the row
  std::optional<Xbyak::Address> row_operands_;
  std::deque<PackedVectors> packed_;
};

}  // namespace castor::jit
