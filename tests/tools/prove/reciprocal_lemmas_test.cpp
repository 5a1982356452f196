// SPDX-License-Identifier: Apache-2.0
// The lemmas on quotients by reciprocals, on all numbers of small formats, and on drawn ones of
// f32.
#include <gtest/gtest.h>

#include <random>

#include "tests/support/long_form.hpp"
#include "tools/prove/lane/reciprocal_lemmas.hpp"
#include "tools/prove/solver/solver.hpp"
#include "tools/prove/term/evaluate.hpp"
#include "tools/prove/term/exhaust.hpp"

namespace castor::prove {
namespace {

using test::long_form;

struct Lemmas {
  explicit Lemmas(const ReciprocalFormat& reciprocals)
      : x(terms.input("x", reciprocals.format.width())),
        s(terms.input("s", reciprocals.format.width())),
        hold(reciprocal_lemmas(reciprocals, x, s)) {}

  Terms terms;
  Term x;
  Term s;
  Term hold;
};

/// Five exponent bits. The remainder of a quotient of a quarter by 2^k has bits from k - 2p on.
ReciprocalFormat small_format(int precision) {
  const FloatFormat format = {5, static_cast<uint8_t>(precision)};
  const int min_subnormal = 2 - format.bias() - precision;
  return {.format = format,
          .least = min_subnormal + 2 * precision,
          .largest = format.bias() - 3,
          .limit = precision - 2};
}

TEST(ReciprocalLemmas, HoldForAllNumbersOfSmallFormats) {
  const int most = long_form() ? 8 : 6;
  for (int precision = 4; precision <= most; ++precision) {
    const Lemmas lemmas(small_format(precision));
    const Exhaustion all = run_on_all_inputs(~lemmas.hold, [](double) { return true; });
    ASSERT_TRUE(all.complete);
    EXPECT_FALSE(all.inputs) << "precision " << precision << ": x " << uint64_t((*all.inputs)[0])
                             << ", s " << uint64_t((*all.inputs)[1]);
  }
}

TEST(ReciprocalLemmas, HoldForDrawnNumbers) {
  const Lemmas lemmas(reciprocals_of_f32());
  Evaluator holds(std::span(&lemmas.hold, 1));
  std::mt19937 random(7);
  const int count = long_form() ? 3'000'000 : 100'000;
  for (int i = 0; i < count; ++i) {
    const auto s = std::bit_cast<float>(static_cast<uint32_t>(random()));
    // Nearly halves of integers, and any numbers.
    const auto half = static_cast<float>(static_cast<int>(random() % 600) - 300) + 0.5f;
    auto x = static_cast<uint32_t>(std::bit_cast<uint32_t>(half * s) + random() % 5 - 2);
    if (i % 3 == 0) x = static_cast<uint32_t>(random());
    const std::array<Bits, 2> inputs = {x, std::bit_cast<uint32_t>(s)};
    ASSERT_EQ(holds(inputs)[0], 1u) << "x " << x << ", s " << s;
  }
}

TEST(ReciprocalLemmas, HoldOfConversions) {
  Terms terms;
  const Term number = terms.input("number", f32_format.width());
  const Term converted = float_to_signed(f32_format, Rounding::nearest_even, 32, number);
  const Term hold = conversion_lemmas(reciprocals_of_f32(), number, converted);
  EXPECT_EQ(can_hold(~hold, 10'000'000).kind, Answer::Kind::never);
}

/// A product by a reciprocal is NaN where the quotient is.
TEST(ReciprocalLemmas, AreAddedToTerms) {
  Terms terms;
  const Term x = terms.input("x", f32_format.width());
  const Term s = terms.input("s", f32_format.width());
  const Term one = terms.constant(32, 0x3f800000);
  const auto divided = [](const Term& a, const Term& b) {
    return float_div(f32_format, Rounding::nearest_even, a, b);
  };
  const Term product = float_mul(f32_format, Rounding::nearest_even, x, divided(one, s));
  const Term is_nan_alone = is_nan(f32_format, product) & ~is_nan(f32_format, divided(x, s));
  const Term is_usual = is_nan(f32_format, divided(one, s)) | less_unsigned(s, 0x3f800000) |
                        less_unsigned(like(s, 0x40000000), s);
  EXPECT_FALSE(with_reciprocal_lemmas(is_nan(f32_format, divided(one, s))));
  const auto never = with_reciprocal_lemmas(is_nan_alone & ~is_usual);
  ASSERT_TRUE(never);
  EXPECT_EQ(can_hold(*never, 10'000'000, Arithmetic::any_function).kind, Answer::Kind::never);
}

}  // namespace
}  // namespace castor::prove
