// SPDX-License-Identifier: Apache-2.0
// The instructions that castor emits, each as something to measure: many independent ones, and
// ones that wait for each other.
#pragma once

#include <xbyak/xbyak.h>

#include <span>
#include <string_view>

#include "jit/target.hpp"

namespace castor::bench {

/// The registers of one instruction: the result's number, those of the sources, and which one of
/// the unrolled loop it is. Masks and general registers follow from the numbers. rsi is a buffer
/// of 8 KiB, rdi counts iterations, and r11 is 3.
struct Slot {
  int result = 0;
  int source = 30;
  int second = 31;
  int index = 0;

  Xbyak::Zmm zr() const { return Xbyak::Zmm(result); }
  Xbyak::Ymm yr() const { return Xbyak::Ymm(result); }
  Xbyak::Xmm xr() const { return Xbyak::Xmm(result); }
  Xbyak::Zmm za() const { return Xbyak::Zmm(source); }
  Xbyak::Ymm ya() const { return Xbyak::Ymm(source); }
  Xbyak::Xmm xa() const { return Xbyak::Xmm(source); }
  Xbyak::Zmm zb() const { return Xbyak::Zmm(second); }
  Xbyak::Ymm yb() const { return Xbyak::Ymm(second); }
  Xbyak::Xmm xb() const { return Xbyak::Xmm(second); }
  Xbyak::Opmask kr() const { return Xbyak::Opmask(2 + result % 6); }
  Xbyak::Opmask ka() const { return source == result ? kr() : Xbyak::Opmask(1); }
  Xbyak::Reg64 gr() const { return general(result); }
  Xbyak::Reg64 ga() const { return source == result ? gr() : Xbyak::util::r11; }
  Xbyak::RegExp load() const { return Xbyak::util::rsi + 64 * index; }
  /// Stores are consecutive, as castor's are: a core may take up two of one cache line at a time.
  Xbyak::RegExp store(int bytes) const { return Xbyak::util::rsi + 4096 + bytes * index; }

 private:
  static Xbyak::Reg64 general(int number) {
    using namespace Xbyak::util;
    constexpr int codes[] = {Xbyak::Operand::RAX, Xbyak::Operand::RCX, Xbyak::Operand::RDX,
                             Xbyak::Operand::R8,  Xbyak::Operand::R9,  Xbyak::Operand::R10};
    return Xbyak::Reg64(codes[number % 6]);
  }
};

/// What the result waits for.
enum class Chain {
  none,    ///< another register file, or memory: there is no latency of registers
  source,  ///< the first source
  result,  ///< the result's register, which the instruction reads
};

struct InstructionForm {
  std::string_view name;  ///< "vpaddd zmm"
  jit::Tier tier;         ///< the lowest that has it
  Chain chain;
  void (*emit)(Xbyak::CodeGenerator& code, const Slot& slot);
};

/// Every class of the port model has a form at least, in both widths where castor emits both.
std::span<const InstructionForm> instruction_forms();

/// The form of that name; null where there is none.
const InstructionForm* form_named(std::string_view name);

}  // namespace castor::bench
