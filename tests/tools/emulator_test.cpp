// SPDX-License-Identifier: Apache-2.0
// The instructions that tests carry out where a CPU lacks them: each is run, by the CPU or by the
// signal handler, and compared with what the emulator's table computes; halves are compared with
// castor's numerics.
#include "tools/emulator/emulator.hpp"

#include <gtest/gtest.h>
#include <xbyak/xbyak.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>

#include "ir/numerics/scalar.hpp"
#include "jit/emulated_features.hpp"
#include "tools/emulator/fp16.hpp"
#include "tools/emulator/permission.hpp"
#include "tools/emulator/signal_frame.hpp"

namespace castor::emulator {
namespace {

// ---- Halves

TEST(EmulatorHalf, HasTheValuesOfTheElementType) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    if (is_nan(half)) continue;
    const uint64_t wide = numerics::convert(bits, ElementType::f16, ElementType::f64, {});
    EXPECT_EQ(static_cast<double>(value_of(half)), std::bit_cast<double>(wide)) << bits;
    for (int mode = 0; mode < 4; ++mode) {
      EXPECT_EQ(rounded_half(value_of(half), static_cast<RoundingMode>(mode)), half);
    }
  }
}

TEST(EmulatorHalf, IsRoundedAsByTheNumerics) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponents(-30, 18);
  for (int i = 0; i < 100000; ++i) {
    const double number = std::exp2(exponents(random)) * (i % 2 == 0 ? 1 : -1);
    const uint64_t expected =
        numerics::convert(std::bit_cast<uint64_t>(number), ElementType::f64, ElementType::f16, {});
    ASSERT_EQ(rounded_half(number, RoundingMode::nearest_even), expected) << number;
  }
}

TEST(EmulatorHalf, IsRoundedInEachMode) {
  struct Row {
    long double number;
    std::array<uint16_t, 4> halves;  // to nearest even, down, up, toward zero
  };
  constexpr long double tiny = 0x1p-40L;
  const Row rows[] = {
      {1 + 0x1p-11L, {0x3c00, 0x3c00, 0x3c01, 0x3c00}},
      {1 + 0x3p-11L, {0x3c02, 0x3c01, 0x3c02, 0x3c01}},
      {1 + 0x1p-11L + tiny, {0x3c01, 0x3c00, 0x3c01, 0x3c00}},
      {-1 - 0x1p-11L, {0xbc00, 0xbc01, 0xbc00, 0xbc00}},
      {2 - tiny, {0x4000, 0x3fff, 0x4000, 0x3fff}},
      {0x1p-25L, {0x0000, 0x0000, 0x0001, 0x0000}},
      {-0x3p-25L, {0x8002, 0x8002, 0x8001, 0x8001}},
      {0x1p-14L - 0x1p-26L, {0x0400, 0x03ff, 0x0400, 0x03ff}},
      {65519, {0x7bff, 0x7bff, 0x7c00, 0x7bff}},
      {65520, {0x7c00, 0x7bff, 0x7c00, 0x7bff}},
      {-1e300L, {0xfc00, 0xfc00, 0xfbff, 0xfbff}},
      {-0.0L, {0x8000, 0x8000, 0x8000, 0x8000}},
  };
  for (const Row& row : rows) {
    for (size_t mode = 0; mode < row.halves.size(); ++mode) {
      EXPECT_EQ(rounded_half(row.number, static_cast<RoundingMode>(mode)), row.halves[mode])
          << static_cast<double>(row.number) << " in mode " << mode;
    }
  }
}

TEST(EmulatorTable, AProductAndASumAreRoundedOnce) {
  // (1 + 2^-10)^2 + 2^-24 = 1 + 2^-9 + 2^-20 + 2^-24; 1 * 1 + 2^-24; 2048 * 2 - 2^-24.
  const LaneInstruction* row = fp16_instruction(ZYDIS_MNEMONIC_VFMADD231PH);
  ASSERT_NE(row, nullptr);
  const auto sum = [&](uint64_t a, uint64_t b, uint64_t c, RoundingMode rounding) {
    return row->compute({.a = a, .b = b, .old = c, .immediate = 0, .rounding = rounding});
  };
  EXPECT_EQ(sum(0x3c01, 0x3c01, 0x0001, RoundingMode::nearest_even), 0x3c02u);
  EXPECT_EQ(sum(0x3c00, 0x3c00, 0x0001, RoundingMode::up), 0x3c01u);
  EXPECT_EQ(sum(0x6800, 0x4000, 0x8001, RoundingMode::down), 0x6bffu);
  // 65504 * 65504 - 2^-24 needs 56 bits, 65504 * 2^-24 * 2^-24 - 65504 more than 64.
  EXPECT_EQ(sum(0x7bff, 0x7bff, 0x8001, RoundingMode::nearest_even), 0x7c00u);
  EXPECT_EQ(sum(0x0001, 0x0001, 0x7bff, RoundingMode::up), 0x7c00u);
  EXPECT_EQ(sum(0x0001, 0x0001, 0xfbff, RoundingMode::up), 0xfbfeu);
}

