// SPDX-License-Identifier: Apache-2.0
// Decoding machine code and checking where its branches and rip-relative operands lead.
#include "jit/listing/decoder.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace castor::jit {
namespace {

Error broken(std::string message) { return {ErrorCode::internal, std::move(message)}; }

std::string hex_bytes(const MachineCode& code, uint32_t offset, uint32_t count) {
  std::string text;
  for (uint32_t i = offset; i < std::min(offset + count, code.instruction_bytes); ++i) {
    text += fmt::format("{}{:02x}", text.empty() ? "" : " ", std::to_integer<int>(code.bytes[i]));
  }
  return text;
}

Error undecodable(const MachineCode& code, uint32_t offset, ZyanStatus status) {
  constexpr uint32_t longest_instruction = 15;
  return broken(fmt::format("{} at offset {:#x}: {}",
                            status == ZYDIS_STATUS_NO_MORE_DATA
                                ? "the instruction part ends within an instruction"
                                : "expected an x86-64 instruction, found other bytes",
                            offset, hex_bytes(code, offset, longest_instruction)));
}

Status check_branch(const DecodedInstruction& decoded,
                    std::span<const DecodedInstruction> program) {
  const auto target = branch_target(decoded);
  if (!target) return {};
  const bool found = std::ranges::binary_search(program, *target, {}, &DecodedInstruction::offset);
  if (found) return {};
  return broken(fmt::format("{} at offset {:#x} goes to {:#x}, where no instruction begins",
                            decoded.mnemonic(), decoded.offset, *target));
}

Status check_rip_relative(const DecodedInstruction& decoded, const MachineCode& code) {
  for (const ZydisDecodedOperand& operand : decoded.written_operands()) {
    const auto target = rip_relative_target(decoded, operand);
    if (!target) continue;
    const int64_t bytes = touches_memory(decoded, operand) ? operand.size / 8 : 0;
    if (*target >= 0 && *target + bytes <= static_cast<int64_t>(code.bytes.size())) continue;
    return broken(
        fmt::format("{} at offset {:#x} names {} bytes at {:#x}, outside the {} of the code",
                    decoded.mnemonic(), decoded.offset, bytes, *target, code.bytes.size()));
  }
  return {};
}

Status check_references(std::span<const DecodedInstruction> program, const MachineCode& code) {
  for (const DecodedInstruction& decoded : program) {
    if (Status status = check_branch(decoded, program); !status) return status;
    if (Status status = check_rip_relative(decoded, code); !status) return status;
  }
  return {};
}

constexpr int max_nested_calls = 8;  // a routine that calls itself is followed no further

/// Appends an instruction, and what it calls.
void run_through(std::span<const DecodedInstruction> program, const DecodedInstruction& decoded,
                 int nested_calls, std::vector<DecodedInstruction>& result) {
  result.push_back(decoded);
  const auto target = branch_target(decoded);
  const bool calls = target && decoded.instruction.meta.category == ZYDIS_CATEGORY_CALL;
  if (!calls || nested_calls == max_nested_calls) return;
  auto routine = std::ranges::lower_bound(program, *target, {}, &DecodedInstruction::offset);
  for (; routine != program.end(); ++routine) {
    run_through(program, *routine, nested_calls + 1, result);
    if (routine->instruction.meta.category == ZYDIS_CATEGORY_RET) return;
  }
}

}  // namespace

Result<std::vector<DecodedInstruction>> decode(const MachineCode& code) {
  if (code.instruction_bytes > code.bytes.size()) {
    return broken(fmt::format("code of {} bytes claims {} bytes of instructions", code.bytes.size(),
                              code.instruction_bytes));
  }
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  std::vector<DecodedInstruction> program;
  for (uint32_t offset = 0; offset < code.instruction_bytes;) {
    DecodedInstruction& decoded = program.emplace_back();
    decoded.offset = offset;
    const ZyanStatus status = ZydisDecoderDecodeFull(&decoder, code.bytes.data() + offset,
                                                     code.instruction_bytes - offset,
                                                     &decoded.instruction, decoded.operands.data());
    if (!ZYAN_SUCCESS(status)) return undecodable(code, offset, status);
    offset = decoded.end();
  }
  if (Status status = check_references(program, code); !status) return status.error();
  return program;
}

std::optional<uint32_t> branch_target(const DecodedInstruction& decoded) {
  for (const ZydisDecodedOperand& operand : decoded.written_operands()) {
    if (operand.type != ZYDIS_OPERAND_TYPE_IMMEDIATE || !operand.imm.is_relative) continue;
    return static_cast<uint32_t>(decoded.end() + operand.imm.value.s);
  }
  return std::nullopt;
}

std::vector<DecodedInstruction> iteration_of(std::span<const DecodedInstruction> program,
                                             const CodeLoop& loop) {
  std::vector<DecodedInstruction> result;
  for (const DecodedInstruction& decoded : program) {
    if (decoded.offset < loop.begin || decoded.offset >= loop.end) continue;
    run_through(program, decoded, 0, result);
  }
  return result;
}

std::optional<int64_t> rip_relative_target(const DecodedInstruction& decoded,
                                           const ZydisDecodedOperand& operand) {
  if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.base != ZYDIS_REGISTER_RIP) {
    return std::nullopt;
  }
  return int64_t{decoded.end()} + operand.mem.disp.value;
}

std::vector<uint32_t> labels_of(std::span<const DecodedInstruction> program) {
  std::vector<uint32_t> labels;
  for (const DecodedInstruction& decoded : program) {
    if (const auto target = branch_target(decoded)) labels.push_back(*target);
  }
  std::ranges::sort(labels);
  const auto unique_end = std::unique(labels.begin(), labels.end());
  labels.erase(unique_end, labels.end());
  return labels;
}

std::optional<int> label_at(std::span<const uint32_t> labels, uint32_t offset) {
  const auto found = std::ranges::lower_bound(labels, offset);
  if (found == labels.end() || *found != offset) return std::nullopt;
  return static_cast<int>(found - labels.begin());
}

bool touches_memory(const DecodedInstruction& decoded, const ZydisDecodedOperand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
         decoded.instruction.mnemonic != ZYDIS_MNEMONIC_NOP;
}

}  // namespace castor::jit
