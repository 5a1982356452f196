// SPDX-License-Identifier: Apache-2.0
// Emits epilogues (epilogue.hpp) in the code of the kernels that apply them.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <optional>
#include <vector>

#include "jit/conv/epilogue/packed_sink.hpp"
#include "jit/emit/fold_scratch.hpp"
#include "jit/emit/lane_emitter.hpp"
#include "jit/emit/memory_operands.hpp"

namespace castor::jit {

/// Assembles a kernel by Emitter(spec, target, epilogue, buffer); `epilogue` may be null.
template <class Emitter, class Spec>
Result<MachineCode> assemble_with_epilogue(const Spec& spec, const Target& target,
                                           const TileEpilogue* epilogue,
                                           const EmitOptions& options) {
  return assemble(
      fmt::format("tier {}", name_of(target.tier)), options,
      [&](const CodeBuffer& buffer) { return Emitter(spec, target, epilogue, buffer).emit(); });
}

/// Emits an epilogue: the program for one vector of accumulators after another. What is the same
/// for all vectors of a row is done once for it, but for single vectors of a tile.
class EpilogueEmitter final : public EpilogueAddresses {
 public:
  EpilogueEmitter(Assembler& code, const Target& target, const TileEpilogue& epilogue,
                  const EpilogueUse& use);

  /// Bytes of stack: at most a slot is spilled to for each value of the program.
  int frame_bytes() const;

  /// Sets the float environment that the program needs, and copies the call's operands, whose
  /// address is at `operands`, to the frame; puts the caller's environment back.
  void emit_enter(const Xbyak::Address& operands);
  void emit_leave();
  /// Constants, what is the same for all rows, and what has been folded.
  void emit_begin();
  /// Leaves what has been folded in memory, from where the next `emit_begin` takes it.
  void emit_store_folds();
  /// Addresses in the frame: what is the same for a row; for pixels, for some channels of all.
  void emit_begin_row() { lanes_.emit_hoisted(LoopLevel::row, sources_); }
  /// Applies the program to one vector of accumulators in memory, or in a register.
  void emit_apply(const Xbyak::Address& sums);
  void emit_apply(const Xbyak::Xmm& sums);
  /// channels: stores what waits to be packed; `element` is one vector further than at the last.
  void emit_flush() { emit_flush_packs(0); }

  /// rows: how many make up whole packs.
  int group_rows() const;
  /// rows: applies the program to consecutive ones, at most a group, and goes on to the next row.
  /// `sums`: the first row's first vector of accumulators; the others follow.
  void emit_apply_rows(const Xbyak::RegExp& sums, int rows);

 private:
  /// The accumulators, wherever they are.
  struct Sums final : Source {
    void emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xbyak::Xmm& to) override;
    std::optional<Xbyak::Address> address;
    Xbyak::Xmm vector;
  };
  /// One element for all lanes; a uniform one from the address in the frame.
  struct Repeated final : Source {
    Repeated(size_t of, EpilogueEmitter& by) : operand(of), epilogue(by) {}
    void emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xbyak::Xmm& to) override;
    const size_t operand;
    EpilogueEmitter& epilogue;
  };
  /// What is folded, in a register of its own.
  struct Folded final : Sink {
    Folded(const Xbyak::Zmm& in, Fold by, EpilogueEmitter& of) : all(in), fold(by), epilogue(of) {}
    void reserve_constants(LaneEmitter& emitter) override { reserve_for_fold(emitter, fold); }
    void emit_store(LaneEmitter& emitter, const LaneInst& inst) override;
    const Xbyak::Zmm all;
    const Fold fold;
    EpilogueEmitter& epilogue;
  };
  /// The byte offset in the frame at which spilled values begin.
  int spills_at() const;
  void emit_find_folds();
  template <class Move>
  void emit_move_folds(const Move& move);

  std::vector<LoopLevel> levels() const;
  void add_source(size_t operand);
  void add_sink(const LaneInst& store);
  void emit_flush_packs(int stored_of_row);

  LaneEmitter lanes_;
  Sums sums_;
  std::deque<Repeated> repeated_;
  std::deque<MemorySource> memory_sources_;
  std::deque<MemorySink> memory_sinks_;
  std::deque<PackedSink> packed_;
  std::deque<Folded> folded_;
  std::vector<Source*> sources_;
  std::vector<Sink*> sinks_;
};

}  // namespace castor::jit
