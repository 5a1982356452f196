// SPDX-License-Identifier: Apache-2.0
// Terms run on many inputs at once, floats by this process's own arithmetic: the same bits as one
// by one in integers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>

#include "tools/prove/term/batch.hpp"
#include "tools/prove/term/evaluate.hpp"
#include "tools/prove/term/float_terms.hpp"

namespace castor::prove {
namespace {

constexpr FloatFormat formats[] = {f16_format, f32_format, f64_format};
constexpr Rounding roundings[] = {Rounding::nearest_even, Rounding::down, Rounding::up,
                                  Rounding::toward_zero, Rounding::nearest_away};

/// Numbers at which formats end or change, of either sign, and any other.
uint64_t drawn_number(FloatFormat format, std::mt19937_64& random) {
  const Bits edges[] = {0,
                        1,
                        format.max_finite(),
                        format.infinity(),
                        format.nan(),
                        Bits{1} << format.fraction_bits(),
                        static_cast<Bits>(format.bias()) << format.fraction_bits()};
  const uint64_t choice = random() % 16;
  const Bits magnitude = choice < std::size(edges) ? edges[choice] : random();
  const Bits sign = random() % 2 == 0 ? 0 : format.sign();
  return static_cast<uint64_t>((magnitude ^ sign) & low_mask(format.width()));
}

/// Runs a batch from the number on, and each of its lanes alone.
void expect_equal(const Term& term, uint64_t first, const std::string& what) {
  Batch batch(std::span(&term, 1));
  ASSERT_TRUE(batch.fits()) << what;
  batch.run(first);
  Evaluator evaluator(std::span(&term, 1));
  for (size_t lane = 0; lane < Batch::lanes; ++lane) {
    const uint64_t one_by_one = static_cast<uint64_t>(evaluator(batch.inputs_at(lane))[0]);
    ASSERT_EQ(batch.of(term.id())[lane], one_by_one) << what << " of " << first + lane;
  }
}

using Build = std::function<Term(const Term& x, const Term& y)>;

/// A term of numbers in a row and of a constant.
void check(FloatFormat format, const std::string& what, const Build& build, int draws = 12) {
  std::mt19937_64 random(7);
  for (int i = 0; i < draws; ++i) {
    Terms terms;
    const Term x = terms.input("x", format.width());
    const Term y = terms.constant(format.width(), drawn_number(format, random));
    const uint64_t around = drawn_number(format, random);
    expect_equal(build(x, y), around - random() % Batch::lanes, what);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Batch, ComputesFloatsAsTheyAreSpecified) {
  for (const FloatFormat format : formats) {
    for (const Rounding rounding : roundings) {
      const std::string name =
          fmt::format("{} bits, rounding {}", format.width(), static_cast<int>(rounding));
      const auto pairs = [&](std::string_view op, auto function) {
        check(format, fmt::format("{}, {}", op, name),
              [&](const Term& x, const Term& y) { return function(format, rounding, x, y); });
      };
      pairs("sum", float_add);
      pairs("product", float_mul);
      pairs("quotient", float_div);
      check(format, "root, " + name,
            [&](const Term& x, const Term&) { return float_sqrt(format, rounding, x); });
      check(format, "rounded, " + name,
            [&](const Term& x, const Term&) { return float_round(format, rounding, x); });
      check(format, "product and sum, " + name,
            [&](const Term& x, const Term& y) { return float_fma(format, rounding, x, y, x); });
    }
  }
}

TEST(Batch, ComputesRemaindersAsTheyAreSpecified) {
  for (const FloatFormat format : formats) {
    check(format, fmt::format("remainder of {} bits", format.width()),
          [&](const Term& x, const Term& y) { return float_remainder(format, x, y); });
  }
}

TEST(Batch, ConvertsFloatsAsTheyAreSpecified) {
  for (const FloatFormat from : {f16_format, bf16_format, f32_format, f64_format}) {
    for (const FloatFormat to : {f16_format, bf16_format, f32_format, f64_format}) {
      for (const Rounding rounding : roundings) {
        if (from == to) continue;
        check(
            from, fmt::format("{} bits to {}", from.width(), to.width()),
            [&](const Term& x, const Term&) { return float_convert(from, to, rounding, x); }, 24);
      }
    }
  }
}

TEST(Batch, ConvertsIntegersAsTheyAreSpecified) {
  for (const FloatFormat format : formats) {
    for (const Rounding rounding : roundings) {
      for (const int width : {8, 16, 32, 64}) {
        const std::string name = fmt::format("{} bits and integers of {}", format.width(), width);
        check(format, name, [&](const Term& x, const Term&) {
          return float_to_signed(format, rounding, width, x);
        });
        check(format, name, [&](const Term& x, const Term&) {
          return float_to_unsigned(format, rounding, width, x);
        });
        if (width > format.width()) continue;
        check(format, name, [&](const Term& x, const Term&) {
          return signed_to_float(format, rounding, truncate(x, width));
        });
        check(format, name, [&](const Term& x, const Term&) {
          return unsigned_to_float(format, rounding, truncate(x, width));
        });
      }
    }
  }
}

TEST(Batch, DividesIntegersAsTheyAreSpecified) {
  check(f64_format, "quotient", [](const Term& x, const Term& y) {
    return udiv(truncate(x, 20), truncate(y, 20)) + urem(truncate(x, 20), truncate(y, 20));
  });
  check(f64_format, "by 0", [](const Term& x, const Term&) {
    const Term zero = x.terms().constant(20, 0);
    return udiv(truncate(x, 20), zero) ^ urem(truncate(x, 20), zero);
  });
}

TEST(Batch, RunsAllPairsOfAStretchOfHalves) {
  Terms terms;
  const Term x = terms.input("x", 16);
  const Term y = terms.input("y", 16);
  std::mt19937_64 random(9);
  for (int i = 0; i < 50; ++i) {
    const uint64_t first = drawn_number(f16_format, random) | drawn_number(f16_format, random)
                                                                  << 16;
    expect_equal(float_mul(f16_format, Rounding::nearest_even, x, y), first, "product of halves");
    expect_equal(float_div(f16_format, Rounding::nearest_even, x, y), first, "quotient of halves");
  }
}

}  // namespace
}  // namespace castor::prove
