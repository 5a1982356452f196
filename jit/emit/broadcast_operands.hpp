// SPDX-License-Identifier: Apache-2.0
// Sources of operands that repeat elements along the innermost axis.
#pragma once

#include "jit/emit/frame.hpp"
#include "jit/emit/memory_operands.hpp"

namespace castor::jit {

/// Loads one element of whole bytes into all lanes of `to`, extended to `lane_bits` as loads are.
void emit_broadcast_element(LaneEmitter& emitter, const Xbyak::Xmm& to, const Xbyak::Address& from,
                            ElementType element, int lane_bits);

/// One element for every lane, loaded once per row. Codes of sub-byte elements are stored on the
/// stack, as numbers of any width.
class UniformSource : public Source {
 public:
  UniformSource(size_t operand, ElementType element, const Frame& frame)
      : operand_(operand), element_(element), frame_(frame) {}
  void emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xbyak::Xmm& to) override;

 private:
  size_t operand_;
  ElementType element_;
  const Frame& frame_;
};

/// One element per period of the innermost axis (AVX-512). The elements of a chunk's periods
/// are consecutive, and are loaded together and then permuted to their lanes: where the period is
/// baked into the code, by constant orders in the main loop; elsewhere by orders from a table.
class RepeatedSource : public Source {
 public:
  /// `period_numbers`: address of bytes; see ArgumentLayout.
  RepeatedSource(size_t operand, ElementType element, int baked_period,
                 const OperandLocator& locator, const Frame& frame,
                 const Xbyak::Address& period_numbers)
      : operand_(operand),
        element_(element),
        baked_period_(baked_period),
        locator_(locator),
        frame_(frame),
        period_numbers_(period_numbers) {}
  void reserve_constants(LaneEmitter& emitter) override;
  void emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xbyak::Xmm& to) override;

 private:
  std::vector<uint8_t> order(const LaneEmitter& emitter, int lane_bits, int64_t element) const;
  void emit_load_by_order(LaneEmitter& emitter, int lane_bits, const Xbyak::Xmm& to);
  void emit_load_by_table(LaneEmitter& emitter, int lane_bits, const Xbyak::Xmm& to);
  bool reads_one_element(const LaneEmitter& emitter) const;
  void emit_select_periods(LaneEmitter& emitter) const;

  size_t operand_;
  ElementType element_;
  int baked_period_;
  const OperandLocator& locator_;
  const Frame& frame_;
  Xbyak::Address period_numbers_;
};

}  // namespace castor::jit
