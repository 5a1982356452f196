// SPDX-License-Identifier: Apache-2.0
// Whether the caller's frame is where a kernel's notes on its frame say, at every instruction: the
// general registers and the stack are followed as symbols along all paths.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "jit/listing/decoder.hpp"
#include "jit/listing/listing.hpp"

namespace castor::jit {
namespace {

constexpr int register_count = 16;
constexpr int rsp = 4;
/// What a function must leave as it was: rbx, rbp, r12 to r15.
constexpr std::array<int, 6> callers_registers = {3, 5, 12, 13, 14, 15};

/// DWARF's numbers by those of instructions: its table, and not what the emitters use.
constexpr std::array<uint8_t, register_count> dwarf_numbers = {0, 2, 1,  3,  7,  6,  4,  5,
                                                               8, 9, 10, 11, 12, 13, 14, 15};

/// What is known of 64 bits.
struct Symbol {
  enum class Base : uint8_t {
    unknown,
    entry,    ///< the stack pointer at the first instruction, + offset
    aligned,  ///< the stack pointer where it was aligned, + offset
    callers,  ///< what register number `offset` held at the first instruction
  };
  Base base = Base::unknown;
  int64_t offset = 0;

  bool is_address() const { return base == Base::entry || base == Base::aligned; }
  Symbol plus(int64_t bytes) const {
    return is_address() ? Symbol{base, offset + bytes} : Symbol{};
  }
  friend auto operator<=>(const Symbol&, const Symbol&) = default;
};

constexpr Symbol cfa = {Symbol::Base::entry, 8};
constexpr Symbol callers(int reg) { return {Symbol::Base::callers, reg}; }

struct State {
  std::array<Symbol, register_count> registers;
  std::map<Symbol, Symbol> stack;  ///< 64 bits by their address

  Symbol load(const Symbol& address) const {
    const auto found = stack.find(address);
    return address.is_address() && found != stack.end() ? found->second : Symbol{};
  }
  /// Whatever is written there overwrites what was known of these bytes.
  void store(const Symbol& address, int64_t bytes, const Symbol& value) {
    if (!address.is_address()) return;
    std::erase_if(stack, [&](const auto& slot) {
      return slot.first.base == address.base && slot.first.offset < address.offset + bytes &&
             address.offset < slot.first.offset + 8;
    });
    if (bytes == 8 && value.base != Symbol::Base::unknown) stack[address] = value;
  }
  /// Keeps what both know; tells whether that is less than before.
  bool meet(const State& other) {
    const State before = *this;
    for (size_t i = 0; i < registers.size(); ++i) {
      if (registers[i] != other.registers[i]) registers[i] = {};
    }
    std::erase_if(stack, [&](const auto& slot) { return other.load(slot.first) != slot.second; });
    return registers != before.registers || stack != before.stack;
  }
};

std::optional<size_t> general_register(ZydisRegister reg) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64) return std::nullopt;
  return static_cast<size_t>(ZydisRegisterGetId(whole));
}

std::optional<size_t> general_register(const ZydisDecodedOperand& operand) {
  if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) return std::nullopt;
  return general_register(operand.reg.value);
}

