// SPDX-License-Identifier: Apache-2.0
// Accumulators of a nest that folds. Where the innermost axis is one that is folded, partial
// results are in registers for the length of a row, and at its end become one element, which is
// folded into the accumulator in memory (RowAccumulators). Where it is not, each chunk is folded
// into the accumulator's chunk in memory (FoldSink).
#pragma once

#include <deque>
#include <vector>

#include "jit/emit/chunk_plan.hpp"
#include "jit/emit/fold_scratch.hpp"
#include "jit/emit/frame.hpp"
#include "jit/emit/memory_operands.hpp"
#include "jit/emit/nan_masks.hpp"

namespace castor::jit {

/// Folds chunks into the elements of an accumulator along the innermost axis.
class FoldSink : public Sink {
 public:
  FoldSink(size_t operand, const MemoryOperand& accumulator, OperandLocator& locator)
      : operand_(operand), accumulator_(accumulator), locator_(locator) {}
  void reserve_constants(LaneEmitter& emitter) override {
    reserve_for_fold(emitter, accumulator_.fold);
  }
  void emit_store(LaneEmitter& emitter, const LaneInst& inst) override;

 private:
  size_t operand_;
  MemoryOperand accumulator_;
  OperandLocator& locator_;
};

/// The partial results of all accumulators of a nest in one row.
class RowAccumulators {
 public:
  /// The registers that rows use, which LaneEmitter must leave alone.
  static TakenRegisters taken(const Nest& nest, const ChunkPlan& plan, const Target& target);
  /// Stack that each accumulator takes, for what is not in registers.
  static int stack_bytes(const ChunkPlan& plan);

  RowAccumulators(const Nest& nest, const ChunkPlan& plan, LaneEmitter& lanes, const Frame& frame,
                  OperandLocator& locator);

  /// A sink for each of the nest's outputs.
  const std::vector<Sink*>& sinks() const { return sinks_; }

  /// Makes partial results neutral.
  void emit_begin_row();
  /// Before and after chunks of the tail: sums in order have their partial results on the stack
  /// there, since each chunk belongs to the next.
  void emit_begin_tail();
  void emit_end_tail();
  /// Folds partial results into the accumulators in memory.
  void emit_end_row();

 private:
  /// Folds the chunks of one accumulator.
  class RowSink : public Sink {
   public:
    RowSink(RowAccumulators& rows, size_t accumulator) : rows_(rows), accumulator_(accumulator) {}
    void emit_store(LaneEmitter& emitter, const LaneInst& inst) override {
      rows_.emit_fold_chunk(emitter, inst, accumulator_);
    }

   private:
    RowAccumulators& rows_;
    size_t accumulator_;
  };

  void emit_fold_chunk(LaneEmitter& emitter, const LaneInst& inst, size_t accumulator);
  void emit_fold_tail(LaneEmitter& emitter, size_t accumulator, const Xbyak::Xmm& value);
  OwnedVector emit_blank_lanes(LaneEmitter& emitter, size_t accumulator, const Xbyak::Xmm& value);
  void emit_fold_on_stack(LaneEmitter& emitter, size_t accumulator, const Xbyak::Xmm& value,
                          const Xbyak::Address& at, bool masked);
  void emit_fold_masks(size_t accumulator);
  Xbyak::Xmm emit_fold_vectors(size_t accumulator);
  void emit_fold_lanes(size_t accumulator, const Xbyak::Xmm& vector);
  void emit_fold_into_memory(size_t accumulator, const Xbyak::Xmm& vector);
  void emit_load_identity(const Xbyak::Xmm& to, size_t accumulator);

  const MemoryOperand& accumulator(size_t index) const { return nest_.program.sinks[index]; }
  int lane_bits(size_t index) const { return bits_of(accumulator(index).element); }
  int chunk_bits(size_t index) const { return plan_.lanes * lane_bits(index); }
  int chunk_bytes(size_t index) const { return chunk_bits(index) / 8; }
  Xbyak::Xmm partial(size_t accumulator, int vector) const;
  Xbyak::Xmm temporary(int index, int bits) const;
  Xbyak::Address on_stack(size_t accumulator, int vector) const;
  FoldScratch fold_scratch(size_t accumulator) const;
  bool finds_nans_in(size_t index) const { return accumulator(index).fold == Fold::any_nan; }
  NanMasks nan_masks(size_t index) const {
    return {code_, plan_.lanes, lane_bits(index), plan_.chunks};
  }

  const Nest& nest_;
  const ChunkPlan& plan_;
  const Target& target_;
  Assembler& code_;
  const Frame& frame_;
  OperandLocator& locator_;
  std::deque<RowSink> row_sinks_;
  std::vector<Sink*> sinks_;
};

}  // namespace castor::jit
