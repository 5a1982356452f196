// SPDX-License-Identifier: Apache-2.0
// Rows and blocks of small codes by table: where everything else that an element depends on is the
// same for the whole row, or for a block of it, the program runs once for each, on all codes, and
// its results are looked up.
#pragma once

#include "jit/emit/chunk_plan.hpp"
#include "jit/emit/frame.hpp"
#include "jit/emit/lane_emitter.hpp"
#include "jit/emit/nest_loops.hpp"

namespace castor::jit {

/// The tables of a nest, or nothing where it does not allow any: they want AVX-512, one contiguous
/// operand of 1, 2 or 4 bits whose codes do not straddle bytes, all others uniform or repeated, and
/// one contiguous output of 16 or 32 bits. Blocks, of elements that read the same repeated ones,
/// are whole vectors of the output, and have more elements than codes.
std::optional<CodeTables> code_tables(const Nest& nest, const NestForm& form, const Target& target,
                                      int lanes);

/// Every code, in the lanes that a load asks for, repeated where there are more lanes.
class CodesSource : public Source {
 public:
  explicit CodesSource(ElementType element) : element_(element) {}
  void emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xbyak::Xmm& to) override;

 private:
  ElementType element_;
};

/// Keeps what the program stores as a table of 512 bits in a register.
class TableSink : public Sink {
 public:
  explicit TableSink(ElementType element) : element_(element) {}
  void reserve_constants(LaneEmitter& emitter) override;
  void emit_store(LaneEmitter& emitter, const LaneInst& inst) override;

 private:
  bool takes_halves(const LaneInst& inst) const;

  ElementType element_;
};

/// Emits the look-ups of a row or a block.
class RowTable {
 public:
  /// The vector registers that the row table uses, which LaneEmitter must leave alone.
  static constexpr uint32_t taken_vectors = 0xf0000000;

  RowTable(const Nest& nest, const CodeTables& tables, Stores stores, LaneEmitter& lanes,
           const Frame& frame, NestLoops& loops);

  /// The program's sinks and its source of codes while it computes a table.
  std::span<Sink* const> sinks() const { return sinks_; }
  Source* codes() { return &codes_; }

  /// Loads what look-ups use; once, in the function's entry.
  void emit_constants();
  /// Does the gpr::extent elements of one row by the table.
  void emit_row();
  /// Does a block that begins at element gpr::index + `element`.
  void emit_block(int element, int elements);

 private:
  int elements_per_vector() const { return 512 / bits_of(to_); }
  int bytes_per_vector() const { return elements_per_vector() * bits_of(from_) / 8; }
  Xbyak::Address emit_codes_address(int displacement) const;
  Xbyak::Address emit_elements_address(int displacement) const;
  void emit_loop(int vectors);
  void emit_vector(int vector);
  void emit_locate_codes();
  void emit_elements_to_alignment();
  void emit_remainder(const Xbyak::Operand& end);
  void emit_load_codes(int displacement);
  void emit_load_last_codes();
  void emit_look_up();

  Assembler& code_;
  const Frame& frame_;
  NestLoops& loops_;
  Stores stores_;
  size_t source_;
  size_t sink_;
  ElementType from_;
  ElementType to_;
  CodesSource codes_;
  TableSink table_sink_;
  std::array<Sink*, 1> sinks_;
};

}  // namespace castor::jit
