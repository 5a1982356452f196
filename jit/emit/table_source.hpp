// SPDX-License-Identifier: Apache-2.0
// Sources that are tables in memory, whose elements `gather` reads at the indices in lanes.
#pragma once

#include <array>
#include <optional>

#include "jit/emit/frame.hpp"
#include "jit/emit/memory_operands.hpp"

namespace castor::jit {

/// What is known of a table when code is emitted.
struct TableOperand {
  size_t operand;
  ElementType element;  ///< of whole bytes
  int index_bits;       ///< 4 or 8: the table has 2^index_bits entries
  bool is_each;         ///< each element of the innermost axis has a table, one after another
};

/// Whether one table for a whole row is looked up by permutations of bytes in registers: its
/// entries are bytes, 16 of them, or 256 with VBMI.
bool permutes_table(const Target& target, int index_bits, LaneType type);

/// Entries are looked up in registers, which are loaded once per row, or are read one by one.
class TableSource : public Source {
 public:
  TableSource(const TableOperand& table, const OperandLocator& locator, const Frame& frame)
      : table_(table), locator_(locator), frame_(frame) {}

  void reserve_constants(LaneEmitter& emitter) override;
  /// Loads the table into the registers that it has.
  void emit_load_registers(Assembler& code) const;
  void emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xbyak::Xmm& to) override;

 private:
  int element_bytes() const { return bits_of(table_.element) / 8; }
  int table_bytes() const { return element_bytes() << table_.index_bits; }
  Xbyak::Xmm emit_part(LaneEmitter& emitter, size_t part, OwnedVector& fallback) const;
  void emit_load_part(Assembler& code, size_t part, int vector) const;
  Xbyak::Reg64 emit_base(Assembler& code) const;
  void emit_each_lane(LaneEmitter& emitter, const LaneInst& inst, const Xbyak::Xmm& to) const;
  void emit_each_lane_of_tail(LaneEmitter& emitter, const LaneInst& inst,
                              const Xbyak::Xmm& to) const;

  const TableOperand table_;
  const OperandLocator& locator_;
  const Frame& frame_;
  int parts_ = 0;  ///< registers that hold the whole table; 0 where it is not permuted
  int vector_bits_ = 0;
  std::array<std::optional<int>, 4> registers_;  ///< of its parts, as far as there are any left
};

}  // namespace castor::jit
