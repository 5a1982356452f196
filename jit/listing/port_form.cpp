// SPDX-License-Identifier: Apache-2.0
#include "jit/listing/port_form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

namespace castor::jit {
namespace {

OperandForm form_of(const DecodedInstruction& decoded) {
  OperandForm form;
  form.under_mask = decoded.instruction.avx.mask.mode == ZYDIS_MASK_MODE_MERGING ||
                    decoded.instruction.avx.mask.mode == ZYDIS_MASK_MODE_ZEROING;
  for (const ZydisDecodedOperand& operand : decoded.written_operands()) {
    if (touches_memory(decoded, operand)) {
      form.memory = true;
      if (&operand == decoded.operands.data()) form.memory_destination = true;
    }
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
    switch (ZydisRegisterGetClass(operand.reg.value)) {
      case ZYDIS_REGCLASS_ZMM: form.wide = true; [[fallthrough]];
      case ZYDIS_REGCLASS_YMM:
      case ZYDIS_REGCLASS_XMM: form.vector = true; break;
      case ZYDIS_REGCLASS_MASK:
        (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? form.mask_destination
                                                           : form.mask_source) = true;
        break;
      default:
        form.gpr = true;
        if (&operand == decoded.operands.data()) form.gpr_destination = true;
    }
  }
  const std::string_view name = decoded.mnemonic();
  if (name.starts_with('k') && name.ends_with('q')) form.wide = true;
  return form;
}

/// x op x without a mask, in registers: the rename stage delivers zero.
bool is_zeroing(const PortRow& row, const DecodedInstruction& decoded, const OperandForm& form) {
  if (!row.zeroes_itself || form.under_mask || form.memory) return false;
  const auto operands = decoded.written_operands();
  const auto& x = operands[operands.size() - 2];
  const auto& y = operands.back();
  return x.type == ZYDIS_OPERAND_TYPE_REGISTER && y.type == ZYDIS_OPERAND_TYPE_REGISTER &&
         x.reg.value == y.reg.value;
}

/// The first of the classes that is given, else that of the row.
Cost first_given(const PortRow& row, std::initializer_list<Cost> special) {
  for (const Cost cost : special) {
    if (cost != Cost::same) return cost;
  }
  return row.cost;
}

Cost cost_of(const PortRow& row, const DecodedInstruction& decoded, const OperandForm& form) {
  const auto given = [](bool applies, Cost cost) { return applies ? cost : Cost::same; };
  if (is_zeroing(row, decoded, form)) return Cost::none;
  if (form.memory_destination && row.to_memory != Cost::same) return row.to_memory;
  if (form.memory && (row.with_memory != Cost::same || row.load_to_mask != Cost::same)) {
    return first_given(row, {given(form.mask_destination, row.load_to_mask), row.with_memory});
  }
  if (form.gpr && row.with_gpr != Cost::same) {
    return first_given(row, {given(form.mask_destination, row.gpr_to_mask),
                             given(form.gpr_destination, row.to_gpr), row.with_gpr});
  }
  if (form.mask_destination) return first_given(row, {row.to_mask});
  if (form.under_mask && !form.memory) return first_given(row, {row.under_mask});
  return row.cost;
}

}  // namespace

Weighed weigh(const DecodedInstruction& decoded) {
  Weighed weighed{.row = port_row(decoded.mnemonic()), .form = form_of(decoded)};
  if (weighed.row != nullptr) weighed.cost = cost_of(*weighed.row, decoded, weighed.form);
  return weighed;
}

Error no_cost(const DecodedInstruction& decoded, const OperandForm& form) {
  return {ErrorCode::internal,
          fmt::format("the port model has no cost for {}{} at offset {:#x}", decoded.mnemonic(),
                      form.memory ? " with a memory operand" : "", decoded.offset)};
}

Result<CostRow::Form> instruction_cost(const DecodedInstruction& decoded, PortModel model) {
  const Weighed weighed = weigh(decoded);
  const CostRow::Form& cost = cost_row(port_core(model), weighed.cost).form(weighed.form.wide);
  if (!cost.is_measured) return no_cost(decoded, weighed.form);
  return cost;
}

namespace {

Result<DecodedInstruction> instruction_at(const MachineCode& code, uint32_t offset) {
  auto program = decode(code);
  if (!program) return program.error();
  const auto at = std::ranges::lower_bound(*program, offset, {}, &DecodedInstruction::offset);
  if (at != program->end() && at->offset == offset) return *at;
  return Error{ErrorCode::internal, fmt::format("no instruction begins at {:#x}", offset)};
}

}  // namespace

Result<double> latency_at(const MachineCode& code, uint32_t offset, PortModel model) {
  const auto decoded = instruction_at(code, offset);
  if (!decoded) return decoded.error();
  const auto cost = instruction_cost(*decoded, model);
  if (!cost) return cost.error();
  return cost->latency;
}

Result<Cost> cost_class_at(const MachineCode& code, uint32_t offset) {
  const auto decoded = instruction_at(code, offset);
  if (!decoded) return decoded.error();
  const Weighed weighed = weigh(*decoded);
  if (weighed.cost == Cost::unmeasured) return no_cost(*decoded, weighed.form);
  return weighed.cost;
}

}  // namespace castor::jit
