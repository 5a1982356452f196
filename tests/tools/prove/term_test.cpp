// SPDX-License-Identifier: Apache-2.0
// Terms: floats against the processor, simplification against plain evaluation.
#include "tools/prove/term/term.hpp"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <array>
#include <bit>
#include <cmath>
#include <random>

#include "tools/prove/term/canonical.hpp"
#include "tools/prove/term/evaluate.hpp"
#include "tools/prove/term/float_terms.hpp"
#include "tools/prove/term/soft_float.hpp"

namespace castor::prove {
namespace {

/// Bits of floats whose exponents are often near each other, near the ends, or near integers.
class Draw {
 public:
  uint64_t operator()(FloatFormat format) {
    const uint64_t random = bits_();
    const auto fraction = static_cast<uint64_t>(low_mask(format.fraction_bits()));
    const std::array<uint64_t, 5> fractions = {random & fraction, 0, 1, fraction,
                                               (random & 3) << (format.fraction_bits() - 2)};
    const auto max = static_cast<uint64_t>(low_mask(format.exponent_bits));
    const auto near = static_cast<uint64_t>(format.bias()) + bits_() % 64 - 20;
    const std::array<uint64_t, 6> exponents = {0, 1, max - 1, max, bits_() % (max + 1), near};
    const uint64_t sign = bits_() % 2 == 0 ? 0 : static_cast<uint64_t>(format.sign());
    return sign | (exponents[bits_() % 6] & max) << format.fraction_bits() | fractions[bits_() % 5];
  }

 private:
  std::mt19937_64 bits_{1};
};

constexpr Rounding directions[] = {Rounding::nearest_even, Rounding::down, Rounding::up,
                                   Rounding::toward_zero};

/// Runs a function under MXCSR's direction of rounding, exceptions masked.
template <class Function>
auto rounded(Rounding rounding, Function function) {
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(0x1f80 | static_cast<unsigned>(rounding) << 13);
  const auto result = function();
  _mm_setcsr(saved);
  return result;
}

/// Intrinsics on values that the compiler does not know and cannot move.
template <class Value>
Value opaque(Value value) {
  asm volatile("" : "+x"(value)::"memory");
  return value;
}
__m128 single(uint64_t bits) {
  return opaque(_mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int>(bits))));
}
__m128d doubled(uint64_t bits) {
  return opaque(_mm_castsi128_pd(_mm_cvtsi64_si128(static_cast<long long>(bits))));
}
uint64_t bits_of(__m128 value) {
  return static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_castps_si128(opaque(value))));
}
uint64_t bits_of(__m128d value) {
  return static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_castpd_si128(opaque(value))));
}

/// Instructions that the compiler knows only for newer processors, in MXCSR's direction.
__m128 round_ss(__m128 value) {
  asm volatile("roundss $4, %0, %0" : "+x"(value));
  return value;
}
__m128d round_sd(__m128d value) {
  asm volatile("roundsd $4, %0, %0" : "+x"(value));
  return value;
}
__m128 cvtph_ps(uint64_t half) {
  __m128 value = _mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int>(half)));
  asm volatile("vcvtph2ps %0, %0" : "+x"(value));
  return value;
}
uint64_t cvtps_ph(__m128 value) {
  asm volatile("vcvtps2ph $4, %0, %0" : "+x"(value));
  return bits_of(value) & 0xffff;
}

uint64_t value_of(const Term& term) { return static_cast<uint64_t>(term.value()); }

constexpr int draws = 20'000;