// ---- Instructions

/// Runs one instruction: a in zmm16, b in zmm1, the result in zmm2 and k2, under k3.
using Emit = std::function<void(Xbyak::CodeGenerator& code)>;

struct Instruction {
  const char* name;
  ZydisMnemonic mnemonic;
  bool zeroes;  ///< lanes that k3 leaves out
  uint8_t immediate;
  Emit emit;
};

using namespace Xbyak::util;
constexpr uint8_t up_to_8_fraction_bits = 0x80 | 2;
constexpr uint8_t not_less_equal = 6;
constexpr uint8_t by_mxcsr = 4;

// clang-format off
const Instruction instructions[] = {
    {"vaddph", ZYDIS_MNEMONIC_VADDPH, false, 0, [](auto& c) { c.vaddph(zmm2 | k3, zmm16, zmm1); }},
    {"vsubph", ZYDIS_MNEMONIC_VSUBPH, true, 0, [](auto& c) { c.vsubph(zmm2 | k3 | c.T_z, zmm16, zmm1); }},
    {"vmulph", ZYDIS_MNEMONIC_VMULPH, false, 0, [](auto& c) { c.vmulph(zmm2 | k3, zmm16, zmm1); }},
    {"vdivph", ZYDIS_MNEMONIC_VDIVPH, false, 0, [](auto& c) { c.vdivph(zmm2 | k3, zmm16, zmm1); }},
    {"vsqrtph", ZYDIS_MNEMONIC_VSQRTPH, false, 0, [](auto& c) { c.vsqrtph(zmm2 | k3, zmm16); }},
    {"vminph", ZYDIS_MNEMONIC_VMINPH, false, 0, [](auto& c) { c.vminph(zmm2 | k3, zmm16, zmm1); }},
    {"vmaxph", ZYDIS_MNEMONIC_VMAXPH, true, 0, [](auto& c) { c.vmaxph(zmm2 | k3 | c.T_z, zmm16, zmm1); }},
    {"vfmadd231ph", ZYDIS_MNEMONIC_VFMADD231PH, false, 0, [](auto& c) { c.vfmadd231ph(zmm2 | k3, zmm16, zmm1); }},
    {"vfnmadd231ph", ZYDIS_MNEMONIC_VFNMADD231PH, false, 0, [](auto& c) { c.vfnmadd231ph(zmm2 | k3, zmm16, zmm1); }},
    {"vrndscaleph", ZYDIS_MNEMONIC_VRNDSCALEPH, false, up_to_8_fraction_bits, [](auto& c) { c.vrndscaleph(zmm2 | k3, zmm16, up_to_8_fraction_bits); }},
    {"vrndscaleph", ZYDIS_MNEMONIC_VRNDSCALEPH, false, by_mxcsr, [](auto& c) { c.vrndscaleph(zmm2 | k3, zmm16, by_mxcsr); }},
    {"vcmpph", ZYDIS_MNEMONIC_VCMPPH, false, not_less_equal, [](auto& c) { c.vcmpph(k2 | k3, zmm16, zmm1, not_less_equal); }},
    {"vcvtw2ph", ZYDIS_MNEMONIC_VCVTW2PH, false, 0, [](auto& c) { c.vcvtw2ph(zmm2 | k3, zmm16); }},
    {"vcvtuw2ph", ZYDIS_MNEMONIC_VCVTUW2PH, false, 0, [](auto& c) { c.vcvtuw2ph(zmm2 | k3, zmm16); }},
    {"vcvtdq2ph", ZYDIS_MNEMONIC_VCVTDQ2PH, false, 0, [](auto& c) { c.vcvtdq2ph(ymm2 | k3, zmm16); }},
    {"vcvtudq2ph", ZYDIS_MNEMONIC_VCVTUDQ2PH, false, 0, [](auto& c) { c.vcvtudq2ph(ymm2 | k3, zmm16); }},
    {"vcvtqq2ph", ZYDIS_MNEMONIC_VCVTQQ2PH, false, 0, [](auto& c) { c.vcvtqq2ph(xmm2 | k3, zmm16); }},
    {"vcvtuqq2ph", ZYDIS_MNEMONIC_VCVTUQQ2PH, false, 0, [](auto& c) { c.vcvtuqq2ph(xmm2 | k3, zmm16); }},
    {"vcvtpd2ph", ZYDIS_MNEMONIC_VCVTPD2PH, true, 0, [](auto& c) { c.vcvtpd2ph(xmm2 | k3 | c.T_z, zmm16); }},
    {"vcvtph2pd", ZYDIS_MNEMONIC_VCVTPH2PD, false, 0, [](auto& c) { c.vcvtph2pd(zmm2 | k3, xmm16); }},
    {"vcvtph2w", ZYDIS_MNEMONIC_VCVTPH2W, false, 0, [](auto& c) { c.vcvtph2w(zmm2 | k3, zmm16); }},
    {"vcvtph2uw", ZYDIS_MNEMONIC_VCVTPH2UW, false, 0, [](auto& c) { c.vcvtph2uw(zmm2 | k3, zmm16); }},
    {"vcvtph2dq", ZYDIS_MNEMONIC_VCVTPH2DQ, false, 0, [](auto& c) { c.vcvtph2dq(zmm2 | k3, ymm16); }},
    {"vcvtph2udq", ZYDIS_MNEMONIC_VCVTPH2UDQ, false, 0, [](auto& c) { c.vcvtph2udq(zmm2 | k3, ymm16); }},
    {"vcvtph2qq", ZYDIS_MNEMONIC_VCVTPH2QQ, false, 0, [](auto& c) { c.vcvtph2qq(zmm2 | k3, xmm16); }},
    {"vcvtph2uqq", ZYDIS_MNEMONIC_VCVTPH2UQQ, false, 0, [](auto& c) { c.vcvtph2uqq(zmm2 | k3, xmm16); }},
    {"vcvttph2w", ZYDIS_MNEMONIC_VCVTTPH2W, false, 0, [](auto& c) { c.vcvttph2w(zmm2 | k3, zmm16); }},
    {"vcvttph2uw", ZYDIS_MNEMONIC_VCVTTPH2UW, true, 0, [](auto& c) { c.vcvttph2uw(zmm2 | k3 | c.T_z, zmm16); }},
    {"vcvttph2dq", ZYDIS_MNEMONIC_VCVTTPH2DQ, false, 0, [](auto& c) { c.vcvttph2dq(zmm2 | k3, ymm16); }},
    {"vcvttph2udq", ZYDIS_MNEMONIC_VCVTTPH2UDQ, false, 0, [](auto& c) { c.vcvttph2udq(zmm2 | k3, ymm16); }},
    {"vcvttph2qq", ZYDIS_MNEMONIC_VCVTTPH2QQ, false, 0, [](auto& c) { c.vcvttph2qq(zmm2 | k3, xmm16); }},
    {"vcvttph2uqq", ZYDIS_MNEMONIC_VCVTTPH2UQQ, false, 0, [](auto& c) { c.vcvttph2uqq(zmm2 | k3, xmm16); }},
};
// clang-format on

