// SPDX-License-Identifier: Apache-2.0
// Lines (x * multiplier + addend) >> shift: for all elements and all slices that are admitted.
//
// The sum of a lane program is, as a polynomial modulo 2^32, d m + half + zy 2^shift with the
// difference d from the zero point. With the product P = d m as an input, sums that fit 32 bits
// give the specification's result, as the solver finds without any product. That the sums of all
// elements fit where those of the least and the largest do follows from their order.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tools/prove/facts/replace.hpp"
#include "tools/prove/facts/requantize_cases.hpp"
#include "tools/prove/facts/requantize_spec.hpp"
#include "tools/prove/facts/requantize_symbolic.hpp"

namespace castor::prove {

using jit::RequantizeForm;

namespace {

/// The library's products: of a difference of 16 bits and a multiplier below 2^15.
constexpr int64_t min_product = -0x8000 * int64_t{0x7fff};
constexpr int64_t max_product = 0x7fff * int64_t{0x7fff};

/// Parameters of a line through the zero points.
struct LineTerms {
  Term x;
  Term d;           ///< 64 bits: x less the zero point
  Term multiplier;  ///< 64 bits
  Term to_zero_point;
  int shift = 0;

  LineTerms(Terms& terms, const RequantizeForm& form, int count, int up)
      : x(terms.input("x", castor::bits_of(form.from_element()))), shift(count) {
    const Term zero_point = signed_64(terms.input("from zero point", 16));
    d = signed_64(x) - zero_point;
    multiplier = shift_left(unsigned_64(terms.input("multiplier", 15)), up);
    to_zero_point = signed_64(terms.input("to zero point", 16));
    addend_ = half() - zero_point * multiplier + shift_left(to_zero_point, shift);
  }

  /// The constants of the method.
  std::array<Term, 3> constants(Terms& terms) const {
    return {truncate(multiplier, 32), truncate(addend_, 32),
            terms.constant(32, static_cast<Bits>(shift))};
  }
  Term half() const { return like(d, shift == 0 ? 0 : Bits{1} << (shift - 1)); }
  /// The sum of a product.
  Term sum(const Term& product) const {
    return product + half() + shift_left(to_zero_point, shift);
  }

