// SPDX-License-Identifier: Apache-2.0
// Checks of entries, branches and references to constants.
#include <fmt/format.h>

#include <algorithm>

#include "jit/listing/decoder.hpp"
#include "jit/listing/listing.hpp"

namespace castor::jit {
namespace {

Error at(const DecodedInstruction& decoded, std::string_view what) {
  return {ErrorCode::internal,
          fmt::format("{} at offset {:#x} {}", decoded.mnemonic(), decoded.offset, what)};
}

bool is_call_or_jump(const DecodedInstruction& decoded) {
  const ZydisInstructionCategory category = decoded.instruction.meta.category;
  return category == ZYDIS_CATEGORY_CALL || category == ZYDIS_CATEGORY_UNCOND_BR ||
         category == ZYDIS_CATEGORY_COND_BR;
}

Status check_branches(const DecodedInstruction& decoded) {
  const bool is_endbr = decoded.instruction.mnemonic == ZYDIS_MNEMONIC_ENDBR64;
  if (is_endbr && decoded.offset != 0) return at(decoded, "is no entry");
  if (!is_endbr && decoded.offset == 0) return at(decoded, "is the entry, expected endbr64");
  if (is_call_or_jump(decoded) && !branch_target(decoded)) {
    return at(decoded, "branches to an address that is not in the code");
  }
  return {};
}

/// The offset of the displacement that leads to the constant pool, if the instruction has one.
std::optional<uint32_t> pool_reference(const DecodedInstruction& decoded, const MachineCode& code) {
  for (const ZydisDecodedOperand& operand : decoded.written_operands()) {
    const auto target = rip_relative_target(decoded, operand);
    if (target && *target >= code.instruction_bytes) {
      return decoded.offset + decoded.instruction.raw.disp.offset;
    }
  }
  return std::nullopt;
}

}  // namespace

Status check_hardening(const MachineCode& code) {
  const auto program = decode(code);
  if (!program) return program.error();
  std::vector<uint32_t> references;
  for (const DecodedInstruction& decoded : *program) {
    if (Status status = check_branches(decoded); !status) return status;
    if (const auto reference = pool_reference(decoded, code)) references.push_back(*reference);
  }
  if (references == code.pool_references) return {};
  return Error{ErrorCode::internal, fmt::format("the code has {} references to constants; {} are "
                                                "listed, or others",
                                                references.size(), code.pool_references.size())};
}

}  // namespace castor::jit
