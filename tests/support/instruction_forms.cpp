// SPDX-License-Identifier: Apache-2.0
#include "tests/support/instruction_forms.hpp"

#include <fmt/format.h>
#include <xbyak/xbyak.h>

#include "ir/text/text.hpp"
#include "jit/dump/dump.hpp"
#include "tests/support/conversion_code.hpp"
#include "tests/support/elementwise_cases.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/golden_kernel.hpp"
#include "tests/support/long_form.hpp"

namespace castor::test {

namespace {

using jit::DecodedInstruction;

ZydisRegister numbered(ZydisRegister like, int id) {
  return ZydisRegisterEncode(ZydisRegisterGetClass(like), static_cast<ZyanU8>(id));
}

/// Numbers of the registers that operands of a kind get next.
struct NextRegisters {
  int vector = FormRegisters::first_vector;
  int mask = FormRegisters::first_mask;
};

void rename(ZydisRegister& reg, NextRegisters& next) {
  switch (ZydisRegisterGetClass(reg)) {
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM: reg = numbered(reg, next.vector++); break;
    case ZYDIS_REGCLASS_MASK: reg = numbered(reg, next.mask++); break;
    case ZYDIS_REGCLASS_GPR32: reg = ZYDIS_REGISTER_ECX; break;
    case ZYDIS_REGCLASS_GPR64: reg = ZYDIS_REGISTER_RCX; break;
    default: break;
  }
}

/// Gives operands the registers of a form.
void rename(const DecodedInstruction& decoded, ZydisEncoderRequest& request) {
  NextRegisters next;
  for (int i = 0; i < request.operand_count; ++i) {
    ZydisEncoderOperand& operand = request.operands[i];
    if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
      operand.mem = {.base = ZYDIS_REGISTER_RDI,
                     .index = ZYDIS_REGISTER_NONE,
                     .scale = 0,
                     .displacement = FormRegisters::memory_offset,
                     .size = operand.mem.size};
    } else if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) {
      const auto& source = decoded.operands[static_cast<size_t>(i)];
      if (source.encoding != ZYDIS_OPERAND_ENCODING_MASK) {
        rename(operand.reg.value, next);
      } else if (operand.reg.value != ZYDIS_REGISTER_K0) {
        operand.reg.value = numbered(ZYDIS_REGISTER_K1, FormRegisters::writemask);
      }
    }
  }
}

std::string text_of(const std::vector<uint8_t>& bytes) {
  ZydisDisassembledInstruction disassembled;
  ZydisDisassembleIntel(ZYDIS_MACHINE_MODE_LONG_64, 0, bytes.data(), bytes.size(), &disassembled);
  return disassembled.text;
}

Error cannot_encode(const DecodedInstruction& decoded) {
  return {ErrorCode::internal, fmt::format("the form of {} at offset {:#x} does not encode",
                                           decoded.mnemonic(), decoded.offset)};
}

}  // namespace

bool is_vector_instruction(const ZydisDecodedInstruction& instruction) {
  const std::string_view name = ZydisMnemonicGetString(instruction.mnemonic);
  const bool is_state = name == "vzeroupper";
  const bool is_tile = instruction.meta.category == ZYDIS_CATEGORY_AMX_TILE;
  return is_tile || (!is_state && (name.starts_with('v') || name.starts_with('k')));
}

Status InstructionForms::add(const DecodedInstruction& decoded) {
  if (decoded.instruction.meta.category == ZYDIS_CATEGORY_AMX_TILE) {
    forms_.emplace(std::string(decoded.mnemonic()), InstructionForm{});
    return {};
  }
  ZydisEncoderRequest request;
  const ZyanStatus made = ZydisEncoderDecodedInstructionToEncoderRequest(
      &decoded.instruction, decoded.operands.data(), decoded.instruction.operand_count_visible,
      &request);
  if (!ZYAN_SUCCESS(made)) return cannot_encode(decoded);
  rename(decoded, request);
  InstructionForm form;
  form.bytes.resize(ZYDIS_MAX_INSTRUCTION_LENGTH);
  ZyanUSize length = form.bytes.size();
  if (!ZYAN_SUCCESS(ZydisEncoderEncodeInstruction(&request, form.bytes.data(), &length))) {
    return cannot_encode(decoded);
  }
  form.bytes.resize(length);
  form.text = text_of(form.bytes);
  form.isa_sets.insert(ZydisISASetGetString(decoded.instruction.meta.isa_set));
  forms_.emplace(form.text, form);
  return {};
}

