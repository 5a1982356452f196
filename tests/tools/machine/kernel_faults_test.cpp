// SPDX-License-Identifier: Apache-2.0
// Faults planted in the machine code of golden kernels: the proof of each must fail.
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/golden_proof.hpp"

namespace castor::test {
namespace {

using jit::DecodedInstruction;
using jit::MachineCode;

uint8_t& byte_at(MachineCode& code, size_t offset) {
  return reinterpret_cast<uint8_t&>(code.bytes[offset]);
}

/// The nth instruction of that mnemonic, from 0, in the code.
DecodedInstruction find(const MachineCode& code, std::string_view mnemonic, int n = 0) {
  const auto program = jit::decode(code);
  EXPECT_TRUE(program.ok());
  for (const DecodedInstruction& decoded : *program) {
    if (decoded.mnemonic() == mnemonic && n-- == 0) return decoded;
  }
  ADD_FAILURE() << "found no " << mnemonic;
  return {};
}

/// Encodes a changed instruction in the same bytes.
void encode(MachineCode& code, const DecodedInstruction& decoded,
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

// ---- faults

using Fault = std::function<void(MachineCode&)>;

Fault pool_bit(size_t offset, int bit = 0) {
  return [=](MachineCode& code) {
    byte_at(code, code.pool_begin + offset) ^= static_cast<uint8_t>(1 << bit);
  };
}
Fault immediate(std::string_view mnemonic, uint8_t change, int n = 0) {
  return [=](MachineCode& code) { byte_at(code, find(code, mnemonic, n).end() - 1) ^= change; };
}
Fault displacement(std::string_view mnemonic, int change, int n = 0) {
  return [=](MachineCode& code) {
    const DecodedInstruction decoded = find(code, mnemonic, n);
    ASSERT_GT(decoded.instruction.raw.disp.size, 0);
    uint8_t& low = byte_at(code, decoded.offset + decoded.instruction.raw.disp.offset);
    low = static_cast<uint8_t>(low + change);
  };
}
Fault other_mnemonic(std::string_view mnemonic, ZydisMnemonic other, int n = 0) {
  return [=](MachineCode& code) {
    encode(code, find(code, mnemonic, n),
           [&](ZydisEncoderRequest& request) { request.mnemonic = other; });
  };
}
Fault swapped_sources(std::string_view mnemonic, int first, int second, int n = 0) {
  return [=](MachineCode& code) {
    encode(code, find(code, mnemonic, n), [&](ZydisEncoderRequest& request) {
      std::swap(request.operands[first], request.operands[second]);
    });
  };
}
Fault other_mask(std::string_view mnemonic, ZydisRegister mask, int n = 0) {
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

/// A register that is kept for the caller and restored from another's slot.
Fault swapped_pops() {
  return [](MachineCode& code) {
    const DecodedInstruction first = find(code, "pop", 0);
    const DecodedInstruction second = find(code, "pop", 1);
    ASSERT_EQ(first.instruction.length, second.instruction.length);
    for (size_t i = 0; i < first.instruction.length; ++i) {
      std::swap(code.bytes[first.offset + i], code.bytes[second.offset + i]);
    }
  };
}

struct Row {
  std::string_view name;
  std::string_view listing;
  Fault plant;
  std::string_view found;  ///< by an error that says so
};

constexpr std::string_view wrong_element = "is not what the lane program computes";

const Row rows[] = {
    {"table_byte_in_the_pool", "f8e4m3-to-f32.avx512_vbmi", pool_bit(0x43), wrong_element},
    {"constant_of_rounding", "f32-to-bf16.avx2", pool_bit(0x8), wrong_element},
    {"bound_of_a_clamp", "f32-to-u8.avx2", pool_bit(6), wrong_element},
    {"index_of_a_permutation", "f32-to-u8.avx2", pool_bit(0x24), wrong_element},
    {"immediate_of_a_permutation", "u64-to-i16-saturate.avx2", immediate("vpermq", 0x0c),
     wrong_element},
    {"immediate_of_a_shuffle", "u64-to-i16-saturate.avx2", immediate("vshufps", 0x10),
     wrong_element},
    {"sign_of_a_pack", "f32-to-u8.avx512_vbmi",
     other_mnemonic("vpackuswb", ZYDIS_MNEMONIC_VPACKSSWB), wrong_element},
    {"swapped_operands_of_a_pack", "f32-to-u8.avx512_vbmi", swapped_sources("vpackuswb", 2, 3),
     wrong_element},
    {"swapped_operands_of_a_minimum", "f32-to-u8.avx512_vbmi", swapped_sources("vminps", 2, 3),
     wrong_element},
    {"rounding_for_truncation", "f32-to-u8.avx512_vbmi",
     other_mnemonic("vcvttps2dq", ZYDIS_MNEMONIC_VCVTPS2DQ), wrong_element},
    {"no_mask_of_the_last_store", "f32-to-u8.avx512_vbmi",
     other_mask("vmovdqu8", ZYDIS_REGISTER_K0), "writes"},
    {"no_mask_of_the_last_load", "f32-to-f16.avx512_vbmi",
     other_mask("vmovdqu32", ZYDIS_REGISTER_K0), "reads"},
    {"load_one_vector_too_far", "f32-to-u8.avx512_vbmi", displacement("vmovups", 1, 4), "reads"},
    {"store_one_byte_too_far", "i8-to-i64.avx2", displacement("vmovups", 1, 2), "is not stored"},
    {"loop_that_ends_late", "f32-to-u8.avx2", displacement("lea", 1), "reads"},
    {"count_of_the_last_chunk", "f32-to-f16.avx512_vbmi",
     other_mnemonic("cmovnle", ZYDIS_MNEMONIC_CMOVL), ""},
    {"rounding_mode_of_mxcsr", "f32-to-i32-nearest_even.avx512", pool_bit(1, 5), wrong_element},
    {"registers_restored_from_other_slots", "fused-select-scale.avx2_vnni", swapped_pops(),
     "returns"},
};

std::string name_of_fault(const testing::TestParamInfo<Row>& row) {
  return std::string(row.param.name);
}

class KernelFault : public testing::TestWithParam<Row> {};

TEST_P(KernelFault, IsFound) {
  const Row& row = GetParam();
  const auto file = golden_folder() / "listings" / (std::string(row.listing) + ".txt");
  const auto kernel = read_golden_kernel(text_of_file(file));
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  auto codes = elementwise_codes(*kernel);
  ASSERT_TRUE(codes.ok() && codes->size() == 1);
  GoldenCode& each = codes->front();
  const std::vector<std::byte> before = each.code.bytes;
  row.plant(each.code);
  ASSERT_NE(each.code.bytes, before) << "nothing is planted";
  prove::NestProver prover({each.made.nest, each.made.form, each.code}, ask_solver, takes_tail);
  const auto proof = prover.prove();
  ASSERT_FALSE(proof.ok()) << "the proof holds";
  EXPECT_EQ(proof.error().code, ErrorCode::internal) << proof.error().message;
  EXPECT_NE(proof.error().message.find(row.found), std::string::npos) << proof.error().message;
  fmt::print("{}: {}\n", row.name, proof.error().message);
}

INSTANTIATE_TEST_SUITE_P(Planted, KernelFault, testing::ValuesIn(rows), name_of_fault);

}  // namespace
}  // namespace castor::test
