// SPDX-License-Identifier: Apache-2.0
// Sums of two quantized tensors that are quantized again: kernels multiply by factors that were
// tried with all pairs of codes. All pairs on every tier.
#include "jit/lower/scaled_sums.hpp"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "jit/float_environment.hpp"
#include "tests/support/on_every_engine.hpp"

namespace castor::test {
namespace {

/// Scales as calibration gives them: of a few magnitudes, and ratios that make exact ties.
struct Scales {
  float a;
  float b;
  float y;
};

std::vector<Scales> all_scales() {
  std::vector<Scales> scales = {{1, 1, 1},
                                {0.5f, 0.25f, 1},
                                {1, 1, 2},
                                {0.1f, 0.1f, 0.2f},
                                {3, 0.001f, 0.75f},
                                {1e-6f, 2e-6f, 3e-6f},
                                {1e20f, 2e19f, 7e18f},
                                {0.02f, 0.03f, 1e-3f},
                                {1e-30f, 1, 1},
                                {1, 1e30f, 1},
                                {1e-44f, 1e-44f, 1}};
  std::mt19937 random(1);
  std::uniform_real_distribution<float> any(0.003f, 0.1f);
  for (int i = 0; i < 12; ++i) scales.push_back({any(random), any(random), any(random)});
  return scales;
}

/// Every code of a type with every one of another.
std::pair<Patterns, Patterns> all_pairs(ElementType a, ElementType b) {
  Patterns of_a{a, {256, 256}, {}};
  Patterns of_b{b, {256, 256}, {}};
  for (uint64_t i = 0; i < 256; ++i) {
    for (uint64_t k = 0; k < 256; ++k) {
      of_a.elements.push_back(i);
      of_b.elements.push_back(k);
    }
  }
  return {of_a, of_b};
}

FunctionPtr sum_of(std::string_view a, std::string_view b, std::string_view y, const Scales& scales,
                   std::string_view between = "  %s = add %p, %q\n") {
  const auto zero = [](std::string_view type) { return type == "u8" ? 131 : -9; };
  const auto function = parse_function(
      fmt::format("func @sum(%a: {0}[256, 256], %b: {1}[256, 256]) -> {2}[256, 256] {{\n"
                  "  %as = constant {3:.9e} : f32[]\n  %az = constant {4} : {0}[]\n"
                  "  %bs = constant {5:.9e} : f32[]\n  %bz = constant {6} : {1}[]\n"
                  "  %ys = constant {7:.9e} : f32[]\n  %yz = constant {8} : {2}[]\n"
                  "  %p = dequantize_linear %a, %as, %az : f32\n"
                  "  %q = dequantize_linear %b, %bs, %bz : f32\n{9}"
                  "  %y = quantize_linear %s, %ys, %yz : {2}\n  return %y\n}}\n",
                  a, b, y, scales.a, zero(a), scales.b, zero(b), scales.y, zero(y), between));
  EXPECT_TRUE(function) << function.error().to_string();
  return *function;
}

void check(const FunctionPtr& function, const std::pair<Patterns, Patterns>& operands) {
  const std::vector<Patterns> inputs = {operands.first, operands.second};
  EXPECT_EQ(mistake_anywhere(function, inputs, interpreted(*function, inputs)), "")
      << print(*function);
}

TEST(ScaledSums, OfAllPairsOfCodes) {
  const auto pairs = all_pairs(ElementType::u8, ElementType::u8);
  for (const Scales& scales : all_scales()) check(sum_of("u8", "u8", "u8", scales), pairs);
  check(sum_of("i8", "u8", "u8", {0.02f, 0.05f, 0.04f}),
        all_pairs(ElementType::i8, ElementType::u8));
  check(sum_of("u8", "i8", "i8", {0.02f, 0.05f, 0.04f}),
        all_pairs(ElementType::u8, ElementType::i8));
}

/// One operand is quantized in the same function: a clamp, then a sum.
TEST(ScaledSums, OfNumbersThatAreQuantizedFirst) {
  const auto function = parse_function(
      "func @sum(%a: i16[256, 256], %b: u8[256, 256]) -> u8[256, 256] {\n"
      "  %as = constant 0.0217 : f32[]\n  %az = constant 138 : u8[]\n  %m = constant 0.7313 : "
      "f32[]\n"
      "  %bs = constant 0.0417 : f32[]\n  %bz = constant 0 : u8[]\n"
      "  %ys = constant 0.0339 : f32[]\n  %yz = constant 3 : u8[]\n"
      "  %f = convert %a : f32\n  %x = mul %f, %m\n"
      "  %k = quantize_linear %x, %as, %az : u8\n"
      "  %p = dequantize_linear %k, %as, %az : f32\n"
      "  %q = dequantize_linear %b, %bs, %bz : f32\n  %s = add %p, %q\n"
      "  %y = quantize_linear %s, %ys, %yz : u8\n  return %y\n}\n");
  ASSERT_TRUE(function) << function.error().to_string();
  Patterns a{ElementType::i16, {256, 256}, {}};
  Patterns b{ElementType::u8, {256, 256}, {}};
  for (uint64_t i = 0; i < 65536; ++i) {
    a.elements.push_back(i % 512 < 256 ? (i / 256 - 128) & 0xffff : i * 40503 & 0xffff);
    b.elements.push_back(i & 0xff);
  }
  check(*function, {a, b});
}

/// Integers of 20 bits: in f64 their products' sum rounds, and f32 of that is not what a
/// multiply-add gives.
TEST(ScaledSums, OfLargeIntegers) {
  const auto function = parse_function(
      "func @sum(%x: i32[4], %b: u8[4]) -> i32[4] {\n"
      "  %c = clamp %x {lo = 937806, hi = 937807}\n"
      "  %as = constant 0x3ecb372a : f32[]\n  %bs = constant 0x38014001 : f32[]\n"
      "  %ys = constant 1 : f32[]\n"
      "  %f = convert %c : f32\n  %p = mul %f, %as\n"
      "  %i = convert %b : i32\n  %k = clamp %i {lo = 0, hi = 1}\n"
      "  %g = convert %k : f32\n  %q = mul %g, %bs\n  %s = add %p, %q\n"
      "  %d = div %s, %ys\n  %n = convert %d {rounding = nearest_even} : i32\n"
      "  %y = clamp %n {lo = -1000000, hi = 1000000}\n  return %y\n}\n");
  ASSERT_TRUE(function) << function.error().to_string();
  check(*function, {{ElementType::i32, {4}, {937806, 937807, 937806, 937807}},
                    {ElementType::u8, {4}, {0, 0, 1, 1}}});
}

/// The factors have the sum's result for all pairs, by C's fma.
TEST(ScaledSums, FactorsHoldForAllPairs) {
  const jit::KernelFloatEnvironment environment;
  int found = 0;
  for (const Scales& scales : all_scales()) {
    const jit::ScaledSum sum = {{-131, 124}, {-4, 251}, scales.a, scales.b, scales.y, {-7, 248}};
    const auto factors = jit::sum_factors(sum);
    if (!factors) continue;
    ++found;
    for (int32_t a = sum.a.lo; a <= sum.a.hi; ++a) {
      for (int32_t b = sum.b.lo; b <= sum.b.hi; ++b) {
        const float wanted =
            (static_cast<float>(a) * scales.a + static_cast<float>(b) * scales.b) / scales.y;
        const float product = static_cast<float>(b) * factors->b;
        const float given = std::fma(static_cast<float>(a), factors->a, product);
        const auto code = [](float x) { return std::clamp(std::nearbyint(x), -7.f, 248.f); };
        ASSERT_EQ(code(given), code(wanted))
            << a << " " << b << " " << scales.a << " " << scales.b << " " << scales.y;
      }
    }
  }
  EXPECT_GE(found, 14) << "of the 12 random scales, and ties, most have factors";
}

/// Scales of which a is divided exactly by no pair of factors are left to the division.
TEST(ScaledSums, HaveNoFactorsBeyondBounds) {
  const jit::KernelFloatEnvironment environment;
  const jit::SmallRange bytes = {0, 255};
  EXPECT_FALSE(jit::sum_factors({{0, 1 << 19}, bytes, 1, 1, 1, bytes}));   // too many pairs
  EXPECT_FALSE(jit::sum_factors({bytes, bytes, 1, 1e-9f, 1, bytes}));      // products that round
  EXPECT_FALSE(jit::sum_factors({bytes, bytes, 1e10f, 1e10f, 1, bytes}));  // large quotients
  EXPECT_FALSE(
      jit::sum_factors({{937806, 937807}, {0, 1}, 0.4f, 3e-5f, 1, bytes}));  // large integers
}

}  // namespace
}  // namespace castor::test
