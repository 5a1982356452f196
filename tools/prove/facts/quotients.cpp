// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/facts/quotients.hpp"

#include <fmt/format.h>

#include "jit/lane/quotient_facts.hpp"
#include "jit/lane/reciprocals.hpp"
#include "tools/prove/facts/float_lemmas.hpp"

namespace castor::prove {

void check_reciprocals(int slack, FactCheck& check) {
  // Products by a: r is a times the reciprocal, unit a times the reciprocal's last place, q the
  // quotient. Below a power of two the unit is half of it, and so is what rounding is off by.
  RealLemma lemma;
  lemma.reals("q rounded r unit")
      .assume("(and (<= 0.25 q) (< 0.0 unit))")
      .assume(
          fmt::format("(and (<= (* {} unit) r) (<= r (* (- {} 1.0) unit)))", power(23), power(24)))
      .assume("(<= q (+ r (/ unit 2.0)))")
      .rounded("rounded", "q", "q", 24);
  const auto claim = [&](const std::string& where, const std::string& lower) {
    RealLemma copy = lemma;
    copy.assume(where);
    const std::string above = fmt::format("(+ r (* {}.0 unit))", slack);
    check.contradictory(
        copy.claiming(fmt::format("(and (<= {0} q) (<= {0} rounded) (<= q {1}) (<= rounded {1}))",
                                  lower, above)),
        "products by multipliers");
  };
  const std::string least = fmt::format("(* {} unit)", power(23));
  claim(fmt::format("(and (= r {}) (>= q (- r (/ unit 4.0))))", least),
        fmt::format("(- r (* {}.0 (/ unit 2.0)))", slack));
  claim(fmt::format("(and (= r (+ {} unit)) (>= q (- r (/ unit 2.0))))", least),
        fmt::format("(- r (+ unit (* {}.0 (/ unit 2.0))))", slack - 1));
  claim(fmt::format("(and (>= r (+ {} (* 2.0 unit))) (>= q (- r (/ unit 2.0))))", least),
        fmt::format("(- r (* {}.0 unit))", slack));
}

void check_two_steps(int exponent, FactCheck& check) {
  // Products by a: r is a times the reciprocal; what it lacks of the quotient is a (1 - r b) / b,
  // which is rounded once as a quotient and once as a product.
  RealLemma lemma;
  lemma.reals("q r correction small")
      .assume("(and (< 0.5 q) (< q 2.0))")
      // The reciprocal is at most 1: it is off by half of 2^-24; a is below 2.
      .bounded("(- q r)", power(-24))
      .define("lacks", "(- q r)")
      .rounded("correction", "lacks", power(-24), 24)
      .rounded("small", "correction", fmt::format("(* 1.000001 {})", power(-24)), 24)
      .define("sum", "(+ r small)");
  const std::string bound = fmt::format("(* 1.000001 {})", power(exponent));
  check.contradictory(
      lemma.claiming(fmt::format("(and (<= (- sum q) {0}) (<= (- q sum) {0}))", bound)),
      "a product and a multiply-add");
}

void check_bounded_quotients(int exponent, FactCheck& check) {
  // In units of the fraction of the range: x is the dividend, range what the fraction is of.
  RealLemma lemma;
  lemma.reals("x highest lowest range parts reciprocal product")
      .assume("(and (<= 1.0 parts) (<= lowest 0.0) (<= 0.0 highest))")
      .assume("(and (<= lowest x) (<= x highest))")
      .rounded("range", "(- highest lowest)", "(- highest lowest)", 24)
      // range / parts is rounded to 1, to a normal number.
      .assume(fmt::format("(<= (- range parts) (* {} range))", power(-24)))
      .define("a_x", "(ite (< x 0.0) (- x) x)")
      // The reciprocal of the fraction, and the product, are rounded as well.
      .rounded("reciprocal", "x", "a_x", 24)
      .rounded("product", "reciprocal", "(* 2.0 a_x)", 24);
  const std::string bound = fmt::format("(* parts (+ 1.0 {}))", power(exponent));
  check.contradictory(lemma.claiming(fmt::format(
                          "(and (<= a_x {0}) (<= product {0}) (<= (- {0}) product))", bound)),
                      "a number over a fraction of its range");
}

namespace {

template <class Check>
std::function<FactVerdict(const FactEffort&)> deciding(Check run) {
  return [run](const FactEffort& effort) {
    FactCheck check(effort);
    run(check);
    return check.verdict("questions");
  };
}

}  // namespace

std::vector<Fact> quotient_facts() {
  constexpr int slack = static_cast<int>(jit::reciprocal_slack);
  return {{"quotients: multipliers", "a quotient is between its products by both multipliers",
           deciding([](FactCheck& check) { check_reciprocals(slack, check); })},
          {"quotients: two steps", "the sum before it is rounded is within 2^-47 of the quotient",
           deciding([](FactCheck& check) { check_two_steps(-47, check); })},
          {"quotients: bounded", "a number over a fraction of its range has the bound",
           deciding([](FactCheck& check) { check_bounded_quotients(-20, check); })}};
}

}  // namespace castor::prove