struct alignas(64) Registers {
  ZmmBytes a;
  ZmmBytes b;
  ZmmBytes result;
  uint64_t mask;
  uint64_t result_mask;
};

class Runner : public Xbyak::CodeGenerator {
 public:
  explicit Runner(const Instruction& instruction) {
    vmovdqu64(zmm16, ptr[rdi + offsetof(Registers, a)]);
    vmovdqu64(zmm1, ptr[rdi + offsetof(Registers, b)]);
    vmovdqu64(zmm2, ptr[rdi + offsetof(Registers, result)]);
    kmovq(k3, ptr[rdi + offsetof(Registers, mask)]);
    kxorq(k2, k2, k2);
    instruction.emit(*this);
    vmovdqu64(ptr[rdi + offsetof(Registers, result)], zmm2);
    kmovq(ptr[rdi + offsetof(Registers, result_mask)], k2);
    vzeroupper();
    ret();
  }
  void run(Registers& registers) { getCode<void (*)(Registers*)>()(&registers); }
};

uint64_t lane_of(const ZmmBytes& bytes, int bits, int lane) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + lane * bits / 8, static_cast<size_t>(bits) / 8);
  return value;
}

/// What the table says of the registers before the instruction.
Registers expected(const Instruction& instruction, const LaneInstruction& row,
                   const Registers& before) {
  Registers after = before;
  const bool to_mask = row.result_bits == 1;
  if (!to_mask) after.result = {};
  after.result_mask = 0;
  const int lanes = 512 / std::max(row.source_bits, row.result_bits);
  for (int i = 0; i < lanes; ++i) {
    const bool computes = (before.mask >> i & 1) != 0;
    const uint64_t old = to_mask ? 0 : lane_of(before.result, row.result_bits, i);
    uint64_t value = instruction.zeroes ? 0 : old;
    if (computes) {
      value = row.compute({.a = lane_of(before.a, row.source_bits, i),
                           .b = lane_of(before.b, row.source_bits, i),
                           .old = old,
                           .immediate = instruction.immediate,
                           .rounding = RoundingMode::nearest_even});
    }
    if (to_mask) {
      after.result_mask |= value << i;
    } else {
      std::memcpy(after.result.data() + i * row.result_bits / 8, &value,
                  static_cast<size_t>(row.result_bits) / 8);
    }
  }
  return after;
}

