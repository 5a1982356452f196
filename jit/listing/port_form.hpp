// SPDX-License-Identifier: Apache-2.0
// Which class of the port model an instruction is of, by its mnemonic and its operands. Private to
// jit/listing/.
#pragma once

#include "jit/listing/decoder.hpp"
#include "jit/listing/port_model.hpp"

namespace castor::jit {

/// What the operands of one instruction say of its cost.
struct OperandForm {
  bool vector = false;  // has a vector register
  bool wide = false;    // has a zmm register, or works on all 64 bits of masks
  bool gpr = false;     // has a general register, other than in an address
  bool gpr_destination = false;
  bool memory = false;
  bool memory_destination = false;
  bool mask_destination = false;
  bool under_mask = false;
  bool mask_source = false;
};

/// The row of an instruction, the form that it has, and the class that follows.
struct Weighed {
  const PortRow* row = nullptr;
  OperandForm form;
  Cost cost = Cost::unmeasured;
};

Weighed weigh(const DecodedInstruction& decoded);

/// "the port model has no cost for vpcompressd with a memory operand at offset 0x4".
Error no_cost(const DecodedInstruction& decoded, const OperandForm& form);

/// What the class costs on the core.
inline const CostRow& cost_row(const PortCore& core, Cost cost) {
  return core.costs[static_cast<size_t>(cost)];
}

}  // namespace castor::jit
