// SPDX-License-Identifier: Apache-2.0
// Halves as the table of instructions computes with them, which few CPUs have: compared with
// castor's numerics and with doubles, in which sums, products and roots of halves are exact or
// rounded innocuously. And what the host says of emulated features. Instructions themselves:
// machine/instruction_test.cpp.
#include "tools/emulator/emulator.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <random>

#include "ir/numerics/scalar.hpp"
#include "jit/emulated_features.hpp"
#include "tools/emulator/permission.hpp"
#include "tools/prove/term/soft_float.hpp"

namespace castor::emulator {
namespace {

using prove::f16_format;
using prove::f64_format;
using prove::Rounding;
namespace soft = prove::soft;

constexpr Rounding modes[] = {Rounding::nearest_even, Rounding::down, Rounding::up,
                              Rounding::toward_zero};

uint64_t rounded_half(double number, Rounding mode) {
  return static_cast<uint64_t>(
      soft::convert(f64_format, f16_format, mode, std::bit_cast<uint64_t>(number)));
}
double value_of(uint64_t half) {
  const prove::Bits wide = soft::convert(f16_format, f64_format, Rounding::nearest_even, half);
  return std::bit_cast<double>(static_cast<uint64_t>(wide));
}

TEST(EmulatorHalf, HasTheValuesOfTheElementType) {
  for (uint32_t half = 0; half <= 0xffff; ++half) {
    if (f16_format.is_nan(half)) continue;
    const uint64_t wide = numerics::convert(half, ElementType::f16, ElementType::f64, {});
    EXPECT_EQ(value_of(half), std::bit_cast<double>(wide)) << half;
    for (const Rounding mode : modes) EXPECT_EQ(rounded_half(value_of(half), mode), half);
  }
}

TEST(EmulatorHalf, IsRoundedAsByTheNumerics) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponents(-30, 18);
  for (int i = 0; i < 100000; ++i) {
    const double number = std::exp2(exponents(random)) * (i % 2 == 0 ? 1 : -1);
    const uint64_t expected =
        numerics::convert(std::bit_cast<uint64_t>(number), ElementType::f64, ElementType::f16, {});
    ASSERT_EQ(rounded_half(number, Rounding::nearest_even), expected) << number;
  }
}

TEST(EmulatorHalf, IsRoundedInEachMode) {
  struct Row {
    double number;
    std::array<uint16_t, 4> halves;  // to nearest even, down, up, toward zero
  };
  constexpr double tiny = 0x1p-40;
  const Row rows[] = {
      {1 + 0x1p-11, {0x3c00, 0x3c00, 0x3c01, 0x3c00}},
      {1 + 0x3p-11, {0x3c02, 0x3c01, 0x3c02, 0x3c01}},
      {1 + 0x1p-11 + tiny, {0x3c01, 0x3c00, 0x3c01, 0x3c00}},
      {-1 - 0x1p-11, {0xbc00, 0xbc01, 0xbc00, 0xbc00}},
      {2 - tiny, {0x4000, 0x3fff, 0x4000, 0x3fff}},
      {0x1p-25, {0x0000, 0x0000, 0x0001, 0x0000}},
      {-0x3p-25, {0x8002, 0x8002, 0x8001, 0x8001}},
      {0x1p-14 - 0x1p-26, {0x0400, 0x03ff, 0x0400, 0x03ff}},
      {65519, {0x7bff, 0x7bff, 0x7c00, 0x7bff}},
      {65520, {0x7c00, 0x7bff, 0x7c00, 0x7bff}},
      {-1e300, {0xfc00, 0xfc00, 0xfbff, 0xfbff}},
      {-0.0, {0x8000, 0x8000, 0x8000, 0x8000}},
  };
  for (const Row& row : rows) {
    for (size_t mode = 0; mode < row.halves.size(); ++mode) {
      EXPECT_EQ(rounded_half(row.number, modes[mode]), row.halves[mode])
          << row.number << " in mode " << mode;
    }
  }
}

TEST(EmulatorHalf, IsComputedAsDoublesThatAreRounded) {
  constexpr auto nearest = Rounding::nearest_even;
  std::mt19937_64 random(2);
  for (int i = 0; i < 200000; ++i) {
    const uint64_t a = random() & 0xffff;
    const uint64_t b = random() & 0xffff;
    if (f16_format.is_nan(a) || f16_format.is_nan(b)) continue;
    const auto expect = [&](prove::Bits found, double exact, const char* what) {
      const uint64_t half = std::isnan(exact) ? static_cast<uint64_t>(f16_format.nan())
                                              : rounded_half(exact, nearest);
      EXPECT_EQ(static_cast<uint64_t>(found), half) << what << " of " << a << " and " << b;
    };
    expect(soft::add(f16_format, nearest, a, b), value_of(a) + value_of(b), "the sum");
    expect(soft::mul(f16_format, nearest, a, b), value_of(a) * value_of(b), "the product");
    expect(soft::div(f16_format, nearest, a, b), value_of(a) / value_of(b), "the quotient");
    expect(soft::sqrt(f16_format, nearest, a), std::sqrt(value_of(a)), "the root");
    if (testing::Test::HasFailure()) return;
  }
}

TEST(EmulatorHalf, AProductAndASumAreRoundedOnce) {
  // (1 + 2^-10)^2 + 2^-24 = 1 + 2^-9 + 2^-20 + 2^-24; 1 * 1 + 2^-24; 2048 * 2 - 2^-24.
  const auto sum = [&](uint64_t a, uint64_t b, uint64_t c, Rounding rounding) {
    return static_cast<uint64_t>(soft::fma(f16_format, rounding, a, b, c));
  };
  EXPECT_EQ(sum(0x3c01, 0x3c01, 0x0001, Rounding::nearest_even), 0x3c02u);
  EXPECT_EQ(sum(0x3c00, 0x3c00, 0x0001, Rounding::up), 0x3c01u);
  EXPECT_EQ(sum(0x6800, 0x4000, 0x8001, Rounding::down), 0x6bffu);
  // 65504 * 65504 - 2^-24 needs 56 bits, 65504 * 2^-24 * 2^-24 - 65504 more than 64.
  EXPECT_EQ(sum(0x7bff, 0x7bff, 0x8001, Rounding::nearest_even), 0x7c00u);
  EXPECT_EQ(sum(0x0001, 0x0001, 0x7bff, Rounding::up), 0x7c00u);
  EXPECT_EQ(sum(0x0001, 0x0001, 0xfbff, Rounding::up), 0xfbfeu);
}

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
