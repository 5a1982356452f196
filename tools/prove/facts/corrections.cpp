// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/facts/corrections.hpp"

#include <fmt/format.h>

#include <array>

#include "tools/prove/facts/replace.hpp"
#include "tools/prove/term/polynomial.hpp"

namespace castor::prove {

using jit::ProductEngine;

namespace {

constexpr int taps = 8;

Term number(const Term& bits, bool is_signed) {
  return is_signed ? extend_sign(bits, 32) : extend_zero(bits, 32);
}

/// An operand as the engine multiplies it: its numbers, and its zero point.
struct Operand {
  std::vector<Term> bits;     ///< the tensor's elements, 8 bits each
  std::vector<Term> numbers;  ///< that are multiplied, 32 bits
  std::vector<Term> exact;    ///< the elements' own
  Term zero_point;            ///< what the numbers are taken less
  Term exact_zero_point;
};

/// `flips`: bytes are xored with 0x80, and read with the other sign.
Operand operand(Terms& terms, const char* name, bool is_signed, bool flips, Bits flip) {
  Operand result;
  const bool reads_signed = is_signed != flips;
  for (int i = 0; i < taps; ++i) {
    result.bits.push_back(terms.input(fmt::format("{}{}", name, i), 8));
    const Term& bits = result.bits.back();
    result.numbers.push_back(number(flips ? bits ^ 0x80 : bits, reads_signed));
    result.exact.push_back(number(bits, is_signed));
  }
  const Term zero_point = terms.input(fmt::format("zero point of {}", name), 8);
  result.exact_zero_point = number(zero_point, is_signed);
  const Term moved =
      is_signed ? like(result.exact_zero_point, flip) : -like(result.exact_zero_point, flip);
  result.zero_point = flips ? result.exact_zero_point + moved : result.exact_zero_point;
  return result;
}

/// A flipped byte is the element's number and 128, or less 128: so it is in sums.
Term with_flips_as_sums(Term sum, const Operand& operand, bool is_signed, FactCheck& check) {
  for (size_t i = 0; i < operand.numbers.size(); ++i) {
    const Term half = like(sum, 0x80);
    const Term moved = is_signed ? operand.exact[i] + half : operand.exact[i] - half;
    check.never(not_equal(operand.numbers[i], moved), "a sign flip");
    sum = replaced(sum, {{operand.numbers[i], moved}});
  }
  return sum;
}

}  // namespace

void check_correction(ProductEngine engine, bool x_is_signed, bool w_is_signed, FactCheck& check,
                      const CorrectionTamper& tamper) {
  const bool is_exchanged = engine == ProductEngine::i8_u8_dot;
  if (is_exchanged && (!x_is_signed || w_is_signed)) return;  // it is chosen for these signs alone
  Terms terms;
  const bool flips_x = jit::takes_u8_by_i8(engine) && x_is_signed;
  const bool flips_w = jit::takes_u8_by_i8(engine) && !w_is_signed;
  const Operand x = operand(terms, "x", x_is_signed, flips_x, tamper.x_flip);
  const Operand w = operand(terms, "w", w_is_signed, flips_w, 0x80);
  const Term zero = terms.constant(32, 0);
  Term products = zero, sum_w = zero, window_sum = zero, specified = zero;
  for (size_t i = 0; i < static_cast<size_t>(taps); ++i) {
    products = products + x.numbers[i] * w.numbers[i];
    sum_w = sum_w + w.numbers[i];
    window_sum = window_sum + x.numbers[i];
    specified = specified + (x.exact[i] - x.exact_zero_point) * (w.exact[i] - w.exact_zero_point);
  }
  const Term count = signed_like(zero, taps + tamper.count_offset);
  const Term start = -x.zero_point * (sum_w - count * w.zero_point);
  Term corrected = products + start - w.zero_point * window_sum;
  if (flips_x) corrected = with_flips_as_sums(corrected, x, x_is_signed, check);
  if (flips_w) corrected = with_flips_as_sums(corrected, w, w_is_signed, check);
  const auto engine_name = names_of(engine)[static_cast<size_t>(engine)];
  check.holds(corrected && equal_expanded(corrected, specified).is_constant(1),
              fmt::format("{}, {} by {}", engine_name, x_is_signed ? "i8" : "u8",
                          w_is_signed ? "i8" : "u8"));
}

void check_words(FactCheck& check, const CorrectionTamper& tamper) {
  const auto low = [](int32_t words) { return int64_t{static_cast<int16_t>(words)}; };
  const auto high = [](int32_t words) { return int64_t{static_cast<int16_t>(words >> 16)}; };
  // l (-z) + (h 2^8)(-z 2^7) is -z (l + h 2^8 2^7): each factor is looked at by itself.
  for (int32_t z = -255; z <= 255; ++z) {
    const int32_t words = jit::pair_of_zero_point(z);
    check.holds(low(words) == -z && high(words) == -z * 128 && jit::zero_point_of_pair(words) == z,
                fmt::format("words of zero point {}", z));
  }
  bool all = true;
  for (int32_t s = 0; s < jit::end_of_pair_sums; ++s) {
    const int32_t words = jit::pair_of_sum(s) ^ tamper.sum_bits;
    all = all && low(words) + high(words) * 128 == s;
  }
  check.holds(all, "words of sums below 2^22");
  Terms terms;
  const auto input = [&](const char* name) { return terms.input(name, 32); };
  const Term l = input("low"), h = input("high"), z = input("zero point");
  const Term sum = l * -z + h * (-z * 128);
  check.holds(equal_expanded(sum, -z * (l + h * 128)).is_constant(1), "products of words");
}

namespace {

FactVerdict decide_corrections(const FactEffort& effort) {
  FactCheck check(effort);
  for (const ProductEngine engine : {ProductEngine::u8_i8_dot, ProductEngine::i8_u8_dot,
                                     ProductEngine::i16_pairs, ProductEngine::tiles}) {
    for (const bool x_is_signed : {false, true}) {
      for (const bool w_is_signed : {false, true}) {
        check_correction(engine, x_is_signed, w_is_signed, check);
      }
    }
  }
  return check.verdict("polynomials and flips");
}

FactVerdict decide_words(const FactEffort& effort) {
  FactCheck check(effort);
  check_words(check);
  return check.verdict("zero points and all sums", Status::exhausted);
}

}  // namespace

std::vector<Fact> correction_facts() {
  return {
      {"convolution: corrections",
       "each engine, all signs: corrected sums are sums of (x - zx)(w - zw) modulo 2^32",
       decide_corrections},
      {"convolution: words of window sums",
       "all sums below 2^22 and all zero points: two products of words are -s z", decide_words}};
}

}  // namespace castor::prove
