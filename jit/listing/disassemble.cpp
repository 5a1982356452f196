// SPDX-License-Identifier: Apache-2.0
// Machine code as text: Intel syntax, with labels and pool offsets instead of addresses.
#include <Zycore/Format.h>
#include <fmt/format.h>

#include "jit/listing/listing.hpp"
#include "jit/listing/pool.hpp"

namespace castor::jit {
namespace {

/// What a printed address may name.
struct AddressNames {
  std::vector<uint32_t> labels;
  uint32_t pool_begin = 0;

  std::string name(uint64_t address) const {
    if (address >= pool_begin) return fmt::format("pool+{:#x}", address - pool_begin);
    const auto offset = static_cast<uint32_t>(address);
    if (const auto label = label_at(labels, offset)) return fmt::format("L{}", *label);
    return fmt::format("code+{:#x}", offset);
  }
};

/// A memory operand whose address is a number alone and not in the code.
bool is_fixed_address(const ZydisDecodedOperand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.base != ZYDIS_REGISTER_RIP;
}

/// Zydis prints every absolute address (branch targets, rip-relative operands) through this.
ZyanStatus print_address(const ZydisFormatter*, ZydisFormatterBuffer* buffer,
                         ZydisFormatterContext* context) {
  const auto* names = static_cast<const AddressNames*>(context->user_data);
  ZyanU64 address = 0;
  ZYAN_CHECK(ZydisCalcAbsoluteAddress(context->instruction, context->operand,
                                      context->runtime_address, &address));
  ZyanString* text = nullptr;
  ZYAN_CHECK(ZydisFormatterBufferAppend(buffer, ZYDIS_TOKEN_SYMBOL));
  ZYAN_CHECK(ZydisFormatterBufferGetString(buffer, &text));
  const std::string name =
      is_fixed_address(*context->operand) ? fmt::format("{:#x}", address) : names->name(address);
  return ZyanStringAppendFormat(text, "%s", name.c_str());
}

ZydisFormatter make_formatter(bool with_sizes) {
  ZydisFormatter formatter;
  ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
  ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
  ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_FORCE_SIZE,
                            with_sizes ? ZYAN_TRUE : ZYAN_FALSE);
  ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_FORCE_SCALE_ONE, ZYAN_FALSE);
  ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_DISP_PADDING, 0);
  ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_IMM_PADDING, 0);
  auto hook = reinterpret_cast<const void*>(&print_address);
  ZydisFormatterSetHook(&formatter, ZYDIS_FORMATTER_FUNC_PRINT_ADDRESS_ABS, &hook);
  return formatter;
}

std::string text_of(const DecodedInstruction& decoded, const ZydisFormatter& formatter,
                    AddressNames& names) {
  std::array<char, 256> text{};
  ZydisFormatterFormatInstruction(&formatter, &decoded.instruction, decoded.operands.data(),
                                  decoded.instruction.operand_count_visible, text.data(),
                                  text.size(), decoded.offset, &names);
  return text.data();
}

std::string comment_of(const DecodedInstruction& decoded, const MachineCode& code) {
  const auto constant = pool_constant(decoded, code);
  return constant ? value_text(*constant, code) : std::string();
}

}  // namespace

Result<std::vector<ListedInstruction>> disassemble(const MachineCode& code, bool with_sizes) {
  auto program = decode(code);
  if (!program) return program.error();
  AddressNames names{labels_of(*program), code.pool_begin};
  const ZydisFormatter formatter = make_formatter(with_sizes);
  std::vector<ListedInstruction> listed;
  listed.reserve(program->size());
  for (const DecodedInstruction& decoded : *program) {
    listed.push_back({.offset = decoded.offset,
                      .length = decoded.instruction.length,
                      .mnemonic = std::string(decoded.mnemonic()),
                      .text = text_of(decoded, formatter, names),
                      .comment = comment_of(decoded, code),
                      .label = label_at(names.labels, decoded.offset)});
  }
  return listed;
}

}  // namespace castor::jit