TEST(Term, F32IsTheProcessors) {
  Draw draw;
  for (int i = 0; i < draws; ++i) {
    const Rounding to = directions[i % 4];
    const uint64_t a = draw(f32_format), b = draw(f32_format);
    Terms terms;
    const Term x = terms.constant(32, a), y = terms.constant(32, b);
    const auto check = [&](const char* what, const Term& term, auto instruction) {
      ASSERT_EQ(value_of(term), rounded(to, [&] { return bits_of(instruction()); }))
          << what << std::hex << " 0x" << a << " 0x" << b;
    };
    const FloatFormat f = f32_format;
    check("add", x86::add(f, to, x, y), [&] { return _mm_add_ss(single(a), single(b)); });
    check("sub", x86::sub(f, to, x, y), [&] { return _mm_sub_ss(single(a), single(b)); });
    check("mul", x86::mul(f, to, x, y), [&] { return _mm_mul_ss(single(a), single(b)); });
    check("div", x86::div(f, to, x, y), [&] { return _mm_div_ss(single(a), single(b)); });
    check("sqrt", x86::sqrt(f, to, x), [&] { return _mm_sqrt_ss(single(a)); });
    check("min", x86::min(f, x, y), [&] { return _mm_min_ss(single(a), single(b)); });
    check("max", x86::max(f, x, y), [&] { return _mm_max_ss(single(a), single(b)); });
    check("round", x86::round(f, to, x), [&] { return round_ss(single(a)); });
    const Term narrow = x86::convert(f64_format, f, to, terms.constant(64, a << 32 | b));
    check("f64 to f32", narrow, [&] { return _mm_cvtsd_ss(single(0), doubled(a << 32 | b)); });
    check("i64 to f32", signed_to_float(f, to, terms.constant(64, a << 32 | b)),
          [&] { return _mm_cvtsi64_ss(single(0), static_cast<long long>(a << 32 | b)); });
  }
}

TEST(Term, F64IsTheProcessors) {
  Draw draw;
  for (int i = 0; i < draws; ++i) {
    const Rounding to = directions[i % 4];
    const uint64_t a = draw(f64_format), b = draw(f64_format);
    Terms terms;
    const Term x = terms.constant(64, a), y = terms.constant(64, b);
    const auto check = [&](const char* what, const Term& term, auto instruction) {
      ASSERT_EQ(value_of(term), rounded(to, [&] { return bits_of(instruction()); }))
          << what << std::hex << " 0x" << a << " 0x" << b;
    };
    const FloatFormat f = f64_format;
    check("add", x86::add(f, to, x, y), [&] { return _mm_add_sd(doubled(a), doubled(b)); });
    check("sub", x86::sub(f, to, x, y), [&] { return _mm_sub_sd(doubled(a), doubled(b)); });
    check("mul", x86::mul(f, to, x, y), [&] { return _mm_mul_sd(doubled(a), doubled(b)); });
    check("div", x86::div(f, to, x, y), [&] { return _mm_div_sd(doubled(a), doubled(b)); });
    check("sqrt", x86::sqrt(f, to, x), [&] { return _mm_sqrt_sd(doubled(0), doubled(a)); });
    check("round", x86::round(f, to, x), [&] { return round_sd(doubled(a)); });
    const Term wide = x86::convert(f32_format, f, to, terms.constant(32, a >> 32));
    check("f32 to f64", wide, [&] { return _mm_cvtss_sd(doubled(0), single(a >> 32)); });
    check("i64 to f64", signed_to_float(f, to, x),
          [&] { return _mm_cvtsi64_sd(doubled(0), static_cast<long long>(a)); });
    const auto integer = rounded(to, [&] { return _mm_cvtsd_si64(doubled(a)); });
    ASSERT_EQ(value_of(float_to_signed(f, to, 64, x)), static_cast<uint64_t>(integer));
    const auto narrow = rounded(to, [&] { return _mm_cvtsd_si32(doubled(a)); });
    ASSERT_EQ(value_of(float_to_signed(f, to, 32, x)), static_cast<uint32_t>(narrow));
  }
}

TEST(Term, FusedProductsAndRemaindersAreTheLibrarys) {
  Draw draw;
  for (int i = 0; i < draws; ++i) {
    const uint64_t a = draw(f64_format), b = draw(f64_format), c = draw(f64_format);
    const auto value = [](uint64_t bits) { return std::bit_cast<double>(bits); };
    const auto same = [&](Bits ours, double theirs) {
      const auto expected = std::isnan(theirs) ? f64_format.nan() : std::bit_cast<uint64_t>(theirs);
      return ours == expected;
    };
    const Bits fused = soft::fma(f64_format, Rounding::nearest_even, a, b, c);
    ASSERT_TRUE(same(fused, std::fma(value(a), value(b), value(c)))) << std::hex << a << b << c;
    const Bits left = soft::remainder(f64_format, a, b);
    ASSERT_TRUE(same(left, std::fmod(value(a), value(b)))) << std::hex << a << " " << b;
  }
}

