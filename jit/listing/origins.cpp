// SPDX-License-Identifier: Apache-2.0
#include "jit/listing/origins.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "jit/listing/decoder.hpp"

namespace castor::jit {

namespace {

/// Whether the operand is a vector or tile register.
bool is_vector(const ZydisDecodedOperand& operand) {
  if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) return false;
  switch (ZydisRegisterGetClass(operand.reg.value)) {
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM:
    case ZYDIS_REGCLASS_TMM: return true;
    default: return false;
  }
}

/// Sections that save, count or compare, in general registers and masks alone.
bool has_vectors(CodeSection section) {
  switch (section) {
    case CodeSection::entry:
    case CodeSection::exit:
    case CodeSection::float_state:
    case CodeSection::output_address:
    case CodeSection::axis_step:
    case CodeSection::next_row: return false;
    default: return info(section).kind != SectionKind::control;
  }
}

/// Why the instruction cannot be of the section; empty where it can.
std::string_view objection(const DecodedInstruction& decoded, CodeSection section) {
  if (section == CodeSection::none) return "of no section";
  if (!has_vectors(section) && std::ranges::any_of(decoded.written_operands(), is_vector)) {
    return "on vectors, which the section has none of";
  }
  const bool returns = decoded.instruction.mnemonic == ZYDIS_MNEMONIC_RET;
  const bool may_return = section == CodeSection::exit || section == CodeSection::epilogue;
  return returns && !may_return ? "which returns outside of an exit" : "";
}

/// The last note that begins at the offset or before; -1: none.
int64_t note_at(const std::vector<CodeNote>& notes, uint32_t offset) {
  const auto after = std::ranges::upper_bound(notes, offset, {}, &CodeNote::offset);
  return after - notes.begin() - 1;
}

}  // namespace

Result<std::vector<size_t>> origins(const MachineCode& code) {
  const auto program = decode(code);
  if (!program) return program.error();
  std::vector<size_t> found;
  found.reserve(program->size());
  for (const DecodedInstruction& decoded : *program) {
    const int64_t index = note_at(code.notes, decoded.offset);
    const CodeNote note = index < 0 ? CodeNote() : code.notes[static_cast<size_t>(index)];
    const std::string_view wrong = objection(decoded, note.section);
    if (!wrong.empty()) {
      return Error{ErrorCode::internal,
                   fmt::format("{} at {:#x}, {}: section '{}'", decoded.mnemonic(), decoded.offset,
                               wrong, text_of(note.section, note.number))};
    }
    found.push_back(static_cast<size_t>(index));
  }
  return found;
}

}  // namespace castor::jit
