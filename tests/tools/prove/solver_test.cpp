// SPDX-License-Identifier: Apache-2.0
// z3's meaning of each operation of terms is the one that compute() has.
#include "tools/prove/solver/solver.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "tools/prove/term/evaluate.hpp"
#include "tools/prove/term/float_terms.hpp"

namespace castor::prove {
namespace {

constexpr Steps limit = 500'000'000;
using enum Answer::Kind;

TEST(Solver, ProvesAndRefutes) {
  Terms terms;
  const Term x = terms.input("x", 32), y = terms.input("y", 32);
  EXPECT_EQ(can_hold(not_equal((x & y) + (x | y), x + y), limit).kind, never);
  const Answer found = can_hold(not_equal((x & y) + (x ^ y), x + y), limit);
  ASSERT_EQ(found.kind, possible);
  EXPECT_NE((found.inputs[0] & found.inputs[1]), Bits{0});
  EXPECT_NE(smt_lib(equal(x, y)).find("(check-sat)"), std::string::npos);
}

TEST(Solver, SaysThatItDoesNotKnow) {
  Terms terms;
  const Term x = terms.input("x", 64), y = terms.input("y", 64);
  const auto f = [](const Term& a, const Term& b) {
    return float_mul(f64_format, Rounding::nearest_even, a, b);
  };
  const Term lost = not_equal(f(f(x, y), x), f(x, f(x, y)) ^ 1);
  const Answer answer = can_hold(lost, Steps{100'000});
  if (answer.kind == unknown) {
    EXPECT_FALSE(answer.reason.empty());
  }
  EXPECT_NE(answer.kind, never);
}

/// The operation on inputs differs from its value on constants where the inputs are these: never.
void expect_agreement(Terms& terms, const Term& symbolic, std::span<const Term> inputs,
                      std::span<const Bits> values, const char* what) {
  Term differs = not_equal(symbolic, terms.constant(symbolic.width(), evaluate(symbolic, values)));
  for (size_t i = 0; i < inputs.size(); ++i) differs = differs & equal(inputs[i], values[i]);
  EXPECT_EQ(can_hold(differs, limit).kind, never) << what;
}

struct FloatCase {
  const char* name;
  Term (*make)(FloatFormat, Rounding, const Term&, const Term&, const Term&);
};
constexpr FloatCase float_cases[] = {
    {"add", [](auto f, auto r, auto& a, auto& b, auto&) { return float_add(f, r, a, b); }},
    {"mul", [](auto f, auto r, auto& a, auto& b, auto&) { return float_mul(f, r, a, b); }},
    {"div", [](auto f, auto r, auto& a, auto& b, auto&) { return float_div(f, r, a, b); }},
    {"sqrt", [](auto f, auto r, auto& a, auto&, auto&) { return float_sqrt(f, r, a); }},
    {"fma", [](auto f, auto r, auto& a, auto& b, auto& c) { return float_fma(f, r, a, b, c); }},
    {"round", [](auto f, auto r, auto& a, auto&, auto&) { return float_round(f, r, a); }},
    {"to f16",
     [](auto f, auto r, auto& a, auto&, auto&) { return float_convert(f, f16_format, r, a); }},
    {"to f64",
     [](auto f, auto r, auto& a, auto&, auto&) { return float_convert(f, f64_format, r, a); }},
    {"to i8", [](auto f, auto r, auto& a, auto&, auto&) { return float_to_signed(f, r, 8, a); }},
    {"to u8", [](auto f, auto r, auto& a, auto&, auto&) { return float_to_unsigned(f, r, 8, a); }},
    {"to i64", [](auto f, auto r, auto& a, auto&, auto&) { return float_to_signed(f, r, 64, a); }},
    {"to u64",
     [](auto f, auto r, auto& a, auto&, auto&) { return float_to_unsigned(f, r, 64, a); }},
    {"from signed", [](auto f, auto r, auto& a, auto&, auto&) { return signed_to_float(f, r, a); }},
    {"from unsigned",
     [](auto f, auto r, auto& a, auto&, auto&) { return unsigned_to_float(f, r, a); }},
};

TEST(Solver, FloatsAreThoseOfCompute) {
  std::mt19937_64 random(7);
  for (const FloatFormat format : {f16_format, bf16_format, f32_format}) {
    for (const FloatCase& row : float_cases) {
      for (int i = 0; i < 10; ++i) {
        Terms terms;
        std::vector<Term> inputs;
        std::vector<Bits> values;
        for (const char* name : {"a", "b", "c"}) {
          inputs.push_back(terms.input(name, format.width()));
          Bits value = random() & low_mask(format.width());
          const bool special = random() % 3 == 0;
          if (special) value |= format.infinity() & ~(Bits{random() % 2} << format.fraction_bits());
          values.push_back(value);
        }
        const auto rounding = static_cast<Rounding>(i % 4);
        expect_agreement(terms, row.make(format, rounding, inputs[0], inputs[1], inputs[2]), inputs,
                         values, row.name);
      }
    }
  }
}

TEST(Solver, IntegersAndTablesAreThoseOfCompute) {
  std::mt19937_64 random(3);
  std::array<uint64_t, 64> entries = {};
  for (uint64_t& entry : entries) entry = random() % 5;
  for (int i = 0; i < 40; ++i) {
    Terms terms;
    const std::array inputs = {terms.input("a", 24), terms.input("b", 24)};
    const std::array<Bits, 2> values = {random() & 0xffffff,
                                        random() >> (random() % 64) & 0xffffff};
    const auto& [a, b] = inputs;
    const Term all[] = {udiv(a, b),
                        urem(a, b),
                        shift_left(a, b),
                        shift_right(a, b),
                        shift_right_signed(a, b),
                        a * b,
                        -a,
                        extend_zero(less_signed(a, b), 24),
                        extend_sign(extract(a, 3, 9), 24),
                        leading_zeros(a),
                        terms.table(entries, 24, truncate(a, 6))};
    for (const Term& term : all) expect_agreement(terms, term, inputs, values, "integers");
  }
}

/// f16 sums through f32, rounded twice, are the sums rounded once: 2 * 11 + 2 <= 24.
TEST(Solver, DoubleRoundingOfAFormatIsSeen) {
  Terms terms;
  const Term x = terms.input("x", 64);
  const auto to = [](FloatFormat from, FloatFormat into, const Term& a) {
    return x86::convert(from, into, Rounding::nearest_even, a);
  };
  const Term twice = to(f32_format, f16_format, to(f64_format, f32_format, x));
  EXPECT_EQ(can_hold(not_equal(twice, to(f64_format, f16_format, x)), limit).kind, possible);
  const Term h = terms.input("h", 16);
  const Term through = to(f64_format, f16_format, to(f16_format, f64_format, h));
  EXPECT_EQ(can_hold(not_equal(through, to(f16_format, f16_format, h)), limit).kind, never);
}

}  // namespace
}  // namespace castor::prove