TEST(Term, F16ConversionsAreTheProcessors) {
  Draw draw;
  Terms terms;
  for (uint64_t half = 0; half < 0x10000; ++half) {
    const __m128 wide = cvtph_ps(half);
    const Term term =
        x86::convert(f16_format, f32_format, Rounding::nearest_even, terms.constant(16, half));
    ASSERT_EQ(value_of(term), bits_of(wide)) << half;
  }
  for (int i = 0; i < draws; ++i) {
    const uint64_t a = draw(f32_format);
    const Rounding to = directions[i % 4];
    const uint64_t half = rounded(to, [&] { return cvtps_ph(single(a)); });
    const Term term = x86::convert(f32_format, f16_format, to, terms.constant(32, a));
    ASSERT_EQ(value_of(term), half) << std::hex << a;
  }
}

/// A term that uses each builder of integers, of random shape.
Term random_term(std::mt19937_64& random, std::vector<Term> known, Terms& terms) {
  for (int i = 0; i < 30; ++i) {
    const auto pick = [&] { return known[random() % known.size()]; };
    const Term a = pick(), b = pick(), c = pick();
    const int low = static_cast<int>(random() % 31);
    const int part = 1 + static_cast<int>(random() % static_cast<uint64_t>(32 - low));
    const Term by = terms.constant(32, random() % 40);
    const std::array<Term, 18> candidates = {a + b,
                                             a - b,
                                             a * b,
                                             a & b,
                                             a | b,
                                             a ^ b,
                                             ~a,
                                             shift_left(a, by),
                                             shift_right(a, by),
                                             shift_right_signed(a, random() % 2 == 0 ? by : b),
                                             shift_left(a, b),
                                             extend_zero(extract(a, low, part), 32),
                                             extend_sign(extract(a, low, part), 32),
                                             concat(extract(a, 0, 16), extract(b, 16, 16)),
                                             if_then_else(less_signed(a, b), b, c),
                                             if_then_else(equal(a, b), terms.constant(32, 7), c),
                                             extend_zero(less_unsigned(a, b), 32),
                                             urem(udiv(a, b), c)};
    known.push_back(candidates[random() % candidates.size()]);
  }
  return known.back();
}

TEST(Term, RandomTermsMeanTheSameOnInputsAndOnConstants) {
  for (uint64_t seed = 0; seed < 2'000; ++seed) {
    Terms terms;
    std::mt19937_64 values(seed + 1'000'000);
    std::vector<Term> inputs, constants;
    std::vector<Bits> bits;
    for (const char* name : {"a", "b", "c"}) {
      bits.push_back(values() >> (values() % 64) & 0xffffffff);
      inputs.push_back(terms.input(name, 32));
      constants.push_back(terms.constant(32, bits.back()));
    }
    std::mt19937_64 shape(seed), again(seed);
    const Term symbolic = random_term(shape, inputs, terms);
    const Term concrete = random_term(again, constants, terms);
    ASSERT_TRUE(concrete.is_constant());
    ASSERT_EQ(value_of(concrete), static_cast<uint64_t>(evaluate(symbolic, bits))) << seed;
    ASSERT_EQ(value_of(substitute(symbolic, constants, terms)), value_of(concrete)) << seed;
  }
}

TEST(Term, CanonicalTextsDoNotDependOnNamesAndOrder) {
  Terms terms, others;
  const Term a = terms.input("a", 8), b = terms.input("b", 8);
  others.constant(8, 99);
  const Term q = others.input("q", 8), p = others.input("p", 8);
  const Term sum = (a + b) ^ shift_left(a, b);
  EXPECT_EQ(canonical_text(sum), canonical_text(shift_left(q, p) ^ (p + q)));
  EXPECT_EQ(canonical_hash(sum), canonical_hash((p + q) ^ shift_left(q, p)));
  EXPECT_NE(canonical_hash(sum), canonical_hash((p + q) ^ shift_left(p, p)));
  EXPECT_TRUE((a + b).same_as(b + a));
}

}  // namespace
}  // namespace castor::prove
