// SPDX-License-Identifier: Apache-2.0
// The port model: the class of each instruction, which is the same on every core, and the bounds
// that follow from what a class costs on one (port_core.hpp).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/support/result.hpp"
#include "jit/listing/decoder.hpp"
#include "jit/listing/listing.hpp"
#include "jit/listing/port_core.hpp"

namespace castor::jit {

/// One row of the table of instructions; the memory operand's load and store come on top.
struct PortRow {
  std::string_view mnemonic;  ///< Zydis's name; a '*' at its end stands for any ending
  Cost cost;
  Cost with_memory = Cost::same;   ///< with a memory operand
  Cost to_memory = Cost::same;     ///< with one as destination; else `with_memory`
  Cost with_gpr = Cost::same;      ///< with a general register operand
  Cost to_gpr = Cost::same;        ///< with one as destination; else `with_gpr`
  Cost to_mask = Cost::same;       ///< with a mask register as destination
  Cost gpr_to_mask = Cost::same;   ///< from a general register; else `with_gpr`
  Cost load_to_mask = Cost::same;  ///< from memory; else `with_memory`
  Cost under_mask = Cost::same;    ///< register to register under a mask
  bool zeroes_itself = false;      ///< x op x is zero by renaming, without a pipe
  bool gathers = false;            ///< loads element by element
};
std::span<const PortRow> port_table();

/// The row with the longest name that fits; null where none does.
const PortRow* port_row(std::string_view mnemonic);

/// What an instruction occupies and how long its result takes, beside its memory operand's load or
/// store. Fails (internal) where the model has no figure.
Result<CostRow::Form> instruction_cost(const DecodedInstruction& decoded, PortModel model);

/// As port_cycles of listing.hpp, for code that is decoded already.
Result<PortCycles> port_cycles(std::span<const DecodedInstruction> program, const MachineCode& code,
                               const CodeLoop& loop, PortModel model = PortModel::zen4);

}  // namespace castor::jit
