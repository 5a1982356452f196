// SPDX-License-Identifier: Apache-2.0
// Jumps, calls, returns and conditional moves, by flags that are known.
#include "tools/machine/machine.hpp"

namespace castor::machine {

namespace {

/// The condition of a jump or a conditional move, by flags; nothing where they are not known.
std::optional<bool> condition(ZydisMnemonic mnemonic, const Flags& flags) {
  const auto opposite = [](std::optional<bool> value) -> std::optional<bool> {
    if (!value) return std::nullopt;
    return !*value;
  };
  const auto either = [](std::optional<bool> a, std::optional<bool> b) -> std::optional<bool> {
    if (!a || !b) return std::nullopt;
    return *a || *b;
  };
  std::optional<bool> less;
  if (flags.sign && flags.overflow) less = *flags.sign != *flags.overflow;
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_JZ:
    case ZYDIS_MNEMONIC_CMOVZ: return flags.zero;
    case ZYDIS_MNEMONIC_JNZ:
    case ZYDIS_MNEMONIC_CMOVNZ: return opposite(flags.zero);
    case ZYDIS_MNEMONIC_JS:
    case ZYDIS_MNEMONIC_CMOVS: return flags.sign;
    case ZYDIS_MNEMONIC_JNS:
    case ZYDIS_MNEMONIC_CMOVNS: return opposite(flags.sign);
    case ZYDIS_MNEMONIC_JB:
    case ZYDIS_MNEMONIC_CMOVB: return flags.carry;
    case ZYDIS_MNEMONIC_JNB:
    case ZYDIS_MNEMONIC_CMOVNB: return opposite(flags.carry);
    case ZYDIS_MNEMONIC_JBE:
    case ZYDIS_MNEMONIC_CMOVBE: return either(flags.carry, flags.zero);
    case ZYDIS_MNEMONIC_JNBE:
    case ZYDIS_MNEMONIC_CMOVNBE: return opposite(either(flags.carry, flags.zero));
    case ZYDIS_MNEMONIC_JL:
    case ZYDIS_MNEMONIC_CMOVL: return less;
    case ZYDIS_MNEMONIC_JNL:
    case ZYDIS_MNEMONIC_CMOVNL: return opposite(less);
    case ZYDIS_MNEMONIC_JLE:
    case ZYDIS_MNEMONIC_CMOVLE: return either(less, flags.zero);
    case ZYDIS_MNEMONIC_JNLE:
    case ZYDIS_MNEMONIC_CMOVNLE: return opposite(either(less, flags.zero));
    default: return std::nullopt;
  }
}

}  // namespace

template <class D>
Status Machine<D>::branch() {
  const ZydisMnemonic mnemonic = now().instruction.mnemonic;
  const std::optional<bool> taken =
      mnemonic == ZYDIS_MNEMONIC_JMP ? true : condition(mnemonic, flags_);
  if (!taken) return unknown("the condition depends on data or on the index");
  const auto target = jit::branch_target(now());
  if (!target) return unknown("no target");
  if (*taken) jump(*target);
  return {};
}

template <class D>
Status Machine<D>::call() {
  const auto target = jit::branch_target(now());
  if (!target) return unknown("no target");
  if (Status status = push(Scalar<D>::number(64, code_base_ + now().end())); !status) return status;
  jump(*target);
  return {};
}

template <class D>
Status Machine<D>::return_() {
  const auto address = pop();
  if (!address) return address.error();
  if (!address->is_constant()) return unknown("the return address is overwritten");
  const uint64_t offset = address->word.value - code_base_;
  if (offset < program_.back().end()) {
    jump(static_cast<uint32_t>(offset));
    return {};
  }
  is_done_ = true;
  return {};
}

template <class D>
Status Machine<D>::conditional_move() {
  const auto& operands = now().operands;
  const auto taken = condition(now().instruction.mnemonic, flags_);
  if (!taken) return unknown("the condition depends on data or on the index");
  const auto value = read(operands[*taken ? 1 : 0]);
  if (!value) return value.error();
  return write(operands[0], *value);
}

template Status Machine<Numbers>::branch();
template Status Machine<Symbols>::branch();
template Status Machine<Numbers>::call();
template Status Machine<Symbols>::call();
template Status Machine<Numbers>::return_();
template Status Machine<Symbols>::return_();
template Status Machine<Numbers>::conditional_move();
template Status Machine<Symbols>::conditional_move();

}  // namespace castor::machine
