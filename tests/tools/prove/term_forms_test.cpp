// SPDX-License-Identifier: Apache-2.0
// Other forms of terms compute the same: floats written out, polynomials.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "tools/prove/term/evaluate.hpp"
#include "tools/prove/term/float_circuits.hpp"
#include "tools/prove/term/polynomial.hpp"

namespace castor::prove {
namespace {

constexpr Rounding directions[] = {Rounding::nearest_even, Rounding::down, Rounding::up,
                                   Rounding::toward_zero, Rounding::nearest_away};

/// The operation on a constant, computed and written out.
void expect_same(TermOp op, int width, const FloatDetail& detail, int operand_width, Bits bits) {
  Terms terms;
  const Term operand = terms.constant(operand_width, bits);
  const Node node{.op = op,
                  .width = static_cast<uint8_t>(width),
                  .operand_count = 1,
                  .detail = detail.packed()};
  const Term computed = terms.make(op, width, std::array{operand}, node.detail);
  const Term circuit = written_out(node, std::array{operand});
  ASSERT_TRUE(circuit.is_constant());
  ASSERT_EQ(static_cast<uint64_t>(circuit.value()), static_cast<uint64_t>(computed.value()))
      << name_of(op) << " to " << width << " bits, rounding " << static_cast<int>(detail.rounding)
      << ", of " << static_cast<uint64_t>(bits) << " with exponents of "
      << int{detail.from.exponent_bits} << " and " << int{detail.format.exponent_bits} << " bits";
}

void expect_float_same(FloatFormat format, FloatFormat to, Bits bits) {
  const int given = format.width();
  for (const Rounding rounding : directions) {
    expect_same(TermOp::float_round, given, {format, {}, rounding}, given, bits);
    expect_same(TermOp::float_convert, to.width(), {to, format, rounding}, given, bits);
    for (const int width : {4, 8, 32, 64}) {
      expect_same(TermOp::float_to_signed, width, {format, {}, rounding}, given, bits);
      expect_same(TermOp::float_to_unsigned, width, {format, {}, rounding}, given, bits);
    }
  }
}

TEST(FloatCircuits, AreTheOperationsOnAllNumbersOfSmallFormats) {
  constexpr FloatFormat formats[] = {{3, 4}, {4, 3}, {4, 6}};
  for (const FloatFormat format : formats) {
    for (const FloatFormat to : formats) {
      for (Bits bits = 0; bits < Bits{1} << format.width(); ++bits) {
        expect_float_same(format, to, bits);
        for (const Rounding rounding : directions) {
          const FloatDetail detail{to, {}, rounding};
          expect_same(TermOp::signed_to_float, to.width(), detail, format.width(), bits);
          expect_same(TermOp::unsigned_to_float, to.width(), detail, format.width(), bits);
        }
      }
    }
  }
}

TEST(FloatCircuits, AreTheOperationsOnNumbersOfLargeFormats) {
  std::mt19937_64 random(1);
  for (const auto& [format, to] : {std::pair(f64_format, f32_format),
                                   {f64_format, f16_format},
                                   {f32_format, f64_format},
                                   {f32_format, bf16_format}}) {
    for (int i = 0; i < 500; ++i) {
      const auto fraction = static_cast<Bits>(i % 3 == 0 ? random() : (random() & 7) << 20);
      const auto near = static_cast<Bits>(format.bias() - 30) + random() % 100;
      const Bits field = i % 8 == 0 ? random() : near;
      const Bits sign = i % 2 == 0 ? 0 : format.sign();
      expect_float_same(format, to,
                        sign | (field & low_mask(format.exponent_bits)) << format.fraction_bits() |
                            (fraction & low_mask(format.fraction_bits())));
    }
  }
}

/// Sums, products and cuts of two operands of 32 bits.
Term random_sum(std::mt19937_64& random, const Term& a, const Term& b) {
  std::vector<Term> known = {a, b, like(a, random())};
  for (int i = 0; i < 6; ++i) {
    const Term x = known[random() % known.size()];
    const Term y = known[random() % known.size()];
    const int by = static_cast<int>(random() % 31) + 1;
    const std::array<Term, 7> next = {x + y,
                                      x - y,
                                      x * y,
                                      ~x,
                                      shift_left(x, by),
                                      concat(truncate(x, 12), truncate(y, 20)),
                                      extend_zero(truncate(x * y, by), 32)};
    known.push_back(next[random() % next.size()]);
  }
  return known.back();
}

TEST(Polynomial, ComputesTheSame) {
  for (uint64_t seed = 0; seed < 1'000; ++seed) {
    std::mt19937_64 random(seed);
    Terms terms;
    const Term a = terms.input("a", 32), b = terms.input("b", 32);
    const Term x = random_sum(random, a, b);
    const Term y = random_sum(random, a, b);
    const Term form = expanded(x);
    const Term compared = equal_expanded(x, y);
    for (int i = 0; i < 8; ++i) {
      const std::array<Bits, 2> v = {random() & 0xffffffff, random() & (random() % 2 * 0xffffffff)};
      ASSERT_EQ(static_cast<uint64_t>(evaluate(form, v)), static_cast<uint64_t>(evaluate(x, v)))
          << seed;
      ASSERT_EQ(evaluate(compared, v), evaluate(equal(x, y), v)) << seed;
    }
  }
}

TEST(Polynomial, OfEqualSumsIsOne) {
  Terms terms;
  const Term high = terms.input("high", 32), low = terms.input("low", 32);
  const Term a = concat(high, low), b = terms.input("b", 64);
  EXPECT_TRUE(expanded((a + b) * (a - b)).same_as(expanded(a * a - b * b)));
  EXPECT_TRUE(equal_expanded((a + b) * (a + b), a * a + b * b + a * b * 2).is_constant(1));
  EXPECT_TRUE(equal_expanded(a + b, a + b + 1).is_constant(0));
  // Three products of halves.
  const auto wide = [](const Term& half) { return extend_zero(half, 64); };
  const Term mixed = wide(high) * wide(low) + wide(low) * wide(high);
  const Term halves = wide(low) * wide(low) + shift_left(mixed, 32);
  EXPECT_TRUE(equal_expanded(a * a, halves).is_constant(1));
  EXPECT_FALSE(equal_expanded(a * a, halves + 1).is_constant(1));
}

}  // namespace
}  // namespace castor::prove
