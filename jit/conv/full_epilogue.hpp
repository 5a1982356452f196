// SPDX-License-Identifier: Apache-2.0
// The epilogue of tiles all of whose lanes are stored: row by row, the vectors of a row together.
#pragma once

#include "jit/conv/tile_epilogue.hpp"

namespace castor::jit {

/// As a TileEpilogueEmitter, of vectors that lie side by side in rows, without masks. What is the
/// same for a row is done once for it.
class FullEpilogueEmitter final : public TileEpilogueEmitter {
 public:
  FullEpilogueEmitter(Assembler& code, const Target& target, const TileEpilogue& epilogue,
                      int frame)
      : TileEpilogueEmitter(code, target, epilogue, {}, frame,
                            scopes_of_chunks(epilogue, &TileOperand::repeats)) {}

  /// What is the same for all rows; then, once in a loop over the rows, what is for one.
  void begin() {
    load_constants();
    emit_scope(Scope::nest);
  }
  void begin_row() { emit_scope(Scope::row); }
  /// Applies the program to a row's vector of that number.
  void apply(const Xbyak::Address& sums, int vector) {
    vector_ = vector;
    TileEpilogueEmitter::apply(sums);
  }

  ChunkMode mode(size_t) const override { return ChunkMode::whole; }
  OperandPlace locate(size_t operand, int) override {
    const TileOperand& of = epilogue_.operands[operand];
    constexpr int lanes = 16;
    const int bytes = of.repeats ? 0 : lanes * bits_of(of.element) / 8;
    return {.base = pointer(operand), .displacement = int64_t{vector_} * bytes};
  }

 private:
  int vector_ = 0;
};

}  // namespace castor::jit