/// Bytes such that halves, integers and doubles of all sizes and kinds come up.
void fill(ZmmBytes& bytes, int bits, std::mt19937_64& random) {
  constexpr uint64_t specials[] = {0,      0x8000, 1,      0x7c00, 0xfc00, 0x7e00,
                                   0xfd01, 0x7bff, 0x3c00, 0x3800, 0x6400, 0x77ff};
  for (int i = 0; i < 512 / bits; ++i) {
    uint64_t value = random() >> random() % 64;
    if (bits == 16 && random() % 2 == 0) value = specials[random() % std::size(specials)];
    if (bits == 64 && random() % 2 == 0) {  // a double near the halves
      value = std::bit_cast<uint64_t>(std::ldexp(static_cast<double>(value | 1), -70));
    }
    std::memcpy(bytes.data() + i * bits / 8, &value, static_cast<size_t>(bits) / 8);
  }
}

class EmulatorInstructions : public testing::TestWithParam<size_t> {};

TEST_P(EmulatorInstructions, GiveWhatTheTableComputes) {
  if (!jit::host().runs(jit::Tier::avx512_fp16)) {
    GTEST_SKIP() << "the CPU has no AVX-512 with VBMI, on which the instructions build";
  }
  const Instruction& instruction = instructions[GetParam()];
  const LaneInstruction* row = fp16_instruction(instruction.mnemonic);
  ASSERT_NE(row, nullptr);
  Runner runner(instruction);
  std::mt19937_64 random(2);
  const bool is_emulated = jit::host().emulates(jit::Tier::avx512_fp16);
  const uint64_t count = instruction_count();
  constexpr int runs = 500;
  for (int run = 0; run < runs; ++run) {
    Registers registers = {};
    fill(registers.a, row->source_bits, random);
    fill(registers.b, 16, random);
    fill(registers.result, 16, random);
    registers.mask = run % 4 == 0 ? ~uint64_t{0} : random();
    const Registers after = expected(instruction, *row, registers);
    runner.run(registers);
    ASSERT_EQ(registers.result, after.result) << "run " << run;
    ASSERT_EQ(registers.result_mask, after.result_mask) << "run " << run;
  }
  EXPECT_EQ(instruction_count() - count, is_emulated ? runs : 0);
}

INSTANTIATE_TEST_SUITE_P(Fp16, EmulatorInstructions,
                         testing::Range(size_t{0}, std::size(instructions)),
                         [](const testing::TestParamInfo<size_t>& row) {
                           return std::string(instructions[row.param].name) + "_" +
                                  std::to_string(row.param);
                         });

// ---- The host

TEST(EmulatedFeatures, AreSetBeforeTheHostIsAsked) {
  const jit::Host& host = jit::host();
  static const jit::Emulation same = {host.emulated, {}, arch_prctl};
  EXPECT_TRUE(jit::emulate(same));
  static const jit::Emulation another = {
      host.emulated == jit::FeatureSet{} ? emulated() - host.features : jit::FeatureSet{},
      {},
      arch_prctl};
  if (another.features == host.emulated) GTEST_SKIP() << "the CPU has all that can be emulated";
  EXPECT_FALSE(jit::emulate(another));  // too late
}

TEST(EmulatedFeatures, LeaveTheHostsOwnAloneFromTheBeginningOn) {
  static const jit::Emulation late = {jit::host().emulated, {jit::Feature::avx2}, arch_prctl};
  if (!jit::host().features.has(jit::Feature::avx2)) GTEST_SKIP() << "the CPU has no AVX2";
  EXPECT_FALSE(jit::emulate(late));
}

TEST(EmulatedFeatures, AreNoneOfTheHostsOwn) {
  const jit::Host& host = jit::host();
  EXPECT_EQ(host.emulated - host.features, host.emulated);
  EXPECT_TRUE(!host.best || host.features.contains(info(*host.best).features));
}

}  // namespace
}  // namespace castor::emulator
