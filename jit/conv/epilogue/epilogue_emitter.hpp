// SPDX-License-Identifier: Apache-2.0
// Emits epilogues (epilogue.hpp) in the code of the kernels that apply them.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "jit/conv/epilogue/epilogue.hpp"
#include "jit/emit/lane_emitter.hpp"
#include "jit/emit/memory_operands.hpp"
#include "jit/emit/packer.hpp"

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

/// The order in which a kernel hands in vectors of accumulators, and with it where the addresses of
/// the operands are kept. k1 names the lanes that are stored, but for `rows`, which store all.
enum class EpilogueOrder : uint8_t {
  /// One vector of each row of a register tile. R9, RSI, RDX, R13, R14 and R15 hold addresses of
  /// the current row's elements, and those that are left what these step by.
  vectors,
  /// All vectors of a row, row by row. The same registers hold addresses of the row's elements.
  rows,
  /// Vectors of one channel, from one row of the image to the next. The frame holds addresses of
  /// the channel's first element.
  channels,
  /// Vectors of channels, of one pixel or another. The frame holds addresses of the first pixel.
  pixels,
};

/// How a kernel uses an epilogue. Of general registers it may overwrite RAX, and where registers
/// hold addresses the six of these; of vectors and masks all but those taken, between the kernel's
/// own chunks.
struct EpilogueUse {
  int frame = 0;  ///< bytes from the stack pointer to `frame_bytes` of its own
  TakenRegisters taken{};
  EpilogueOrder order = EpilogueOrder::vectors;
  int row_vectors = 1;  ///< rows: vectors of each
  /// channels, pixels: counts elements from a row's first to that of the accumulators' first lane.
  Xbyak::Reg64 element{};
  /// channels: elements from one vector to the next; pixels: the pixel.
  Xbyak::Reg64 position{};
};

/// Knows where the operands of an epilogue are in a kernel's code.
class EpilogueAddresses : public OperandLocator {
 public:
  EpilogueAddresses(Assembler& code, TileEpilogue epilogue, const EpilogueUse& use)
      : code_(code), epilogue_(std::move(epilogue)), use_(use) {}

  /// Addresses in registers: goes to an element of row 0, or on by a number of rows. What rows step
  /// by is in registers too, as far as there are any: loads from the frame would wait for stores of
  /// results, one of which often has the same low twelve bits of its address.
  void emit_point(const Xbyak::Reg64& element);
  void emit_skip_rows(const Xbyak::Reg64& rows);
  /// Goes on to the next row; not for pixels.
  void emit_next_row();
  /// Addresses in registers: prefetches what rows of channels read element by element: `elements`
  /// of each of `rows` channels, from the pixel on whose number is at `pixel`. Overwrites RAX and
  /// `scratch`.
  void emit_prefetch_of_rows(int rows, int elements, const Xbyak::Address& pixel,
                             const Xbyak::Reg64& scratch);
  /// Addresses in the frame: prefetches the cache lines of results `distance` elements or pixels
  /// ahead. Overwrites `scratch` (channels).
  void emit_prefetch(const Xbyak::Address& distance,
                     const Xbyak::Reg64& scratch = Xbyak::util::rax);

  ChunkMode mode(size_t) const override;
  Stores stores() const override { return Stores::cached; }
  ChunkAddress emit_chunk_address(size_t operand, int) override;
  int64_t element_of_iteration() const override { return 0; }

 protected:
  /// Calls `visit(k)` for each operand in memory but the accumulators.
  template <class Visit>
  void for_each_operand(const Visit& visit) const;
  int bytes_of(size_t operand) const { return bits_of(epilogue_.element(operand)) / 8; }
  bool in_registers() const { return use_.order <= EpilogueOrder::rows; }
  Xbyak::Reg64 pointer(size_t operand) const;
  /// Whether an operand's address differs from row to row: else its step is 0.
  bool moves(size_t operand) const { return !epilogue_.operands[operand].same_in_rows; }
  /// Whether one element is for the whole tile, where kernels hand in row by row: it is broadcast
  /// before addresses are in registers.
  bool is_uniform(size_t operand) const {
    return use_.order == EpilogueOrder::rows && epilogue_.operands[operand].repeats &&
           !moves(operand);
  }
  /// The register that an operand's step is in; nothing where none is left.
  std::optional<Xbyak::Reg64> step_register(size_t operand) const;
  /// Calls `emit(step)` with where an operand's step is.
  template <class Emit>
  void with_row_step(size_t operand, const Emit& emit) {
    const std::optional<Xbyak::Reg64> step = step_register(operand);
    step ? emit(*step) : emit(row_step(operand));
  }
  /// Of an operand's EpilogueOperand in the frame.
  Xbyak::Address data(size_t operand) { return slot(operand, offsetof(EpilogueOperand, data)); }
  Xbyak::Address row_step(size_t operand) {
    return slot(operand, offsetof(EpilogueOperand, row_step));
  }

  Assembler& code_;
  const TileEpilogue epilogue_;
  const EpilogueUse use_;
  int vector_ = 0;  ///< of the current row

 private:
  Xbyak::Address slot(size_t operand, size_t field);
};

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
  /// A result of 8 bits: four vectors are packed into one.
  struct Packed final : Sink {
    static constexpr int chunks_of_pack = 4;
    Packed(size_t of, const LaneInst& inst, EpilogueEmitter& by)
        : operand(of), store(inst), epilogue(by) {}
    void reserve_constants(LaneEmitter& emitter) override;
    void emit_store(LaneEmitter& emitter, const LaneInst& inst) override;
    void emit_flush(LaneEmitter& emitter, int stored_of_row);
    const size_t operand;
    const LaneInst store;
    EpilogueEmitter& epilogue;
    Packer packer;
    int waiting = 0;
  };

  /// What is folded, in a register of its own.
  struct Folded final : Sink {
    Folded(const Xbyak::Zmm& in, Fold by, EpilogueEmitter& of) : all(in), fold(by), epilogue(of) {}
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
  void emit_put(size_t operand, const OwnedVector& pack, int chunks, int stored_of_row);
  void emit_put_rows(size_t operand, const Xbyak::Zmm& pack, int chunks, int stored_of_row,
                     const Xbyak::Xmm* part);
  void emit_put_parts(const Xbyak::Zmm& pack, int first, int end, int vector);
  void emit_put_masked(const Xbyak::Zmm& pack, int chunk, const Xbyak::Xmm& part);

  LaneEmitter lanes_;
  Sums sums_;
  std::deque<Repeated> repeated_;
  std::deque<MemorySource> memory_sources_;
  std::deque<MemorySink> memory_sinks_;
  std::deque<Packed> packed_;
  std::deque<Folded> folded_;
  std::vector<Source*> sources_;
  std::vector<Sink*> sinks_;
};

}  // namespace castor::jit
