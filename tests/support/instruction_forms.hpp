// SPDX-License-Identifier: Apache-2.0
// The forms of vector, mask and tile instructions that castor emits: mnemonic, encoding, length,
// kinds of operands, mask, rounding and immediate, whatever the registers.
#pragma once

#include <Zydis/Zydis.h>

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "jit/listing/decoder.hpp"

namespace castor::test {

/// Registers of a form: operands of a kind are numbered as they stand.
struct FormRegisters {
  static constexpr int first_vector = 2;
  static constexpr int first_mask = 1;
  static constexpr int writemask = 5;
  static constexpr int memory_offset = 256;  ///< from rdi
};

/// An instruction with the registers of FormRegisters, rcx, and [rdi + memory_offset].
struct InstructionForm {
  std::string text;  ///< as Zydis writes it
  std::vector<uint8_t> bytes;
  std::set<std::string> isa_sets;
};

/// The forms of some codes, each once.
class InstructionForms {
 public:
  /// Adds the forms of a code's vector, mask and tile instructions. Fails where the code does not
  /// decode, and where a form does not encode, naming it.
  Status add(const jit::MachineCode& code);

  /// By text.
  const std::map<std::string, InstructionForm>& all() const { return forms_; }

 private:
  Status add(const jit::DecodedInstruction& decoded);

  std::map<std::string, InstructionForm> forms_;
};

/// Whether the table of instructions is about it: vectors, masks and tiles.
bool is_vector_instruction(const ZydisDecodedInstruction& instruction);

/// Those of every golden listing, of conversions and of elementwise functions on all tiers; in the
/// long form with all options.
Result<InstructionForms> forms_that_castor_emits();

}  // namespace castor::test
