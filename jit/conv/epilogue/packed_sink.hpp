// SPDX-License-Identifier: Apache-2.0
// Results of epilogues that have 8 bits: vectors of a tile follow each other, so that four of them
// are packed into one before they are stored.
#pragma once

#include <cstddef>

#include "jit/conv/epilogue/epilogue_addresses.hpp"
#include "jit/emit/lane_emitter.hpp"
#include "jit/emit/packer.hpp"

namespace castor::jit {

class PackedSink final : public Sink {
 public:
  static constexpr int chunks_of_pack = 4;

  /// The store of the program whose results become an operand.
  PackedSink(size_t operand, const LaneInst& store, Assembler& code, EpilogueAddresses& addresses)
      : operand_(operand), store_(store), code_(code), addresses_(addresses) {}

  void reserve_constants(LaneEmitter& emitter) override;
  void emit_store(LaneEmitter& emitter, const LaneInst& inst) override;
  /// Stores what waits for others, which ends with the first `stored_of_row` vectors of the row.
  void emit_flush(LaneEmitter& emitter, int stored_of_row);

 private:
  void emit_put(LaneEmitter& emitter, const OwnedVector& pack, int stored_of_row);
  void emit_put_rows(const Xbyak::Zmm& pack, int chunks, int stored_of_row, const Xbyak::Xmm* part);
  void emit_put_parts(const Xbyak::Zmm& pack, int first, int end, int vector);
  void emit_put_masked(const Xbyak::Zmm& pack, int chunk, const Xbyak::Xmm& part);

  const size_t operand_;
  const LaneInst store_;
  Assembler& code_;
  EpilogueAddresses& addresses_;
  Packer packer_;
  int waiting_ = 0;  ///< vectors
};

}  // namespace castor::jit