bool is_written(const ZydisDecodedOperand& operand) {
  return (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
}

/// Goes along the code. The rules are those of the instructions that move addresses of the stack;
/// of all others what they write is unknown.
class Follower {
 public:
  explicit Follower(std::span<const DecodedInstruction> program) : program_(program) {}

  /// The states before each instruction that is reached, by offset.
  Result<std::map<uint32_t, State>> follow() {
    State entry;
    entry.registers[rsp] = {Symbol::Base::entry, 0};
    for (const int reg : callers_registers) {
      entry.registers[static_cast<size_t>(reg)] = callers(reg);
    }
    reach(0, entry);
    while (!open_.empty()) {
      const uint32_t offset = open_.back();
      open_.pop_back();
      const auto at = std::ranges::lower_bound(program_, offset, {}, &DecodedInstruction::offset);
      if (at == program_.end()) return error_at(offset, "the code goes on after its end");
      if (Status status = step(*at); !status) return status.error();
    }
    return std::move(states_);
  }

 private:
  static Error error_at(uint32_t offset, std::string_view what) {
    return {ErrorCode::internal, fmt::format("offset {:#x}: {}", offset, what)};
  }

  void reach(uint32_t offset, const State& state) {
    const auto [known, is_new] = states_.try_emplace(offset, state);
    if (is_new || known->second.meet(state)) open_.push_back(offset);
  }

  Status step(const DecodedInstruction& decoded) {
    const State before = states_.at(decoded.offset);
    if (!before.registers[rsp].is_address()) {
      return error_at(decoded.offset, "the stack pointer is unknown");
    }
    if (decoded.instruction.meta.category == ZYDIS_CATEGORY_RET)
      return check_return(decoded, before);
    State after = before;
    apply(decoded, after);
    const auto target = branch_target(decoded);
    if (decoded.instruction.meta.category == ZYDIS_CATEGORY_CALL) {
      if (target) {
        State routine = before;
        routine.registers[rsp] = before.registers[rsp].plus(-8);
        routine.store(routine.registers[rsp], 8, {});
        reach(*target, routine);
      }
      reach(decoded.end(), before);  // routines leave addresses of the stack as they are
      return {};
    }
    if (target) reach(*target, after);
    if (decoded.instruction.meta.category != ZYDIS_CATEGORY_UNCOND_BR) reach(decoded.end(), after);
    return {};
  }

  /// A return of the kernel itself, or of a routine within it.
  static Status check_return(const DecodedInstruction& decoded, const State& state) {
    if (state.registers[rsp] != Symbol{Symbol::Base::entry, 0}) return {};
    for (const int reg : callers_registers) {
      if (state.registers[static_cast<size_t>(reg)] != callers(reg)) {
        return error_at(decoded.offset, fmt::format("register {} is not the caller's", reg));
      }
    }
    return {};
  }

  static Symbol address_of(const ZydisDecodedOperand& operand, const State& state) {
    if (operand.mem.index != ZYDIS_REGISTER_NONE) return {};
    const auto base = general_register(operand.mem.base);
    return base ? state.registers[*base].plus(operand.mem.disp.value) : Symbol{};
  }

  static void apply(const DecodedInstruction& decoded, State& state) {
    const auto operands = decoded.written_operands();
    Symbol& stack = state.registers[rsp];
    switch (decoded.instruction.mnemonic) {
      case ZYDIS_MNEMONIC_PUSH:
        stack = stack.plus(-8);
        return state.store(stack, 8, state.registers[general_register(operands[0]).value()]);
      case ZYDIS_MNEMONIC_POP: {
        const Symbol value = state.load(stack);
        stack = stack.plus(8);
        state.registers[general_register(operands[0]).value()] = value;
        return;
      }
      case ZYDIS_MNEMONIC_MOV: return apply_mov(operands, state);
      case ZYDIS_MNEMONIC_LEA:
        state.registers[general_register(operands[0]).value()] = address_of(operands[1], state);
        return;
      case ZYDIS_MNEMONIC_ADD:
      case ZYDIS_MNEMONIC_SUB: {
        const auto to = general_register(operands[0]);
        if (!to || operands[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) break;
        const int64_t number = operands[1].imm.value.s;
        const bool adds = decoded.instruction.mnemonic == ZYDIS_MNEMONIC_ADD;
        state.registers[*to] = state.registers[*to].plus(adds ? number : -number);
        return;
      }
      case ZYDIS_MNEMONIC_AND:
        if (general_register(operands[0]) == rsp) {
          stack = {Symbol::Base::aligned, 0};
          return;
        }
        break;
      default: break;
    }
    forget_written(decoded, state);
  }

  static void apply_mov(std::span<const ZydisDecodedOperand> operands, State& state) {
    const auto to = general_register(operands[0]);
    const auto from = general_register(operands[1]);
    const bool is_whole = operands[0].size == 64;
    if (to) {
      Symbol value;
      if (is_whole && from) value = state.registers[*from];
      if (is_whole && operands[1].type == ZYDIS_OPERAND_TYPE_MEMORY) {
        value = state.load(address_of(operands[1], state));
      }
      state.registers[*to] = value;
    } else if (operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY) {
      const Symbol value = is_whole && from ? state.registers[*from] : Symbol{};
      state.store(address_of(operands[0], state), operands[0].size / 8, value);
    }
  }

  static void forget_written(const DecodedInstruction& decoded, State& state) {
    for (const ZydisDecodedOperand& operand : decoded.all_operands()) {
      if (!is_written(operand)) continue;
      if (const auto reg = general_register(operand)) state.registers[*reg] = {};
      if (touches_memory(decoded, operand)) {
        state.store(address_of(operand, state), operand.size / 8, {});
      }
    }
  }

  std::span<const DecodedInstruction> program_;
  std::map<uint32_t, State> states_;
  std::vector<uint32_t> open_;
};

/// How the notes find the caller's frame, change by change.
struct Rules {
  FrameChange cfa = {.reg = dwarf_numbers[rsp], .value = 8};
  std::map<uint8_t, int32_t> saved;  ///< by DWARF's number

  void apply(const FrameChange& change) {
    using enum FrameChange::Kind;
    switch (change.kind) {
      case cfa_register:
      case cfa_memory: cfa = change; return;
      case saved: this->saved[change.reg] = change.value; return;
      case restored: this->saved.erase(change.reg); return;
    }
  }

  Symbol found_cfa(const State& state) const {
    if (cfa.kind == FrameChange::Kind::cfa_memory) {
      return state.load(state.registers[rsp].plus(cfa.slot)).plus(cfa.value);
    }
    const auto reg = std::ranges::find(dwarf_numbers, cfa.reg) - dwarf_numbers.begin();
    return state.registers[static_cast<size_t>(reg)].plus(cfa.value);
  }
  Symbol found(int reg, const State& state) const {
    const auto index = static_cast<size_t>(reg);
    const auto at = saved.find(dwarf_numbers[index]);
    return at == saved.end() ? state.registers[index] : state.load(jit::cfa.plus(at->second));
  }
};

Status check(const Rules& rules, const State& state, const DecodedInstruction& decoded) {
  const auto wrong = [&](std::string_view what) {
    return Error{ErrorCode::internal,
                 fmt::format("unwinding from {} at offset {:#x} does not find {}",
                             decoded.mnemonic(), decoded.offset, what)};
  };
  if (rules.found_cfa(state) != cfa) return wrong("the frame of the caller");
  for (const int reg : callers_registers) {
    if (rules.found(reg, state) != callers(reg)) {
      return wrong(fmt::format("the caller's register {}", reg));
    }
  }
  return {};
}

}  // namespace

Status check_unwinding(const MachineCode& code) {
  const auto program = decode(code);
  if (!program) return program.error();
  const auto states = Follower(*program).follow();
  if (!states) return states.error();
  Rules rules;
  auto change = code.frame.begin();
  for (const DecodedInstruction& decoded : *program) {
    for (; change != code.frame.end() && change->offset <= decoded.offset; ++change) {
      rules.apply(*change);
    }
    const auto state = states->find(decoded.offset);
    if (state == states->end()) continue;  // padding
    if (Status status = check(rules, state->second, decoded); !status) return status;
  }
  return {};
}

}  // namespace castor::jit
