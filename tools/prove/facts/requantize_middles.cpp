// SPDX-License-Identifier: Apache-2.0
// Methods that compute a value closely and rely on how far values are from the middles between two
// integers that they do not meet: a quotient in f32, products in f64.
//
// Lemmas are about positive values q and middles m; negative ones have the same magnitudes.
#include <fmt/format.h>

#include "jit/requantize/double_lanes.hpp"
#include "tools/prove/facts/float_lemmas.hpp"
#include "tools/prove/facts/replace.hpp"
#include "tools/prove/facts/requantize_spec.hpp"
#include "tools/prove/facts/requantize_symbolic.hpp"
#include "tools/prove/term/evaluate.hpp"
#include "tools/prove/term/float_terms.hpp"

namespace castor::prove {

using jit::RequantizeForm;

namespace {

constexpr Rounding nearest = Rounding::nearest_even;

/// q is the exact quotient, that is x times the ratio; the others are x times the parts of the
/// factor that `prepare` makes, and the sum of the two products before it is rounded.
RealLemma quotient_lemma(double more_low) {
  RealLemma lemma;
  lemma.reals("q m r64 high remainder low64 low32 low sum")
      .assume("(and (<= 0.5 m) (<= 0.0 q) (<= q (* 2.0 m)))")
      .rounded("r64", "q", "q", 53)
      // The f32 below the ratio.
      .assume(fmt::format("(and (<= (* (- 1.0 {}) q) high) (<= high r64))", power(-22)))
      .define("exact_low",
              fmt::format("(+ (* (- r64 high) (+ 1.0 {})) (* r64 {}))", power(-22), power(-50)))
      .rounded("low64", "exact_low", fmt::format("(* {} q)", power(-20)), 51)
      .assume(fmt::format("(= remainder (* {} low64))", real(more_low)))
      .rounded("low32", "remainder", "remainder", 24)
      .assume("(<= 0.0 remainder)")
      .rounded("low", "low32", "low32", 24)
      .assume("(<= 0.0 low32)")
      .assume("(= sum (+ high low))");
  return lemma;
}

/// A float's neighbours are at least 2^-24 of it away; middles that are no powers of two have at
/// most 17 bits, so that they are so much more than a power of two that half of their unit in the
/// last place is less than that.
void check_quotient_lemma(FactCheck& check, double more_low) {
  const std::string half_unit = fmt::format("(/ (* m {}) (+ 1.0 {}))", power(-24), power(-16));
  const RealLemma lemma = quotient_lemma(more_low);
  const auto claim = [&](const std::string& assumed, const std::string& claimed,
                         std::string_view subject) {
    RealLemma copy = lemma;
    copy.assume(assumed);
    check.contradictory(copy.claiming(claimed), subject);
  };
  claim(fmt::format("(<= q (* m (- 1.0 {})))", power(-24)),
        fmt::format("(< sum (- m {}))", half_unit), "quotients below a middle");
  claim("(= q m)", fmt::format("(and (<= m sum) (< sum (+ m (* m {}))))", power(-26)),
        "quotients that are a middle");
  claim(fmt::format("(>= q (* m (+ 1.0 {})))", power(-24)),
        fmt::format("(> sum (+ m {}))", half_unit), "quotients above a middle");
  // A middle 1/2 or 1: numbers above are only 2^-24 of it away if their factor is near 2, and
  // scales have 15 bits; half of their unit is 2^-24 of them.
  claim(fmt::format("(>= q (* m (+ 1.0 (* {} (+ 1.0 {})))))", power(-24), power(-15)),
        fmt::format("(> sum (* m (+ 1.0 {})))", power(-24)), "quotients above a power of two");
}

/// The quotient, rounded once, of a lane program with its constants as inputs.
Term quotient_of(const RequantizeForm& form, const Term& x, std::span<const Term> constants) {
  constexpr FloatFormat f = f32_format;
  const Term value = form.from ? signed_to_float(f, nearest, extend_sign(x, 32)) : x;
  if (constants.size() == 1) return x86::mul(f, nearest, value, constants[0]);
  const Term low = x86::mul(f, nearest, value, constants[1]);
  return x86::fma(f, nearest, value ^ f.sign(), constants[0], low);
}

Term number_or_zero(FloatFormat f, const Term& a) {
  return if_then_else(~unordered(f, a, a), a, like(a, 0));
}

/// Bounded to 2^20; NaN as 0.
Term bounded_number(const Term& quotient) {
  constexpr FloatFormat f = f32_format;
  const Term limit = like(quotient, 0x49800000);  // 2^20
  const Term is_far = less_unsigned(limit, magnitude_of(f, quotient));
  const Term bounded = if_then_else(is_far, limit | (quotient & f.sign()), quotient);
  return if_then_else(is_nan(f, quotient), like(quotient, 0), bounded);
}

/// What the first rounding, conversion or sum of floats is of, a constant or `other` aside.
Term first_operand(const Term& term, const Term& other) {
  for (const uint32_t id : reachable_nodes(std::span(&term, 1))) {
    const Term node(&term.terms(), id);
    const bool is_step = node.op() == TermOp::float_round || node.op() == TermOp::float_to_signed ||
                         node.op() == TermOp::float_add;
    if (!is_step) continue;
    const Term first = node.operand(0);
    return first.is_constant() || first.same_as(other) ? node.operand(1) : first;
  }
  return {};
}

/// What is stored of a quotient that is bounded.
Term stored_quotient(const RequantizeForm& form, const Term& quotient,
                     std::span<const Term> constants) {
  constexpr FloatFormat f = f32_format;
  const bool has_zero_point = constants.size() > 1;
  Term result;
  if (form.rounds_half_up()) {
    const Term halves = float_to_signed(f, Rounding::down, 32, quotient);
    result = shift_right_signed(halves + (has_zero_point ? constants[2] : like(halves, 1)), 1);
  } else {
    const Term rounder = like(quotient, 0x4b400000);  // 1.5 * 2^23
    result = x86::add(f, nearest, quotient, has_zero_point ? constants[2] : rounder) - rounder;
  }
  const int bits = castor::bits_of(form.to_element());
  return truncate(saturated(result, bits), bits);
}

/// That a program with its quotient as an input stores what is expected of it. Quotients of whole
/// numbers are no NaNs, and at most 2^20.
void check_quotient_program(const RequantizeForm& form, jit::Tier tier, FactCheck& check,
                            const RequantizeTamper& tamper) {
  const auto& method = jit::float_quotient_method();
  Terms terms;
  const Term x = terms.input("x", castor::bits_of(form.from_element()));
  std::vector<Term> constants;
  for (const ElementType type : method.constants(form)) {
    constants.push_back(terms.input("constant", castor::bits_of(type)));
  }
  const Term input = terms.input("quotient", 32);
  Term broken = terms.truth(false);
  const Term whole = requantized(method, form, tier, x, constants, broken, tamper);
  const Term y = replaced(whole, {{quotient_of(form, x, constants), input}});
  if (!check.holds(bool(y), name_of(form) + ": the quotient")) return;
  Term remainder = y;
  if (!form.from) {
    const Term bounded = first_operand(y, constants.back());
    if (!check.holds(bool(bounded), name_of(form) + ": the bounded quotient")) return;
    check.never(not_equal(bounded, bounded_number(input)), name_of(form) + ": bounds");
    remainder = replaced(y, {{bounded, input}});
  }
  const Term wrong = broken | not_equal(remainder, stored_quotient(form, input, constants));
  check.never_for_any_arithmetic(wrong, name_of(form) + ": the lane program");
}

/// The steps after a value in f64: the sum with the number that rounds, and clamps.
Term clamped_sum(const Term& sum, ElementType type) {
  constexpr FloatFormat f = f64_format;
  const auto bits_of_number = [](double value) { return Bits{std::bit_cast<uint64_t>(value)}; };
  const auto end = [&](double value) {
    return like(sum, bits_of_number(jit::double_rounder + value));
  };
  const Term above = x86::max(f, end(static_cast<double>(integer_min(type))), sum);
  return x86::min(f, end(static_cast<double>(integer_max(type))), above);
}

Term double_constant(Terms& terms, double value) {
  return terms.constant(64, std::bit_cast<uint64_t>(value));
}

Term lifted(const Term& value) {
  constexpr FloatFormat f = f64_format;
  const Term factor = double_constant(value.terms(), -0x1p-50);
  return x86::fma(f, nearest, magnitude_of(f, value) ^ f.sign(), factor, value);
}

Term clamped_between(const Term& value, double low, double high) {
  constexpr FloatFormat f = f64_format;
  Terms& terms = value.terms();
  const Term above = x86::max(f, double_constant(terms, low), value);
  return x86::min(f, double_constant(terms, high), above);
}

Term double_source(const RequantizeForm& form, const Term& x, const Term& zero_point) {
  constexpr FloatFormat f = f64_format;
  if (!form.from) {
    const Term number = number_or_zero(f32_format, x);
    return clamped_between(x86::convert(f32_format, f, nearest, number), -0x1p300, 0x1p300);
  }
  const Term whole = signed_to_float(f, nearest, extend_sign(x, 32));
  const Term difference = x86::sub(f, nearest, whole, zero_point);
  if (form.is_exact()) return difference;
  const ElementType type = form.has_32_bits() ? ElementType::i32 : ElementType::i16;
  return clamped_between(difference, static_cast<double>(integer_min(type)),
                         static_cast<double>(integer_max(type)));
}

Term stored_sum(const RequantizeForm& form, const Term& sum) {
  return truncate(clamped_sum(sum, form.to_element()), castor::bits_of(form.to_element()));
}

Term expected_double(const RequantizeForm& form, const Term& x, std::span<const Term> constants) {
  constexpr FloatFormat f = f64_format;
  const Term d = double_source(form, x, constants[0]);
  const Term product = x86::mul(f, nearest, d, constants[1]);
  Term sum;
  if (form.rounds_half_up()) {
    sum = x86::add(f, nearest, lifted(product), constants[2]);
  } else if (form.is_exact()) {
    const Term low = x86::mul(f, nearest, d, constants[3]);
    sum = x86::add(f, nearest, x86::fma(f, nearest, d ^ f.sign(), constants[1], low), constants[2]);
  } else {
    sum = x86::add(f, nearest, product, constants[2]);
  }
  const bool adds_later =
      !form.is_exact() && (!form.rounds_half_up() || form.to == QuantizedFormat::sa32);
  if (adds_later) sum = x86::add(f, nearest, clamped_sum(sum, ElementType::i32), constants[3]);
  return stored_sum(form, sum);
}

Term expected_cut(const RequantizeForm& form, const Term& x, std::span<const Term> constants) {
  constexpr FloatFormat f = f64_format;
  Terms& terms = x.terms();
  const Term d = double_source(form, x, constants[0]);
  const Term product = x86::mul(f, nearest, d, constants[1]);
  const Term moved = x86::add(f, nearest, d, double_constant(terms, 0.5));
  const Term unit = x86::mul(f, nearest, moved & f.infinity(), constants[2]);
  const Term inverse = terms.constant(64, 0x7FE0000000000000) - unit;
  const Term units = x86::round(f, Rounding::down, x86::mul(f, nearest, product, inverse));
  const Term cut = x86::mul(f, nearest, units, unit);
  const Term value = form.rounds_half_up() ? lifted(cut) : cut;
  const Term sum = x86::add(f, nearest, value, double_constant(terms, jit::double_rounder));
  return stored_sum(form, x86::add(f, nearest, clamped_sum(sum, ElementType::i32), constants[3]));
}

/// q is the magnitude of the exact value; N = 2 b q and the odd multiple of b that is 2 b m are
/// whole numbers, of which the first is at most 2^49 where the result does not saturate: so they
/// are equal, or differ by 2^-49 of q. The product is off by two roundings. Magnitudes of negative
/// values become less by the lift.
void check_lift(FactCheck& check, bool is_negative, double factor) {
  const double lift = is_negative ? -factor : factor;
  RealLemma lemma;
  lemma.reals("q m distance product lifted")
      .assume("(and (< 0.0625 q) (< 0.0 m))")
      .rounded("product", "q", "(* 2.000001 q)", 53)
      .rounded("lifted", fmt::format("(* product (+ 1.0 (* {} {})))", real(lift), power(-50)),
               "(* 1.000000000001 q)", 53)
      .assume(fmt::format("(>= distance (* {} q))", power(-49)));
  const auto claim = [&](std::string_view assumed, std::string_view claimed,
                         std::string_view subject) {
    RealLemma copy = lemma;
    copy.assume(assumed);
    check.contradictory(copy.claiming(claimed), subject);
  };
  claim("(= q m)", is_negative ? "(< lifted m)" : "(> lifted m)", "values that are a middle");
  claim("(<= q (- m distance))", "(< lifted m)", "values below a middle");
  claim("(>= q (+ m distance))", "(> lifted m)", "values above a middle");
}

/// Ties to even: the factor in two parts gives a sum so near to the exact value that it is rounded
/// to a middle, which f64 holds, from that alone.
void check_two_parts(FactCheck& check) {
  RealLemma lemma;
  lemma.reals("q m distance high low64 low rounded_sum")
      .assume("(and (< 0.0625 q) (< 0.0 m))")
      .rounded("high", "q", "q", 53)
      .define("a_low", fmt::format("(* {} q)", power(-53)))
      .rounded("low64", "(- q high)", "a_low", 52)  // a remainder, which is exact, and a quotient
      .rounded("low", "low64", "(* 2.0 a_low)", 53)
      .define("sum", "(+ high low)")
      .assume(fmt::format("(>= distance (* {} q))", power(-49)));
  const auto claim = [&](std::string_view assumed, const std::string& claimed,
                         std::string_view subject) {
    RealLemma copy = lemma;
    copy.assume(assumed);
    check.contradictory(copy.claiming(claimed), subject);
  };
  // Neighbours of m are at least 2^-53 of it away.
  const std::string near = fmt::format("(* {} m)", power(-54));
  claim("(= q m)", fmt::format("(and (< sum (+ m {0})) (< (- m {0}) sum))", near),
        "values that are a middle");
  claim("(<= q (- m distance))", fmt::format("(< sum (- m (* 2.0 {})))", near),
        "values below a middle");
  claim("(>= q (+ m distance))", fmt::format("(> sum (+ m (* 2.0 {})))", near),
        "values above a middle");
}

/// The power of two of |d + 1/2| tells the redundant sign bits of d; and a shift of what the
/// library keeps rounds once.
void check_cut(FactCheck& check) {
  Terms terms;
  const Term d = terms.input("d", 32);
  const Term twice = extend_sign(d, 40) + extend_sign(d, 40) + 1;
  const Term magnitude = if_then_else(bit(twice, 39), -twice, twice);
  const Term norm = leading_zeros(if_then_else(bit(d, 31), ~d, d)) - 1;
  // 2^p <= |d + 1/2| < 2^(p + 1), where p = 30 - norm: of twice as much, one more.
  const Term top = extend_zero(like(d, 31) - norm, 40);
  check.never(not_equal(shift_right(magnitude, top), like(magnitude, 1)), "the power of two of d");
  const Term kept = signed_64(terms.input("kept", 32));
  const Term count = signed_64(terms.input("count", 10));
  for (const bool half_up : {true, false}) {
    const Term right =
        equal(library_shifted(kept, count, half_up), rounded_quotient(kept, count, half_up));
    check.never(is_between(kept, -(int64_t{1} << 30), (int64_t{1} << 30) - 1) &
                    is_between(count, -400, 63) & ~right,
                "the library's shift");
  }
}

}  // namespace

FactVerdict check_float_quotients(const FactEffort& effort, const RequantizeTamper& tamper) {
  FactCheck check(effort);
  for (const RequantizeForm& form : forms_of(jit::float_quotient_method())) {
    for (const jit::Tier tier : {jit::Tier::avx512, jit::Tier::avx2}) {
      if (tier == jit::Tier::avx2 && !effort.is_long) break;  // rounds in two steps
      check_quotient_program(form, tier, check, tamper);
    }
  }
  check_quotient_lemma(check, tamper.bound_of_errors);
  return check.verdict("questions");
}

FactVerdict check_doubles(const FactEffort& effort, const RequantizeTamper& tamper) {
  FactCheck check(effort);
  check_programs(jit::double_method(), expected_double, check, tamper);
  for (const bool is_negative : {false, true})
    check_lift(check, is_negative, tamper.bound_of_errors);
  check_two_parts(check);
  return check.verdict("questions");
}

FactVerdict check_cut_accumulators(const FactEffort& effort, const RequantizeTamper& tamper) {
  FactCheck check(effort);
  check_programs(jit::cut_accumulator_method(), expected_cut, check, tamper);
  for (const bool is_negative : {false, true})
    check_lift(check, is_negative, tamper.bound_of_errors);
  check_cut(check);
  return check.verdict("questions");
}

}  // namespace castor::prove
