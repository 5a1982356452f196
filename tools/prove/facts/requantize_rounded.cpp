// SPDX-License-Identifier: Apache-2.0
// Rounded floats: x * factor + addend, rounded to the nearest integer, for all slices.
//
// The lane program's term is checked to be the one below. The lemma says, of real numbers, that all
// roundings together are less than the lift, whatever the slice's parameters, as far as `prepare`
// admits them by its own sums, which are rounded too. Numbers are
//   r      the exact ratio (or the library's), rr its f64, rf the factor of the program
//   zr     the source's zero point times r        w  the destination's zero point
//   u      x times r, so that v = u - zr + w is the exact value
//   lift   half of the least distance of a value from a middle that it does not meet
// Products of one variable by another appear as variables of their own; what rounding does to a
// factor, it does to its products in proportion.
#include <fmt/format.h>

#include <array>

#include "tools/prove/facts/float_lemmas.hpp"
#include "tools/prove/facts/replace.hpp"
#include "tools/prove/facts/requantize_symbolic.hpp"
#include "tools/prove/term/float_terms.hpp"

namespace castor::prove {

using jit::RequantizeForm;

namespace {

constexpr Rounding nearest = Rounding::nearest_even;

/// Where the exact value is: among the results and the next ones, or beyond.
struct Region {
  std::string_view condition;
  std::string_view magnitude;  ///< a bound of v's
};
constexpr std::array<Region, 3> regions = {
    {{"(and (<= (- max) v) (<= v max))", "max"}, {"(> v max)", "v"}, {"(< v (- max))", "(- v)"}}};

/// What a slice's constants are in exact numbers, and what `prepare` makes of them in f64. Names
/// with a_ are bounds of magnitudes.
void declare_slice(RealLemma& lemma, int bits, const Region& region) {
  lemma.reals("u zr w lift distance rr_zr rr_u product difference addend parts")
      .reals("a_u a_zr a_w m")
      // A distance is gcd(a, b) / 2 b, rounded; it is halved exactly.
      .assume("(and (<= 0.0 a_w) (<= a_w 32768.0) (> distance 0.0) (<= distance 0.5))")
      .rounded("lift", "(/ distance 2.0)", "distance", 54)
      .define("v", "(+ (- u zr) w)")
      .define("max", fmt::format("(+ {} 2.0)", power(bits - 1)))
      .define("last_middle", fmt::format("(- {} 0.5)", power(bits - 1)))
      .assume(region.condition)
      .bounded("zr", "a_zr")
      .bounded("w", "a_w")
      .bounded("u", "a_u")
      .assume(fmt::format("(<= a_u (+ {} a_zr a_w))", region.magnitude))
      // The ratio is rounded to f64: so are, in proportion, its products; and they again.
      .rounded("rr_zr", "zr", "a_zr", 53)
      .rounded("rr_u", "u", "a_u", 53)
      .define("more_zr", "(* 1.000000000001 a_zr)")
      .rounded("product", "rr_zr", "more_zr", 53)
      .rounded("difference", "(- w product)", "(+ a_w more_zr)", 53)
      .rounded("addend", "(+ difference lift)", "(+ a_w more_zr lift)", 53)
      // Sums of what is not negative, rounded a few times.
      .assume(fmt::format("(>= parts (* (- 1.0 {}) (+ a_w a_zr lift)))", power(-50)));
}

/// The claims: the program's value is on v's side of a middle m between two results that v misses
/// by at least the distance, or above it where v meets it.
constexpr std::string_view right_side =
    "(=> (and (<= (- last_middle) m) (<= m last_middle))"
    "    (and (=> (<= v (- m distance)) (< f m))"
    "         (=> (or (>= v (+ m distance)) (= v m)) (> f m))))";

/// Float of `digits` bits; `scale` is what the bound of errors is multiplied with, which is 1.
std::string rounded_float_lemma(int bits, int digits, const Region& region, double scale) {
  RealLemma lemma;
  declare_slice(lemma, bits, region);
  lemma.reals("errors rf_u af f")
      .assume(fmt::format("(>= errors (* {} {} (+ (* {} (+ (* 2.0 max) (* 2.0 parts) 2.0)) "
                          "(* {} parts))))",
                          real(scale), "(- 1.0 " + power(-50) + ")", power(-digits), power(-50)))
      .assume("(< errors lift)")
      .assume(digits == 53 ? "(and (= rf_u rr_u) (= af addend))" : "true")
      .define("more_u", "(* 1.000000000001 a_u)")
      .define("more_a", "(+ a_w (* 1.000000000001 a_zr) lift)")
      .rounded("rf_u", "rr_u", "more_u", digits)
      .rounded("af", "addend", "more_a", digits)
      .define("off", fmt::format("(+ (* {} (+ more_u more_a)) {})", power(1 - digits), power(-100)))
      .rounded("f", "(+ rf_u af)", fmt::format("(+ {} lift off)", region.magnitude), digits);
  return lemma.claiming(right_side);
}

std::string split_float_lemma(int bits, const Region& region, double scale) {
  RealLemma lemma;
  declare_slice(lemma, bits, region);
  lemma.reals("errors high_u low_u af low f")
      .assume(fmt::format("(>= errors (* {} {} (+ {} (* {} parts) (* {} (+ {} parts)))))",
                          real(scale), "(- 1.0 " + power(-50) + ")", power(bits - 26), power(-23),
                          power(-46), power(bits)))
      .assume("(< errors lift)")
      .define("more_u", "(* 1.000000000001 a_u)")
      .define("more_a", "(+ a_w (* 1.000000000001 a_zr) lift)")
      .rounded("high_u", "rr_u", "more_u", 24)
      .define("a_remainder", fmt::format("(+ (* {} more_u) {})", power(-24), power(-140)))
      .rounded("low_u", "(- rr_u high_u)", "a_remainder", 24)
      .rounded("af", "addend", "more_a", 24)
      .rounded("low", "(+ low_u af)", "(+ a_remainder a_remainder more_a)", 24)
      .define("sum", "(+ high_u low)")
      .rounded("f", "sum",
               fmt::format("(* 1.000000000001 (+ {} lift a_remainder more_a))", region.magnitude),
               24)
      // Below 2^(bits - 1) a sum is off by half a unit in the last place of 2^(bits - 2).
      .assume(fmt::format("(=> (and (< (- {0}) sum) (< sum {0})) (and (<= (- f sum) {1}) "
                          "(<= (- sum f) {1})))",
                          power(bits - 1), power(bits - 26)))
      // Rounding keeps order with numbers that floats hold.
      .assume(fmt::format("(and (=> (>= sum {0}) (>= f {0})) (=> (<= sum (- {0})) (<= f (- {0}))))",
                          power(bits - 1)));
  return lemma.claiming(right_side);
}

/// The sum is converted to 32 bits: it is not beyond the largest float below 2^31, to which it
/// would be rounded, as `prepare` bounds the largest product and the addend.
std::string range_lemma() {
  RealLemma lemma;
  lemma.reals("rr_u addend a_u a_addend largest rf_u af")
      .bounded("rr_u", "a_u")
      .bounded("addend", "a_addend")
      .assume(fmt::format("(>= largest (* (- 1.0 {}) (+ a_u a_addend)))", power(-50)))
      .assume(fmt::format("(< largest (- {} {}))", power(31), power(8)))
      .rounded("rf_u", "rr_u", "a_u", 24)
      .rounded("af", "addend", "a_addend", 24);
  const std::string end = fmt::format("(- {} {})", power(31), power(6));
  return lemma.claiming(fmt::format("(and (< (+ rf_u af) {0}) (< (- {0}) (+ rf_u af)))", end));
}

/// The program's term on constants that are inputs: the sums and the conversion, as the lemma has
/// them.
Term expected(const RequantizeForm& form, const Term& x, std::span<const Term> constants) {
  const FloatFormat f = constants[0].width() == 64 ? f64_format : f32_format;
  const Term whole = signed_to_float(f, nearest, extend_sign(x, 32));
  Term sum = constants.back();
  for (size_t i = constants.size() - 1; i-- > 0;) {
    sum = x86::fma(f, nearest, whole ^ f.sign(), constants[i], sum);
  }
  const int bits = castor::bits_of(form.to_element());
  const Term integer = float_to_signed(f, nearest, 32, sum);
  const Term max = like(integer, low_mask(bits - 1));
  return truncate(max_signed(min_signed(integer, max), ~max), bits);
}

FactVerdict check_lemmas(const jit::RequantizeMethod& method, const FactEffort& effort,
                         const RequantizeTamper& tamper, std::initializer_list<int> widths,
                         const std::function<std::string(int bits, const Region&)>& lemma) {
  FactCheck check(effort);
  check_programs(method, expected, check, tamper);
  check.contradictory(range_lemma(), "the range of sums");
  for (const int bits : widths) {
    for (const Region& region : regions) {
      check.contradictory(lemma(bits, region),
                          fmt::format("roundings of {} bits, {}", bits, region.condition));
    }
  }
  return check.verdict("questions");
}

}  // namespace

FactVerdict check_rounded_floats(const FactEffort& effort, const RequantizeTamper& tamper) {
  return check_lemmas(jit::rounded_float_method(), effort, tamper, {8, 16},
                      [&](int bits, const Region& region) {
                        return rounded_float_lemma(bits, 24, region, tamper.bound_of_errors);
                      });
}

FactVerdict check_rounded_doubles(const FactEffort& effort, const RequantizeTamper& tamper) {
  return check_lemmas(jit::rounded_double_method(), effort, tamper, {8, 16, 32},
                      [&](int bits, const Region& region) {
                        return rounded_float_lemma(bits, 53, region, tamper.bound_of_errors);
                      });
}

FactVerdict check_split_floats(const FactEffort& effort, const RequantizeTamper& tamper) {
  return check_lemmas(jit::split_rounded_float_method(), effort, tamper, {8, 16},
                      [&](int bits, const Region& region) {
                        return split_float_lemma(bits, region, tamper.bound_of_errors);
                      });
}

}  // namespace castor::prove
