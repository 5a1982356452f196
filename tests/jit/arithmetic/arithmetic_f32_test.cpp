// SPDX-License-Identifier: Apache-2.0
// "Computed in f32 and rounded once" (ir/README.md, Arithmetic) of types of 16 bits and less, with
// the machine's f32: the interpreter rounds the exact result once, which must give the same.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "ir/numerics/float_ops.hpp"
#include "ir/numerics/scalar.hpp"
#include "tests/support/element_types.hpp"
#include "tests/support/long_form.hpp"
#include "tests/support/sse.hpp"
#include "tools/testing/samples.hpp"

namespace castor {
namespace {

using enum ElementType;
namespace ops = numerics::float_ops;
using test::sse_add;
using test::sse_div;
using test::sse_mul;
using test::sse_sqrt;
using test::sse_sub;

float remainder(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return sse_add(a, b);
  const float modulus = std::fmod(a, b);
  return std::isnan(modulus) ? sse_div(0.0f, 0.0f) : modulus;
}

float floor_remainder(float a, float b) {
  const float modulus = remainder(a, b);
  if (std::isnan(modulus)) return modulus;
  if (modulus == 0) return std::copysign(0.0f, b);
  return std::signbit(modulus) == std::signbit(b) ? modulus : sse_add(modulus, b);
}

struct Row {
  const char* name;
  uint64_t (*actual)(uint64_t a, uint64_t b, ElementType type);
  float (*expected)(float a, float b);
};

constexpr Row rows[] = {
    {"add", ops::add, sse_add},
    {"sub", ops::sub, sse_sub},
    {"mul", ops::mul, sse_mul},
    {"div", ops::div, sse_div},
    {"mod", ops::mod, remainder},
    {"floor_mod", ops::floor_mod, floor_remainder},
    {"sqrt", [](uint64_t, uint64_t b, ElementType type) { return ops::sqrt(b, type); },
     [](float, float b) { return sse_sqrt(b, b); }},
};

float widened(uint64_t bits, ElementType type) {
  return std::bit_cast<float>(static_cast<uint32_t>(numerics::convert(bits, type, f32, {})));
}

void expect_all_ops_agree(ElementType type, uint64_t a, uint64_t b) {
  for (const Row& row : rows) {
    const float wide = row.expected(widened(a, type), widened(b, type));
    const uint64_t expected = numerics::convert(std::bit_cast<uint32_t>(wide), f32, type, {});
    ASSERT_EQ(row.actual(a, b, type), expected)
        << row.name << " " << name_of(type) << std::hex << " 0x" << a << ", 0x" << b;
  }
}

class ArithmeticF32 : public testing::TestWithParam<ElementType> {};

// All pairs of up to 8 bits; of 16 bits every code with a choice of others: boundaries, random
// ones, and such that quotients and products come near to the subnormals.
TEST_P(ArithmeticF32, SameAsRoundedOnce) {
  const ElementType type = GetParam();
  const std::vector<uint64_t> codes = samples::all_patterns(type);
  const std::vector<uint64_t> boundaries = samples::boundary_patterns(type);
  const size_t partners = bits_of(type) <= 8 ? 0 : test::long_form() ? 400 : 10;
  std::mt19937_64 random(17);
  for (uint64_t a : codes) {
    for (size_t i = 0; i < (partners ? partners : codes.size()); ++i) {
      const uint64_t b = partners == 0 ? codes[i]
                         : i % 2 == 0  ? boundaries[random() % boundaries.size()]
                                       : random() & 0xffff;
      expect_all_ops_agree(type, a, b);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ArithmeticF32, testing::ValuesIn(test::floats_of_at_most(16)),
                         [](const auto& case_info) { return test::test_name(case_info.param); });

// Where rounding twice could show: bf16's subnormals, whose halves of a last place f32
// rounds to. Every pair of significands, scaled so that the result is among them.
TEST(ArithmeticF32Subnormals, ProductsAndQuotientsOfBf16) {
  for (uint64_t a = 0; a < 128; ++a) {
    for (uint64_t b = 0; b < 128; ++b) {
      for (uint64_t exponent = 0; exponent < 20; ++exponent) {
        // 1.a * 2^-70 times 1.b * 2^(-70 + e), 1.a * 2^-100 over 1.b * 2^(40 - e)
        const uint64_t small = (127 - 70) << 7 | a;
        expect_all_ops_agree(bf16, small, (127 - 70 + exponent) << 7 | b);
        const uint64_t smaller = (127 - 100) << 7 | a;
        expect_all_ops_agree(bf16, smaller, (127 + 40 - exponent) << 7 | b);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Every pair of f16's significands, with quotients at its subnormals.
TEST(ArithmeticF32Subnormals, QuotientsOfF16) {
  for (uint64_t a = 0; a < 1024; ++a) {
    for (uint64_t b = 0; b < 1024; ++b) {
      for (uint64_t exponent = 0; exponent < 12; ++exponent) {
        const uint64_t first = uint64_t{15 - 8} << 10 | a;  // 2^-8 / 2^(4 + e)
        const uint64_t second = (15 + 4 + exponent) << 10 | b;
        const uint64_t expected = numerics::convert(
            std::bit_cast<uint32_t>(sse_div(widened(first, f16), widened(second, f16))), f32, f16,
            {});
        ASSERT_EQ(ops::div(first, second, f16), expected) << std::hex << first << " " << second;
      }
    }
  }
}

}  // namespace
}  // namespace castor