Status InstructionForms::add(const jit::MachineCode& code) {
  const auto program = jit::decode(code);
  if (!program) return program.error();
  for (const DecodedInstruction& decoded : *program) {
    if (!is_vector_instruction(decoded.instruction)) continue;
    if (Status status = add(decoded); !status) return status;
  }
  return {};
}

namespace {

Status add_codes(InstructionForms& forms, const Result<std::vector<jit::MachineCode>>& codes) {
  if (!codes) return codes.error();
  for (const jit::MachineCode& code : *codes) {
    if (Status status = forms.add(code); !status) return status;
  }
  return {};
}

Status add_golden(InstructionForms& forms) {
  for (const auto& file : listing_files()) {
    const auto kernel = read_golden_kernel(text_of_file(file));
    if (!kernel) return kernel.error();
    if (Status status = add_codes(forms, golden_codes(*kernel)); !status) return status;
  }
  return {};
}

Status add_function(InstructionForms& forms, const FunctionPtr& function) {
  for (const jit::Tier tier : all_tiers) {
    const auto codes = jit::emit_annotated(*function, jit::Target{tier});
    if (Status status = add_codes(forms, codes); !status) return status;
  }
  return {};
}

Status add_conversions(InstructionForms& forms) {
  for (const Conversion& conversion : all_conversions()) {
    const ConvertOptions canonical =
        canonical_options(conversion.from, conversion.to, conversion.options);
    if (!long_form() && !(canonical == canonical_options(conversion.from, conversion.to, {}))) {
      continue;
    }
    if (Status status = add_function(forms, function_of(conversion)); !status) return status;
  }
  return {};
}

Status add_elementwise(InstructionForms& forms) {
  for (const ElementType type : all_element_types()) {
    for (const ElementwiseCase& row : elementwise_cases(type)) {
      const auto function = parse_function(row.text());
      if (!function) return function.error();
      if (Status status = add_function(forms, *function); !status) return status;
    }
  }
  return {};
}

/// Forms that emitters have for shapes and lane types that no function above has.
Status add_rare(InstructionForms& forms) {
  using namespace Xbyak::util;
  Xbyak::CodeGenerator c;
  c.vpandnq(zmm0, zmm1, zmm2);
  c.vpandnq(ymm0, ymm1, ymm2);
  c.vplzcntd(zmm0, zmm1);
  c.vpsraw(zmm0, zmm1, 3);
  c.vpsraw(ymm0, ymm1, 15);
  c.vpsraq(zmm0, zmm1, 17);
  c.vpinsrb(xmm0, xmm1, ptr[rax], 5);
  c.vpinsrw(xmm0, xmm1, ptr[rax], 3);
  c.vpinsrq(xmm0, xmm1, ptr[rax], 1);
  c.vpermi2q(zmm0, zmm1, zmm2);
  c.vpermt2q(zmm0, zmm1, zmm2);
  c.vcvtps2udq(zmm0, zmm1);
  c.vcvtps2udq(zmm0, zmm1 | T_ru_sae);
  c.vcvtpd2qq(zmm0 | k1 | T_z, zmm1);
  c.vcvtpd2qq(zmm0, zmm1 | T_rd_sae);
  c.vcvtpd2uqq(zmm0, zmm1);
  c.vcvtpd2udq(ymm0, zmm1 | T_ru_sae);
  c.vcvtps2qq(zmm0, ymm1 | T_rd_sae);
  c.vcvtps2uqq(zmm0 | k2, ymm1);
  c.vcvtph2w(zmm0 | k1, zmm1);
  c.vcvtph2w(zmm0, zmm1 | T_ru_sae);
  c.vcvtph2uw(zmm0, zmm1);
  c.vcvtph2dq(zmm0, ymm1);
  c.vcvtph2udq(zmm0, ymm1);
  c.vcvtph2qq(zmm0, xmm1);
  c.vcvtph2uqq(zmm0, xmm1);
  c.vaddph(zmm0 | k1 | T_z, zmm1, zmm2);
  c.vrndscaleph(zmm0 | k1, zmm1, 4);
  c.vcmpph(k2 | k1, zmm0, zmm1, 6);
  jit::MachineCode code;
  const auto* bytes = reinterpret_cast<const std::byte*>(c.getCode());
  code.bytes.assign(bytes, bytes + c.getSize());
  code.instruction_bytes = static_cast<uint32_t>(code.bytes.size());
  return forms.add(code);
}

}  // namespace

Result<InstructionForms> forms_that_castor_emits() {
  InstructionForms forms;
  for (const auto& add : {add_golden, add_conversions, add_elementwise, add_rare}) {
    if (Status status = add(forms); !status) return status.error();
  }
  return forms;
}

}  // namespace castor::test
