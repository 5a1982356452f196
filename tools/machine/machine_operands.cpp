// SPDX-License-Identifier: Apache-2.0
// Operands of scalar instructions: general registers and their parts, memory, the stack.
#include "tools/machine/machine.hpp"

namespace castor::machine {

namespace {

bool is_high_byte(ZydisRegister reg) {
  return reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH;
}
size_t id_of(ZydisRegister reg) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  return static_cast<size_t>(ZydisRegisterGetId(whole));
}

}  // namespace

template <class D>
typename D::Bits Machine<D>::bits_of(const Scalar<D>& value) const {
  const bool is_unknown = slopes_of_counts_ && value.is_number() && value.word.slope != 0;
  return is_unknown ? Scalar<D>::unknown(*domain_, value.width).bits(*domain_)
                    : value.bits(*domain_);
}

template <class D>
Scalar<D> Machine<D>::read_register(ZydisRegister reg) const {
  const Scalar<D>& whole = general_[id_of(reg)];
  const int width = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg);
  if (width == 64) return whole;
  const int low = is_high_byte(reg) ? 8 : 0;
  if (whole.is_number()) {
    if (whole.word.slope != 0 && slopes_of_counts_) return Scalar<D>::unknown(*domain_, width);
    Scalar<D> part = Scalar<D>::number(width, whole.word.value >> low);
    part.word.slope = whole.word.slope;  // counts fit 32 bits where code uses these
    return part;
  }
  return Scalar<D>::of(domain_->extract(*whole.data, low, width));
}

/// 32 bits clear what is above them, 8 and 16 leave it.
template <class D>
void Machine<D>::write_register(ZydisRegister reg, const Scalar<D>& value) {
  Scalar<D>& whole = general_[id_of(reg)];
  const int width = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg);
  if (width >= 32) {
    const bool is_cut = width == 32 && value.word.slope != 0 && slopes_of_counts_;
    whole = is_cut ? Scalar<D>::unknown(*domain_, 64) : value;
    if (is_cut) return;
    if (width == 32 && value.data) whole = Scalar<D>::of(domain_->extend_zero(*value.data, 64));
    whole.width = 64;
    return;
  }
  const int low = is_high_byte(reg) ? 8 : 0;
  Bits joined = bits_of(value);
  const Bits before = bits_of(whole);
  if (low > 0) joined = domain_->concat(joined, domain_->extract(before, 0, low));
  const int end = low + width;
  whole = Scalar<D>::of(domain_->concat(domain_->extract(before, end, 64 - end), joined));
}

template <class D>
Result<Scalar<D>> Machine<D>::read_memory(const Operand& operand) {
  const Result<Address> address = indexed_address_of(operand);
  if (!address) return address.error();
  const auto count = static_cast<size_t>(operand.size / 8);
  std::array<Byte, 8> bytes;
  const auto span = std::span(bytes).first(count);
  if (Status status = load_entry(*address, span); !status) return status.error();
  const Word* word = address->index ? nullptr : memory_.stored_word(address->word);
  if (word != nullptr && count == 8) {
    return Scalar<D>{.width = 64, .word = *word, .data = std::nullopt};
  }
  return Scalar<D>::of(domain_->join(bytes.data(), static_cast<int>(count)));
}

template <class D>
Result<Scalar<D>> Machine<D>::read(const Operand& operand) {
  if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) return read_memory(operand);
  if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) return read_register(operand.reg.value);
  const int width = std::max<int>(now().instruction.operand_width, 8);
  return Scalar<D>::number(width, static_cast<uint64_t>(operand.imm.value.s));
}

template <class D>
Status Machine<D>::write(const Operand& operand, const Scalar<D>& value) {
  if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) {
    write_register(operand.reg.value, value);
    return {};
  }
  const Result<Word> address = address_of(operand);
  if (!address) return address.error();
  std::array<Byte, 8> bytes;
  domain_->split(bits_of(value), bytes.data());
  const auto span = std::span(bytes).first(static_cast<size_t>(operand.size / 8));
  if (Status status = memory_.store(*address, span); !status) return status;
  const bool grows = value.is_number() && value.word.slope != 0;
  if (grows && operand.size != 64) return unknown("part of a number that grows is stored");
  if (grows) memory_.store_word(*address, value.word);
  return {};
}

template <class D>
Status Machine<D>::push(const Scalar<D>& value) {
  constexpr size_t rsp = 4;
  general_[rsp].word.value -= 8;
  std::array<Byte, 8> bytes;
  domain_->split(bits_of(value), bytes.data());
  if (Status status = memory_.store(general_[rsp].word, bytes); !status) return status;
  if (value.is_number() && value.word.slope != 0) {
    memory_.store_word(general_[rsp].word, value.word);
  }
  return {};
}

template <class D>
Result<Scalar<D>> Machine<D>::pop() {
  constexpr size_t rsp = 4;
  std::array<Byte, 8> bytes;
  Status status = memory_.load(*domain_, general_[rsp].word, bytes);
  if (!status) return status.error();
  const Word* word = memory_.stored_word(general_[rsp].word);
  general_[rsp].word.value += 8;
  if (word != nullptr) return Scalar<D>{.width = 64, .word = *word, .data = std::nullopt};
  return Scalar<D>::of(domain_->join(bytes.data(), 8));
}

template Numbers::Bits Machine<Numbers>::bits_of(const Scalar<Numbers>&) const;
template Symbols::Bits Machine<Symbols>::bits_of(const Scalar<Symbols>&) const;
template Status Machine<Numbers>::push(const Scalar<Numbers>&);
template Status Machine<Symbols>::push(const Scalar<Symbols>&);
template Result<Scalar<Numbers>> Machine<Numbers>::pop();
template Result<Scalar<Symbols>> Machine<Symbols>::pop();
template Result<Scalar<Numbers>> Machine<Numbers>::read(const Operand&);
template Result<Scalar<Symbols>> Machine<Symbols>::read(const Operand&);
template Status Machine<Numbers>::write(const Operand&, const Scalar<Numbers>&);
template Status Machine<Symbols>::write(const Operand&, const Scalar<Symbols>&);
template Scalar<Numbers> Machine<Numbers>::read_register(ZydisRegister) const;
template Scalar<Symbols> Machine<Symbols>::read_register(ZydisRegister) const;
template void Machine<Numbers>::write_register(ZydisRegister, const Scalar<Numbers>&);
template void Machine<Symbols>::write_register(ZydisRegister, const Scalar<Symbols>&);

}  // namespace castor::machine
