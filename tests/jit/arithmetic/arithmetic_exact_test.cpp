// SPDX-License-Identifier: Apache-2.0
// Arithmetic on exact numbers with all of their 64 bits: what no element type has, so that the
// tests of ops cannot see it.
#include <gtest/gtest.h>

#include "ir/numerics/arithmetic.hpp"

namespace castor {
namespace {

using numerics::NumberClass;
using numerics::Unpacked;

constexpr uint64_t top = uint64_t{1} << 63;
constexpr uint64_t ones = ~uint64_t{0};

Unpacked finite(uint64_t significand, int exponent, bool negative = false) {
  return {.kind = NumberClass::finite,
          .negative = negative,
          .significand = significand,
          .exponent = exponent};
}

void expect(const Unpacked& actual, uint64_t significand, int exponent, bool inexact) {
  EXPECT_EQ(actual.kind, NumberClass::finite);
  EXPECT_EQ(actual.significand, significand);
  EXPECT_EQ(actual.exponent, exponent);
  EXPECT_EQ(actual.inexact, inexact);
}

TEST(ArithmeticExact, SumsKeepWhatWasCutOff) {
  expect(numerics::sum(finite(top, 0), finite(top, 0)), top, 1, false);
  expect(numerics::sum(finite(top, 0), finite(top, -63)), top + 1, 0, false);
  expect(numerics::sum(finite(ones, 0), finite(top, -63)), top, 1, false);
  expect(numerics::sum(finite(ones, 0), finite(ones, 0)), ones, 1, false);
  for (int distance : {64, 65, 100, 126, 127, 128, 129, 1000, 2100}) {
    expect(numerics::sum(finite(top, 0), finite(ones, -distance)), top, 0, true);
    expect(numerics::sum(finite(ones, -distance), finite(top + 2, 0)), top + 2, 0, true);
  }
}

TEST(ArithmeticExact, DifferencesAreTakenBelowWhatWasCutOff) {
  expect(numerics::sum(finite(top, 0), finite(top, -64, true)), ones, -1, false);
  expect(numerics::sum(finite(top, 0), finite(top, -65, true)), ones, -1, true);
  expect(numerics::sum(finite(top, 0), finite(ones, -64, true)), ones - 1, -1, true);
  for (int distance : {66, 100, 126, 127, 128, 129, 1000, 2100}) {
    expect(numerics::sum(finite(top, 0), finite(ones, -distance, true)), ones, -1, true);
    expect(numerics::sum(finite(ones, -distance, true), finite(top + 2, 0)), top + 1, 0, true);
  }
  expect(numerics::sum(finite(top + 1, 0), finite(top, 0, true)), top, -63, false);
  const Unpacked nothing = numerics::sum(finite(ones, 5), finite(ones, 5, true));
  EXPECT_EQ(nothing.kind, NumberClass::zero);
  EXPECT_FALSE(nothing.negative);
}

TEST(ArithmeticExact, ProductsQuotientsAndRoots) {
  expect(numerics::product(finite(top, 3), finite(top, 4)), top, 7, false);
  expect(numerics::product(finite(ones, 0), finite(ones, 0)), ones - 1, 1, true);
  expect(numerics::quotient(finite(top, 0), finite(ones, 0)), top, -1, true);
  expect(numerics::quotient(finite(ones, 0), finite(top, 0)), ones, 0, false);
  expect(numerics::quotient(finite(ones, 0), finite(ones, 7)), top, -7, false);
  expect(numerics::quotient(finite(top, 0), finite(top + (top >> 1), 0)), 0xaaaaaaaaaaaaaaaa, -1,
         true);  // 1 / 1.5
  expect(numerics::square_root(finite(top, 4)), top, 2, false);
  expect(numerics::square_root(finite(top, 1)), 0xb504f333f9de6484, 0, true);
  expect(numerics::square_root(finite(top, -1)), 0xb504f333f9de6484, -1, true);
  expect(numerics::square_root(finite(ones, -3)), ones, -2, true);
}

TEST(ArithmeticExact, RemaindersAreExact) {
  expect(numerics::remainder(finite(ones, 0), finite(top, 0)), ones - 1, -1, false);
  expect(numerics::remainder(finite(top, 64), finite(top + (top >> 1), 0)), top, 0, false);
  // 2^2000 mod (2^64 - 1) * 2^-126, where 2^64 counts as 1
  expect(numerics::remainder(finite(top, 2000), finite(ones, -63)), top, 2126 % 64 - 126, false);
  expect(numerics::remainder(finite(top, 0), finite(top, 1)), top, 0, false);
}

TEST(ArithmeticExact, IntegralNumbersStay) {
  expect(numerics::integral(finite(ones, 63), Rounding::down), ones, 63, false);
  expect(numerics::integral(finite(ones, 62), Rounding::down), ones - 1, 62, false);
  expect(numerics::integral(finite(ones, 62), Rounding::up), top, 63, false);
  expect(numerics::integral(finite(top, -500), Rounding::up), top, 0, false);
  EXPECT_EQ(numerics::integral(finite(top, -1, true), Rounding::nearest_even).kind,
            NumberClass::zero);
  EXPECT_TRUE(numerics::integral(finite(top, -1, true), Rounding::nearest_even).negative);
}

}  // namespace
}  // namespace castor
