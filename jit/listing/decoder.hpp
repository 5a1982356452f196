// SPDX-License-Identifier: Apache-2.0
// Machine code decoded by Zydis, with its internal references checked. For jit/listing/ and tools.
#pragma once

#include <Zydis/Zydis.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/support/result.hpp"
#include "jit/code.hpp"

namespace castor::jit {

struct DecodedInstruction {
  uint32_t offset = 0;
  ZydisDecodedInstruction instruction;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;

  uint32_t end() const { return offset + instruction.length; }
  std::string_view mnemonic() const { return ZydisMnemonicGetString(instruction.mnemonic); }
  /// The operands as written, then those that the instruction implies (the stack slot of a push).
  std::span<const ZydisDecodedOperand> all_operands() const {
    return {operands.data(), instruction.operand_count};
  }
  std::span<const ZydisDecodedOperand> written_operands() const {
    return {operands.data(), instruction.operand_count_visible};
  }
};

/// Decodes the instruction part of `code` from its first byte to its last. Fails (internal) at
/// bytes that are no instruction, at a branch to anything but the start of an instruction, and at
/// a rip-relative operand that is outside `code`.
Result<std::vector<DecodedInstruction>> decode(const MachineCode& code);

/// Offset that a jump or a call goes to; none for other instructions and for indirect branches.
std::optional<uint32_t> branch_target(const DecodedInstruction& decoded);

/// What an iteration of the loop runs through where no branch is taken: its instructions and, after
/// each call, those of the routine up to its return.
std::vector<DecodedInstruction> iteration_of(std::span<const DecodedInstruction> program,
                                             const CodeLoop& loop);

/// Offset in the code that a rip-relative memory operand names; none for other operands.
std::optional<int64_t> rip_relative_target(const DecodedInstruction& decoded,
                                           const ZydisDecodedOperand& operand);

/// Offsets that branches go to, ascending, each once: the nth is label Ln.
std::vector<uint32_t> labels_of(std::span<const DecodedInstruction> program);

/// The label's number at `offset`, if one is there.
std::optional<int> label_at(std::span<const uint32_t> labels, uint32_t offset);

/// Whether the operand touches memory: lea and the long forms of nop only name an address.
bool touches_memory(const DecodedInstruction& decoded, const ZydisDecodedOperand& operand);

}  // namespace castor::jit
