// SPDX-License-Identifier: Apache-2.0
// What castor uses x87 for: remainders of floats, which are exact, so that f64 holds all of ST(i).
#include <bit>
#include <cmath>

#include "tools/machine/machine.hpp"

namespace castor::machine {

namespace {

constexpr int f32_bits = 32;

double as_float(Number bits) {
  if (bits.width == f32_bits) {
    return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits.value)));
  }
  return std::bit_cast<double>(bits.value);
}

Scalar<Numbers> as_scalar(double value, int width) {
  const uint64_t bits = width == f32_bits ? std::bit_cast<uint32_t>(static_cast<float>(value))
                                          : std::bit_cast<uint64_t>(value);
  return Scalar<Numbers>::number(width, bits);
}

}  // namespace

template <>
Status Machine<Symbols>::x87() {
  return unknown("no meaning on data");
}

/// fprem leaves a remainder at once, so that C2, which says that it is partial, is always clear.
/// The environment of the caller is not looked at: it is stored as zeros and never comes back.
template <>
Status Machine<Numbers>::x87() {
  const auto& operands = now().operands;
  const ZydisMnemonic mnemonic = now().instruction.mnemonic;
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_FNINIT: x87_.clear(); return {};
    case ZYDIS_MNEMONIC_FLDENV: return {};
    case ZYDIS_MNEMONIC_FNSTENV: {
      constexpr std::array<uint8_t, 28> environment = {};
      return store(operands[0], 0, environment);
    }
    case ZYDIS_MNEMONIC_FNSTSW: return write(operands[0], Scalar<Numbers>::number(16, 0));
    case ZYDIS_MNEMONIC_FLD: break;
    case ZYDIS_MNEMONIC_FPREM: {
      if (x87_.size() < 2) return unknown("the x87 stack has no two numbers");
      double& dividend = x87_.back();
      dividend = std::fmod(dividend, x87_[x87_.size() - 2]);
      return {};
    }
    case ZYDIS_MNEMONIC_FSTP: {
      if (x87_.empty()) return unknown("the x87 stack is empty");
      const double value = x87_.back();
      x87_.pop_back();
      for (const ZydisDecodedOperand& operand : now().written_operands()) {
        if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
        return write(operand, as_scalar(value, operand.size));
      }
      return {};  // fstp st0 drops it
    }
    default: return unknown("no meaning");
  }
  for (const ZydisDecodedOperand& operand : now().written_operands()) {
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
    const auto value = read(operand);
    if (!value) return value.error();
    x87_.push_back(as_float(value->bits(*domain_)));
    return {};
  }
  return unknown("no meaning");
}

}  // namespace castor::machine