 private:
  Term addend_;
};

/// The product P and what is stored of it.
struct Stored {
  Term product;  ///< an input
  Term y;        ///< no term where the program computes another polynomial
  Term broken;
};

/// The library's lines multiply the lower halves of lanes, which hold their numbers.
Term with_whole_lanes(const Term& y, std::initializer_list<Term> lanes, FactCheck& check) {
  Term result = y;
  for (const Term& lane : lanes) {
    const Term half = extend_sign(extract(lane, 0, 16), 32);
    check.never(not_equal(half, lane), "numbers of 16 bits in lanes");
    if (!half.same_as(lane)) result = replaced(result, {{half, lane}});
    if (!result) break;
  }
  return result;
}

Stored stored(const RequantizeForm& form, const LineTerms& line, const RequantizeTamper& tamper,
              FactCheck& check) {
  Terms& terms = line.x.terms();
  Stored result{terms.input("product", 64), {}, terms.truth(false)};
  const auto constants = line.constants(terms);
  Term y = requantized(jit::linear_method(), form, jit::Tier::avx2, line.x, constants,
                       result.broken, tamper);
  if (!form.is_exact()) y = with_whole_lanes(y, {extend_sign(line.x, 32), constants[0]}, check);
  if (!y) return result;
  result.y = replaced(y, {{truncate(line.sum(line.d * line.multiplier), 32),
                           truncate(line.sum(result.product), 32)}});
  return result;
}

Term fits_32_bits(const Term& sum) { return is_between(sum, -(int64_t{1} << 31), 0x7fffffff); }

void check_embarc(const RequantizeForm& form, int shift, FactCheck& check,
                  const RequantizeTamper& tamper) {
  const std::string subject = fmt::format("{}, shift {}", name_of(form), shift);
  Terms terms;
  const LineTerms line(terms, form, shift, 0);
  const Stored found = stored(form, line, tamper, check);
  if (!check.holds(bool(found.y), subject + ": the sum of the lane program")) return;
  const Term& p = found.product;
  const Term value = library_shifted(p, like(p, static_cast<Bits>(shift)), form.rounds_half_up());
  const Term specified = truncate(
      saturated(saturated(value + line.to_zero_point, 32), found.y.width()), found.y.width());
  const Term admitted = is_between(p, min_product, max_product) & fits_32_bits(line.sum(p));
  check.never(admitted & (found.broken | not_equal(found.y, specified)), subject);
}

/// Where the divisor is 2^k, and so is what the ratio is multiplied with: shift is k - e, or up its
/// negative.
void check_exact(const RequantizeForm& form, int k, int exponent, FactCheck& check,
                 const RequantizeTamper& tamper) {
  const int shift = std::max(k - exponent, 0);
  const int up = std::max(exponent - k, 0);
  if (shift > 31 || up > 15 || (shift > 0 && !form.rounds_half_up())) return;
  const std::string subject =
      fmt::format("{}, divisor 2^{}, exponent {}", name_of(form), k, exponent);
  Terms terms;
  const LineTerms line(terms, form, shift, up);
  const Stored found = stored(form, line, tamper, check);
  if (!check.holds(bool(found.y), subject + ": the sum of the lane program")) return;
  // The product with the scale, before it is multiplied by a power of two.
  const Term scaled = terms.input("scaled difference", 64);
  const Term y = replaced(found.y, {{found.product, shift_left(scaled, up)}});
  const SliceTerms slice{.from_scale = terms.constant(64, 1),
                         .from_zero_point = terms.constant(64, 0),
                         .to_scale = terms.constant(64, Bits{1} << k),
                         .to_zero_point = line.to_zero_point,
                         .exponent = exponent};
  const Term right = is_exact_result(form, scaled, y, slice, exact_width(form, exponent));
  const Term admitted = is_between(scaled, -(int64_t{1} << 32), int64_t{1} << 32) &
                        fits_32_bits(line.sum(shift_left(scaled, up)));
  check.never(admitted & (found.broken | ~right), subject);
}

/// A product with what is not negative grows with the other factor, and stays within its bounds.
void check_order(FactCheck& check) {
  Terms terms;
  const Term a = extend_zero(terms.input("a", 17), 49);
  const Term m = extend_zero(terms.input("m", 31), 49);
  check.never(less_signed(a * m, 0), "a product of numbers that are not negative");
  const Term d = extend_sign(terms.input("d", 16), 32);
  const Term s = extend_zero(terms.input("s", 15), 32);
  check.never(~is_between(d * s, min_product, max_product), "the library's products");
}

}  // namespace

FactVerdict check_embarc_lines(const FactEffort& effort, const RequantizeTamper& tamper) {
  FactCheck check(effort);
  for (const RequantizeForm& form : forms_of(jit::linear_method())) {
    if (form.is_exact()) continue;
    for (int shift = 0; shift <= (form.rounds_half_up() ? 31 : 0) && check.goes_on();
         shift += step_of(effort, 6)) {
      check_embarc(form, shift, check, tamper);
    }
  }
  check_order(check);
  return check.verdict("questions");
}

FactVerdict check_exact_lines(const FactEffort& effort, const RequantizeTamper& tamper) {
  constexpr std::array few = {-31, -8, 0, 15};
  FactCheck check(effort);
  for (const RequantizeForm& form : forms_of(jit::linear_method())) {
    if (!form.is_exact()) continue;
    for (int k = 0; k <= 14; k += step_of(effort, 14)) {
      for (int up = -31; up <= 15 && check.goes_on(); ++up) {
        const bool is_taken = effort.is_long || std::ranges::find(few, up) != few.end();
        if (is_taken) check_exact(form, k, k + up, check, tamper);
      }
    }
  }
  return check.verdict("questions");
}

}  // namespace castor::prove
