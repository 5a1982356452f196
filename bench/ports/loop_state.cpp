// SPDX-License-Identifier: Apache-2.0
#include "bench/ports/loop_state.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace castor::bench {

namespace {

using jit::DecodedInstruction;

constexpr int64_t return_bytes = 8;  // that a call pushes
const int rsp_number = ZydisRegisterGetId(ZYDIS_REGISTER_RSP);
constexpr LoopSource constants = {.reg = -1};  // an address in the pool, which is known

/// The number of a general register of any width; nothing for other registers.
std::optional<int> general_register(ZydisRegister reg) {
  switch (ZydisRegisterGetClass(reg)) {
    case ZYDIS_REGCLASS_GPR8:
    case ZYDIS_REGCLASS_GPR16:
    case ZYDIS_REGCLASS_GPR32:
    case ZYDIS_REGCLASS_GPR64:
      return ZydisRegisterGetId(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg));
    default: return std::nullopt;
  }
}

bool is_register(const ZydisDecodedOperand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_REGISTER;
}

/// The number of the general register that an instruction writes, if it writes one.
std::optional<int> written_register(const DecodedInstruction& decoded) {
  const auto operands = decoded.written_operands();
  if (operands.empty() || !is_register(operands[0])) return std::nullopt;
  if ((operands[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) return std::nullopt;
  return general_register(operands[0].reg.value);
}

bool is_memory(const ZydisDecodedOperand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_MEMORY;
}

/// Follows the values of general registers as sums of what the loop found when it began.
class Reader {
 public:
  explicit Reader(std::span<const DecodedInstruction> body) {
    is_carried_.fill(true);
    for (const DecodedInstruction& decoded : body) note_carried(decoded);
    for (size_t i = 0; i < general_registers; ++i) values_[i] = {{.reg = static_cast<int>(i)}};
    needs_.pointers.insert({.reg = rsp_number});
  }
  Status read(const DecodedInstruction& decoded);
  Status read_end(std::span<const DecodedInstruction> body);
  LoopNeeds take() { return std::move(needs_); }

 private:
  /// Empty: a number.
  using Sum = std::vector<LoopSource>;  ///< a slot, else what comes last, is the likely pointer

  void note_carried(const DecodedInstruction& decoded);
  Status need_pointer(const DecodedInstruction& decoded, ZydisRegister base);
  Sum sum_of(const ZydisDecodedOperand& operand);
  std::optional<LoopSource> slot_of(const ZydisDecodedOperand& memory) const;
  void write(const DecodedInstruction& decoded);
  void read_table(const ZydisDecodedOperand& memory, std::set<LoopSource>& tables) const;
  void read_masks(const DecodedInstruction& decoded);
  void count_step(const DecodedInstruction& decoded);
  Status read_limit(const DecodedInstruction& test, const DecodedInstruction& last);
  /// What the register itself holds at the beginning.
  static LoopSource own_of(ZydisRegister reg) { return {.reg = *general_register(reg)}; }
  Sum& value(ZydisRegister reg) { return values_[static_cast<size_t>(*general_register(reg))]; }

  std::array<Sum, general_registers> values_;
  std::array<bool, general_registers> is_carried_{};     ///< not written but by additions
  std::map<ZydisRegister, ZydisDecodedOperand> loaded_;  ///< registers, from where
  int64_t pushed_ = 0;                                   ///< bytes of calls on the stack
  LoopNeeds needs_;
};

/// A register to which an iteration adds is carried into the next one: what is added is a number.
void Reader::note_carried(const DecodedInstruction& decoded) {
  const auto number = written_register(decoded);
  if (!number) return;
  const auto mnemonic = decoded.instruction.mnemonic;
  const bool adds = mnemonic == ZYDIS_MNEMONIC_ADD || mnemonic == ZYDIS_MNEMONIC_SUB ||
                    mnemonic == ZYDIS_MNEMONIC_INC || mnemonic == ZYDIS_MNEMONIC_DEC;
  if (!adds) is_carried_[static_cast<size_t>(*number)] = false;
}

Status Reader::need_pointer(const DecodedInstruction& decoded, ZydisRegister base) {
  const auto number = general_register(base);
  if (!number) return {};  // relative to rip, or an address that is a number
  const Sum& sum = values_[static_cast<size_t>(*number)];
  for (const LoopSource& source : sum) {
    if (source == constants || needs_.pointers.contains(source)) return {};
  }
  if (sum.empty()) {
    return Error{ErrorCode::unsupported,
                 fmt::format("the address that {} uses at {:#x} is computed", decoded.mnemonic(),
                             decoded.offset)};
  }
  if (is_carried_[static_cast<size_t>(*number)]) {
    needs_.pointers.insert(sum.back());
    return {};
  }
  const auto slot =
      std::ranges::find_if(sum, [](const LoopSource& each) { return each.slot.has_value(); });
  needs_.pointers.insert(slot != sum.end() ? *slot : sum.back());
  return {};
}

/// A slot whose address changes by steps at most: no index, a register as it was found.
std::optional<LoopSource> Reader::slot_of(const ZydisDecodedOperand& memory) const {
  const auto base = general_register(memory.mem.base);
  if (!base || memory.mem.index != ZYDIS_REGISTER_NONE || memory.size != 64) return std::nullopt;
  const Sum& sum = values_[static_cast<size_t>(*base)];
  if (sum.size() != 1 || sum[0].slot || sum[0] == constants) return std::nullopt;
  const int64_t pushed = sum[0].reg == rsp_number ? pushed_ : 0;
  return LoopSource{.reg = sum[0].reg, .slot = memory.mem.disp.value - pushed};
}

Reader::Sum Reader::sum_of(const ZydisDecodedOperand& operand) {
  if (is_register(operand)) {
    return general_register(operand.reg.value) ? value(operand.reg.value) : Sum();
  }
  if (!is_memory(operand)) return {};
  const auto slot = slot_of(operand);
  if (!slot) return {};
  needs_.sources.insert(*slot);
  return {*slot};
}

void Reader::write(const DecodedInstruction& decoded) {
  if (!written_register(decoded)) return;
  const auto operands = decoded.written_operands();
  Sum& result = value(operands[0].reg.value);
  switch (decoded.instruction.mnemonic) {
    case ZYDIS_MNEMONIC_MOV: result = sum_of(operands[1]); return;
    case ZYDIS_MNEMONIC_MOVSXD:
      if (is_memory(operands[1])) read_table(operands[1], needs_.offsets);
      result.clear();
      return;
    case ZYDIS_MNEMONIC_ADD: {
      const Sum added = sum_of(operands[1]);
      const bool goes_on = !result.empty() && result.back() == own_of(operands[0].reg.value);
      result.insert(goes_on ? result.begin() : result.end(), added.begin(), added.end());
      return;
    }
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_INC:
    case ZYDIS_MNEMONIC_DEC: return;
    case ZYDIS_MNEMONIC_CMOVZ:  // another address, or the one that is there
      for (const LoopSource& other : sum_of(operands[1])) needs_.pointers.insert(other);
      return;
    case ZYDIS_MNEMONIC_LEA: {
      const auto& memory = operands[1].mem;
      Sum made;
      if (memory.base == ZYDIS_REGISTER_RIP) made.push_back(constants);
      for (const ZydisRegister reg : {memory.index, memory.base}) {
        const bool is_scaled = reg == memory.index && memory.scale > 1;  // so it is no pointer
        if (!general_register(reg) || is_scaled) continue;
        const Sum& part = value(reg);
        made.insert(made.end(), part.begin(), part.end());
      }
      result = made;
      return;
    }
    default: result.clear();
  }
}

/// Adds the pointer to a table that is loaded from, which need_pointer has found.
void Reader::read_table(const ZydisDecodedOperand& memory, std::set<LoopSource>& tables) const {
  const auto base = general_register(memory.mem.base);
  if (!base) return;
  for (const LoopSource& source : values_[static_cast<size_t>(*base)]) {
    if (needs_.pointers.contains(source)) tables.insert(source);
  }
}

void Reader::count_step(const DecodedInstruction& decoded) {
  const auto number = written_register(decoded);
  if (!number) return;
  const auto operands = decoded.written_operands();
  int64_t& step = needs_.steps[static_cast<size_t>(*number)];
  const bool by_constant = operands.size() > 1 && operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
  switch (decoded.instruction.mnemonic) {
    case ZYDIS_MNEMONIC_INC: step += 1; return;
    case ZYDIS_MNEMONIC_DEC: step -= 1; return;
    case ZYDIS_MNEMONIC_ADD: step += by_constant ? operands[1].imm.value.s : 0; return;
    case ZYDIS_MNEMONIC_SUB: step -= by_constant ? operands[1].imm.value.s : 0; return;
    default: return;
  }
}

/// A mask comes from a table: by kmov, by way of a general register, for which movzx and and are
/// taken, or as the vector that vpmaskmovd takes.
void Reader::read_masks(const DecodedInstruction& decoded) {
  const auto operands = decoded.written_operands();
  const std::string_view name = decoded.mnemonic();
  const bool takes_bits = name.starts_with("kmov") || name == "movzx" || name == "and";
  if (takes_bits && is_memory(operands[1])) read_table(operands[1], needs_.masks);
  if (operands.size() == 2 && is_register(operands[0]) && is_memory(operands[1])) {
    loaded_[operands[0].reg.value] = operands[1];
  }
  if (!name.starts_with("vpmaskmov") && !name.starts_with("vmaskmov")) return;
  const auto mask = loaded_.find(operands[1].reg.value);
  if (mask != loaded_.end()) read_table(mask->second, needs_.masks);
}

Status Reader::read(const DecodedInstruction& decoded) {
  const auto category = decoded.instruction.meta.category;
  if (category == ZYDIS_CATEGORY_CALL) pushed_ += return_bytes;
  if (category == ZYDIS_CATEGORY_RET) pushed_ -= return_bytes;
  count_step(decoded);
  for (const ZydisDecodedOperand& operand : decoded.written_operands()) {
    if (!touches_memory(decoded, operand)) continue;
    if (Status status = need_pointer(decoded, operand.mem.base); !status) return status;
    sum_of(operand);
  }
  read_masks(decoded);
  write(decoded);
  return {};
}

Error unknown_end(const DecodedInstruction& last) {
  return {ErrorCode::unsupported, fmt::format("the loop ends with {} at {:#x}, expected a count",
                                              last.mnemonic(), last.offset)};
}

/// `cmp counter, limit` and a jump.
Status Reader::read_limit(const DecodedInstruction& test, const DecodedInstruction& last) {
  const auto branch = last.instruction.mnemonic;
  constexpr std::array supported = {ZYDIS_MNEMONIC_JL, ZYDIS_MNEMONIC_JLE, ZYDIS_MNEMONIC_JB};
  if (std::ranges::find(supported, branch) == supported.end()) return unknown_end(last);
  const Sum limit = sum_of(test.written_operands()[1]);
  if (limit.size() != 1 || needs_.pointers.contains(limit[0])) return unknown_end(last);
  needs_.limit = limit[0];
  needs_.end_is_included = branch == ZYDIS_MNEMONIC_JLE;
  return {};
}

Status Reader::read_end(std::span<const DecodedInstruction> body) {
  const DecodedInstruction& last = body.back();
  if (body.size() < 2) return unknown_end(last);
  const DecodedInstruction& test = body[body.size() - 2];
  const auto operands = test.written_operands();
  if (operands.empty() || !is_register(operands[0])) return unknown_end(last);
  const auto counter = general_register(operands[0].reg.value);
  if (!counter) return unknown_end(last);
  needs_.counter = *counter;
  const int64_t step = needs_.steps[static_cast<size_t>(*counter)];
  const bool is_pointer = needs_.pointers.contains({.reg = *counter});
  const auto branch = last.instruction.mnemonic;
  if (is_pointer && test.instruction.mnemonic != ZYDIS_MNEMONIC_CMP) return unknown_end(last);
  switch (test.instruction.mnemonic) {
    case ZYDIS_MNEMONIC_CMP: return step > 0 ? read_limit(test, last) : Status(unknown_end(last));
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_DEC:
      needs_.end_is_included = branch == ZYDIS_MNEMONIC_JNL;
      if (step == 0 || (needs_.end_is_included && step > 0)) break;
      if (branch == ZYDIS_MNEMONIC_JNZ || branch == ZYDIS_MNEMONIC_JNL) return {};
      break;
    default: break;
  }
  return unknown_end(last);
}

}  // namespace

Result<LoopNeeds> loop_needs(std::span<const DecodedInstruction> body) {
  if (body.empty()) return Error{ErrorCode::unsupported, "the loop is empty"};
  Reader reader(body);
  for (const DecodedInstruction& decoded : body) {
    if (Status status = reader.read(decoded); !status) return status.error();
  }
  if (Status status = reader.read_end(body); !status) return status.error();
  return reader.take();
}

}  // namespace castor::bench
