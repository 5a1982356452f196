// SPDX-License-Identifier: Apache-2.0
// One instruction of a lane program on one element, as terms.
#pragma once

#include "jit/lane/program.hpp"
#include "tools/prove/term/float_terms.hpp"

namespace castor::prove {

/// An instruction with its operands. Lanes are terms of their width, truth values of width 1.
struct LaneStep {
  const jit::LaneProgram& program;
  const jit::LaneInst& inst;
  Term a, b, c;  ///< operands that the instruction has
  Terms& terms;
  Term& broken;  ///< 1 where an instruction's precondition does not hold

  int width() const { return is_mask(inst.type) ? 1 : bits_of(inst.type); }
  void require(const Term& condition) { broken = broken | ~condition; }
};

/// The format that float lanes of that width have.
FloatFormat lane_format(int bits);

/// What an instruction other than load, store, gather and constant computes, its mask aside.
Term meaning_of(LaneStep& step);

// Families, by operation; see meanings.cpp for which is which.
Term integer_meaning(LaneStep& step);
Term float_meaning(LaneStep& step);
Term conversion_meaning(LaneStep& step);

/// An entry of a byte table by a byte; bits above the index count for nothing, but for a table
/// with 16 entries, where bytes with bit 7 become 0.
Term entry_of(const jit::ByteTable& table, const Term& byte, int entry_bits);

/// The element that a store makes of a lane: its bits, without those of other elements.
Term stored_element(LaneStep& step, ElementType element);

/// The code of a 16-bit float by a threshold table.
Term encoded_by_thresholds(const jit::ThresholdTable& table, const Term& number);
/// The code of a 16-bit float by a class table.
Term encoded_by_class(const jit::ClassTable& table, const Term& number);

}  // namespace castor::prove
