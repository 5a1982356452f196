// SPDX-License-Identifier: Apache-2.0
// A signal's frame and the memory of the process, as a state of machine::Stepper.
#pragma once

#include <cstring>

#include "ir/support/result.hpp"
#include "tools/emulator/signal_frame.hpp"
#include "tools/machine/meaning.hpp"

namespace castor::emulator {

class FrameState {
 public:
  using Domain = machine::Numbers;
  using Bits = machine::Number;

  FrameState(SignalFrame& frame, int instruction_bytes)
      : frame_(frame), instruction_bytes_(instruction_bytes) {}

  Domain& domain() { return domain_; }
  /// MXCSR's bits 13 and 14.
  machine::Rounding rounding() const {
    using enum machine::Rounding;
    constexpr machine::Rounding modes[] = {nearest_even, down, up, toward_zero};
    return modes[frame_.mxcsr() >> 13 & 3];
  }

  machine::Vector<Domain> vector(int index) const { return frame_.zmm(index); }
  void set_vector(int index, const machine::Vector<Domain>& value) { frame_.set_zmm(index, value); }
  machine::Mask<Domain> mask(int index) const {
    machine::Mask<Domain> mask;
    const uint64_t bits = frame_.opmask(index);
    for (size_t i = 0; i < mask.size(); ++i) mask[i] = {bits >> i & 1, 1};
    return mask;
  }
  void set_mask(int index, const machine::Mask<Domain>& mask) {
    uint64_t bits = 0;
    for (size_t i = 0; i < mask.size(); ++i) bits |= mask[i].value << i;
    frame_.set_opmask(index, bits);
  }
  Bits general(ZydisRegister reg) const {
    const int width = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg);
    return Domain::constant(width, frame_.general(ZydisRegisterGetId(reg)));
  }
  Status set_general(ZydisRegister reg, Bits value) {
    frame_.set_general(ZydisRegisterGetId(reg), value.value);
    return {};
  }
  void set_flags(Bits zero, Bits carry) { frame_.set_flags(zero.value != 0, carry.value != 0); }

  /// A fault raises SIGSEGV, as it would without an emulator.
  Status load(const ZydisDecodedOperand& operand, int offset, std::span<uint8_t> bytes) const {
    std::memcpy(bytes.data(), pointer_to(operand) + offset, bytes.size());
    return {};
  }
  Status store(const ZydisDecodedOperand& operand, int offset, std::span<const uint8_t> bytes) {
    std::memcpy(pointer_to(operand) + offset, bytes.data(), bytes.size());
    return {};
  }

 private:
  uint64_t value_of(ZydisRegister reg) const {
    return reg == ZYDIS_REGISTER_NONE ? 0 : frame_.general(ZydisRegisterGetId(reg));
  }
  uint8_t* pointer_to(const ZydisDecodedOperand& operand) const {
    const auto& memory = operand.mem;
    const auto displacement = static_cast<uint64_t>(memory.disp.value);
    const uint64_t base = memory.base == ZYDIS_REGISTER_RIP
                              ? reinterpret_cast<uint64_t>(frame_.instruction()) +
                                    static_cast<uint64_t>(instruction_bytes_)
                              : value_of(memory.base);
    return reinterpret_cast<uint8_t*>(base + displacement + value_of(memory.index) * memory.scale);
  }

  SignalFrame& frame_;
  int instruction_bytes_;
  Domain domain_;
};

}  // namespace castor::emulator
