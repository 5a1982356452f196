// SPDX-License-Identifier: Apache-2.0
// Short rows that are folded many at a time: as many as a chunk has lanes become one vector of
// results, in the order of the rows.
#pragma once

#include <deque>
#include <vector>

#include "jit/emit/chunk_plan.hpp"
#include "jit/emit/fold_ops.hpp"
#include "jit/emit/frame.hpp"
#include "jit/emit/memory_operands.hpp"

namespace castor::jit {

/// Folds the chunks of a block of rows, which follow one another. Two vectors of partial results
/// become one with half as many elements of each row: the even parts of both folded with the odd
/// ones. Pending vectors are merged as soon as two have been through equally many merges.
class RowBlocks {
 public:
  /// The vector registers that blocks use, which LaneEmitter must leave alone.
  static uint32_t taken_vectors(const Nest& nest, const ChunkPlan& plan, const Target& target);

  RowBlocks(const Nest& nest, const NestForm& form, const ChunkPlan& plan, LaneEmitter& lanes,
            Frame& frame);

  /// A sink for each of the nest's outputs.
  const std::vector<Sink*>& sinks() const { return sinks_; }
  /// Loads the orders of permutations, before the first block.
  void emit_begin();
  /// Which of the block's chunks is emitted next.
  void set_chunk(int chunk) { chunk_ = chunk; }
  /// Folds the block's results into the accumulators in memory, and advances all operands.
  void emit_end_block();

 private:
  class BlockSink : public Sink {
   public:
    BlockSink(RowBlocks& blocks, size_t accumulator) : blocks_(blocks), accumulator_(accumulator) {}
    void emit_store(LaneEmitter& emitter, const LaneInst& inst) override;

   private:
    RowBlocks& blocks_;
    size_t accumulator_;
  };

  void emit_fold_chunk(const Xbyak::Xmm& value, size_t accumulator);
  void emit_merge(int level, const Xbyak::Xmm& later, size_t accumulator);
  /// What a merge of that level moves at a time.
  int part_bits(int level) const;
  void emit_load_orders(const Xbyak::Xmm& even, const Xbyak::Xmm& odd, int part_bits);
  Xbyak::Xmm own_register(int index) const;
  Xbyak::Xmm even() const { return own_register(0); }
  Xbyak::Xmm odd() const { return own_register(1); }
  Xbyak::Xmm temporary() const { return own_register(2); }
  /// What vfixupimmps answers, where a fold finds NaNs.
  Xbyak::Xmm responses() const { return own_register(3); }
  FoldScratch fold_scratch() const { return {responses(), Xbyak::Xmm(), Xbyak::Xmm()}; }
  /// The orders of merges that move other parts than the first ones do.
  Xbyak::Xmm other_even() const { return own_register(4); }
  Xbyak::Xmm other_odd() const { return own_register(5); }
  /// What has been through `level` merges; at `levels_` the result.
  Xbyak::Xmm pending(size_t accumulator, int level) const;
  const MemoryOperand& accumulator(size_t index) const { return nest_.program.sinks[index]; }

  const Nest& nest_;
  const NestForm& form_;
  const ChunkPlan& plan_;
  const Target& target_;
  Assembler& code_;
  Frame& frame_;
  const int lane_bits_;  ///< the width of all accumulators
  const int chunk_bits_;
  const int levels_;  ///< the number of merges, after which a vector has one element for each row
  int chunk_ = 0;
  std::deque<BlockSink> block_sinks_;
  std::vector<Sink*> sinks_;
};

}  // namespace castor::jit
