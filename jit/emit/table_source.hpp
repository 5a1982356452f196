// SPDX-License-Identifier: Apache-2.0
// Sources that are tables in memory, whose elements `gather` reads at the indices in lanes.
#pragma once

#include <array>
#include <optional>

#include "jit/emit/frame.hpp"
#include "jit/emit/memory_operands.hpp"
#include "jit/plan/table_method.hpp"

namespace castor::jit {

/// What is known of a table when code is emitted.
struct TableOperand {
  size_t operand;
  ElementType element;  ///< takes whole bytes
  int index_bits;       ///< 4 or 8: the table has 2^index_bits entries
  bool is_each;         ///< each element of the innermost axis has a table, one after another
};

/// Entries are looked up in registers, which are loaded once per row, or are read one by one.
class TableSource : public Source {
 public:
  TableSource(const TableOperand& table, const Target& target, const OperandLocator& locator,
              const Frame& frame);

  void reserve_constants(LaneEmitter& emitter) override;
  /// Loads the table into the registers that it has.
  void emit_load_registers(Assembler& code) const;
  void emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xbyak::Xmm& to) override;

 private:
  static constexpr int max_parts = 8;

  int element_bytes() const { return bits_of(table_.element) / 8; }
  int table_bytes() const { return element_bytes() << table_.index_bits; }
  Xbyak::Xmm emit_part(LaneEmitter& emitter, int part, OwnedVector& fallback) const;
  void emit_load_part(Assembler& code, int part, int vector) const;
  Xbyak::Reg64 emit_base(Assembler& code) const;
  void emit_permute_bytes(LaneEmitter& emitter, const Xbyak::Xmm& indices, const Xbyak::Xmm& to);
  void emit_permute_byte_pairs(LaneEmitter& emitter, const Xbyak::Xmm& indices,
                               const Xbyak::Xmm& to);
  void emit_permute(LaneEmitter& emitter, const Xbyak::Xmm& indices, const Xbyak::Xmm& to);
  void emit_permute_quarters(LaneEmitter& emitter, const Xbyak::Zmm& to, int first_part,
                             const OwnedMask& upper, const OwnedMask& lower) const;
  void emit_permute_256_i16(LaneEmitter& emitter, const Xbyak::Xmm& indices, const Xbyak::Xmm& to);
  void emit_each_lane(LaneEmitter& emitter, const LaneInst& inst, const Xbyak::Xmm& to) const;
  void emit_each_lane_of_tail(LaneEmitter& emitter, const LaneInst& inst,
                              const Xbyak::Xmm& to) const;

  const TableOperand table_;
  const TableMethod method_;
  const int vector_bits_;
  const OperandLocator& locator_;
  const Frame& frame_;
  std::array<std::optional<int>, max_parts> registers_;  ///< by part, as far as any are left
};

}  // namespace castor::jit
