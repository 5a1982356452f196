// SPDX-License-Identifier: Apache-2.0
// Faults planted in machine code: bits of constants, immediates, displacements, other instructions
// and operands in the same bytes.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "jit/code.hpp"
#include "jit/listing/decoder.hpp"

namespace castor::test {

using jit::DecodedInstruction;
using jit::MachineCode;

inline uint8_t& byte_at(MachineCode& code, size_t offset) {
  return reinterpret_cast<uint8_t&>(code.bytes[offset]);
}

/// The nth instruction of that mnemonic, from 0, in the code.
inline DecodedInstruction find(const MachineCode& code, std::string_view mnemonic, int n = 0) {
  const auto program = jit::decode(code);
  EXPECT_TRUE(program.ok());
  for (const DecodedInstruction& decoded : *program) {
    if (decoded.mnemonic() == mnemonic && n-- == 0) return decoded;
  }
  ADD_FAILURE() << "found no " << mnemonic;
  return {};
}

/// Encodes a changed instruction in the same bytes.
inline void encode(MachineCode& code, const DecodedInstruction& decoded,
                   const std::function<void(ZydisEncoderRequest&)>& change) {
  ZydisEncoderRequest request;
  ASSERT_TRUE(ZYAN_SUCCESS(ZydisEncoderDecodedInstructionToEncoderRequest(
      &decoded.instruction, decoded.operands.data(), decoded.instruction.operand_count_visible,
      &request)));
  change(request);
  std::array<uint8_t, ZYDIS_MAX_INSTRUCTION_LENGTH> bytes;
  ZyanUSize length = bytes.size();
  ASSERT_TRUE(ZYAN_SUCCESS(ZydisEncoderEncodeInstruction(&request, bytes.data(), &length)));
  ASSERT_EQ(length, decoded.instruction.length);
  for (size_t i = 0; i < length; ++i) byte_at(code, decoded.offset + i) = bytes[i];
}

/// Changes a code.
using Fault = std::function<void(MachineCode&)>;

inline Fault pool_bit(size_t offset, int bit = 0) {
  return [=](MachineCode& code) {
    byte_at(code, code.pool_begin + offset) ^= static_cast<uint8_t>(1 << bit);
  };
}
inline Fault immediate(std::string_view mnemonic, uint8_t change, int n = 0) {
  return [=](MachineCode& code) { byte_at(code, find(code, mnemonic, n).end() - 1) ^= change; };
}
inline Fault displacement(std::string_view mnemonic, int change, int n = 0) {
  return [=](MachineCode& code) {
    const DecodedInstruction decoded = find(code, mnemonic, n);
    ASSERT_GT(decoded.instruction.raw.disp.size, 0);
    uint8_t& low = byte_at(code, decoded.offset + decoded.instruction.raw.disp.offset);
    low = static_cast<uint8_t>(low + change);
  };
}
inline Fault other_mnemonic(std::string_view mnemonic, ZydisMnemonic other, int n = 0) {
  return [=](MachineCode& code) {
    encode(code, find(code, mnemonic, n),
           [&](ZydisEncoderRequest& request) { request.mnemonic = other; });
  };
}
inline Fault swapped_sources(std::string_view mnemonic, int first, int second, int n = 0) {
  return [=](MachineCode& code) {
    encode(code, find(code, mnemonic, n), [&](ZydisEncoderRequest& request) {
      std::swap(request.operands[first], request.operands[second]);
    });
  };
}
inline Fault other_mask(std::string_view mnemonic, ZydisRegister mask, int n = 0) {
  return [=](MachineCode& code) {
    encode(code, find(code, mnemonic, n), [&](ZydisEncoderRequest& request) {
      for (int i = 0; i < request.operand_count; ++i) {
        ZydisEncoderOperand& operand = request.operands[i];
        const bool is_mask = operand.type == ZYDIS_OPERAND_TYPE_REGISTER &&
                             ZydisRegisterGetClass(operand.reg.value) == ZYDIS_REGCLASS_MASK;
        if (is_mask) operand.reg.value = mask;
      }
      if (mask == ZYDIS_REGISTER_K0) request.evex.zeroing_mask = ZYAN_FALSE;
    });
  };
}

/// The nth instruction on 64 bits works on 32: its prefix REX.W is cleared.
inline Fault without_rex_w(std::string_view mnemonic, int n = 0) {
  return [=](MachineCode& code) {
    const DecodedInstruction decoded = find(code, mnemonic, n);
    constexpr uint8_t rex_w = 0x08;
    uint8_t& prefix = byte_at(code, decoded.offset);
    ASSERT_EQ(prefix & 0xf0, 0x40) << "no REX";
    ASSERT_NE(prefix & rex_w, 0) << "no REX.W";
    prefix = static_cast<uint8_t>(prefix & ~rex_w);
  };
}
/// A short jump forward that goes nowhere.
inline Fault never_taken(std::string_view mnemonic, int n = 0) {
  return [=](MachineCode& code) {
    const DecodedInstruction decoded = find(code, mnemonic, n);
    ASSERT_EQ(decoded.instruction.length, 2);
    byte_at(code, decoded.end() - 1) = 0;
  };
}

/// A register that is kept for the caller and restored from another's slot.
inline Fault swapped_pops() {
  return [](MachineCode& code) {
    const DecodedInstruction first = find(code, "pop", 0);
    const DecodedInstruction second = find(code, "pop", 1);
    ASSERT_EQ(first.instruction.length, second.instruction.length);
    for (size_t i = 0; i < first.instruction.length; ++i) {
      std::swap(code.bytes[first.offset + i], code.bytes[second.offset + i]);
    }
  };
}

// ---- Tables of faults

struct PlantedFault {
  std::string_view name;
  std::string_view listing;
  Fault plant;
  std::string_view found;  ///< by an error that says so
};

inline std::string name_of_fault(const testing::TestParamInfo<PlantedFault>& row) {
  return std::string(row.param.name);
}

/// Plants a fault in a code, and expects that `prove()` then fails with what the fault is found by.
template <class Prove>
void expect_found(const PlantedFault& fault, MachineCode& code, const Prove& prove) {
  const std::vector<std::byte> before = code.bytes;
  fault.plant(code);
  ASSERT_NE(code.bytes, before) << "nothing is planted";
  const auto proof = prove();
  ASSERT_FALSE(proof.ok()) << "the proof holds";
  EXPECT_EQ(proof.error().code, ErrorCode::internal) << proof.error().message;
  EXPECT_NE(proof.error().message.find(fault.found), std::string::npos) << proof.error().message;
  fmt::print("{}: {}\n", fault.name, proof.error().message);
}

}  // namespace castor::test
