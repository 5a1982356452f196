// SPDX-License-Identifier: Apache-2.0
#include "jit/listing/fusion.hpp"

#include <algorithm>
#include <array>

namespace castor::jit {

namespace {

bool is_general_register(const ZydisDecodedOperand& operand) {
  if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) return false;
  const ZydisRegisterClass kind = ZydisRegisterGetClass(operand.reg.value);
  return kind == ZYDIS_REGCLASS_GPR64 || kind == ZYDIS_REGCLASS_GPR32;
}

template <size_t N>
bool is_one_of(const std::array<ZydisMnemonic, N>& mnemonics, const DecodedInstruction& decoded) {
  return std::ranges::find(mnemonics, decoded.instruction.mnemonic) != mnemonics.end();
}

}  // namespace

bool fuses_with_jump(const DecodedInstruction& decoded) {
  constexpr std::array fusing = {ZYDIS_MNEMONIC_CMP, ZYDIS_MNEMONIC_TEST, ZYDIS_MNEMONIC_ADD,
                                 ZYDIS_MNEMONIC_SUB, ZYDIS_MNEMONIC_INC,  ZYDIS_MNEMONIC_DEC,
                                 ZYDIS_MNEMONIC_AND, ZYDIS_MNEMONIC_OR,   ZYDIS_MNEMONIC_XOR};
  return is_one_of(fusing, decoded);
}

bool fuses_with_move(const DecodedInstruction& move, const DecodedInstruction& decoded) {
  constexpr std::array fusing = {ZYDIS_MNEMONIC_ADD, ZYDIS_MNEMONIC_SUB, ZYDIS_MNEMONIC_AND,
                                 ZYDIS_MNEMONIC_OR,  ZYDIS_MNEMONIC_XOR, ZYDIS_MNEMONIC_SHL,
                                 ZYDIS_MNEMONIC_SHR, ZYDIS_MNEMONIC_SAR, ZYDIS_MNEMONIC_INC,
                                 ZYDIS_MNEMONIC_DEC, ZYDIS_MNEMONIC_NOT};
  if (move.instruction.mnemonic != ZYDIS_MNEMONIC_MOV || !is_one_of(fusing, decoded)) return false;
  const auto copied = move.written_operands();
  const auto operands = decoded.written_operands();
  if (!is_general_register(copied[0]) || !is_general_register(copied[1])) return false;
  const ZydisRegister copy = copied[0].reg.value;
  if (!is_general_register(operands[0]) || operands[0].reg.value != copy) return false;
  if (operands.size() == 1 || operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) return true;
  return is_general_register(operands[1]) && operands[1].reg.value != copy;
}

}  // namespace castor::jit
