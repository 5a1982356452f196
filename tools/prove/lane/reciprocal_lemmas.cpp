// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/lane/reciprocal_lemmas.hpp"

#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jit/lane/quotient_facts.hpp"
#include "jit/lane/reciprocals.hpp"
#include "tools/prove/term/evaluate.hpp"

namespace castor::prove {

namespace {

constexpr Rounding nearest = Rounding::nearest_even;

Term implies(const Term& condition, const Term& claim) { return ~condition | claim; }

/// Two numbers, and what is computed of them: factors in the order in which instructions have them.
class Lemmas {
 public:
  Lemmas(const ReciprocalFormat& reciprocals, const Term& x, const Term& s)
      : reciprocals_(reciprocals),
        f_(reciprocals.format),
        x_(x),
        s_(s),
        y_(float_div(f_, nearest, like(s, power(0)), s)),
        q_(float_div(f_, nearest, x, s)) {}

  Term all() const {
    const Term of_nans = implies(is_nan(f_, x_) | is_nan(f_, s_), is_nan(f_, q_));
    return of_nans & implies(has_reciprocal(), of_reciprocal() & of_sums() & of_steps());
  }

 private:
  Bits power(int exponent) const {
    return static_cast<Bits>(exponent + f_.bias()) << f_.fraction_bits();
  }
  Term is_between(const Term& number, int least, int largest) const {
    const Term magnitude = magnitude_of(f_, number);
    return ~less_unsigned(magnitude, power(least)) &
           at_most_unsigned(magnitude, like(magnitude, power(largest)));
  }
  Term has_reciprocal() const { return is_between(s_, reciprocals_.least, reciprocals_.largest); }
  Term is_above(const Term& number) const {
    return float_less(f_, like(number, power(reciprocals_.limit)), number);
  }
  Term is_below(const Term& number) const { return is_above(number ^ f_.sign()); }

  /// Signs agree, and NaNs come from NaNs.
  Term of_reciprocal() const {
    return is_between(y_, -reciprocals_.largest, -reciprocals_.least) &
           equal(bit(y_ ^ s_, f_.width() - 1), 0) & equal(is_nan(f_, q_), is_nan(f_, x_));
  }

  /// The first lemma.
  Term of_sums() const {
    const Term offset = like(x_, power(f_.precision - 1) | f_.quiet_bit());
    const Term low = float_fma(f_, nearest, y_ - jit::reciprocal_slack, x_, offset);
    const Term high = float_fma(f_, nearest, y_ + jit::reciprocal_slack, x_, offset);
    const Term integer = low - offset;
    const Term limit = like(integer, Bits{1} << reciprocals_.limit);
    const auto is_within = [&](const Term& least, const Term& most) {
      return at_most_signed(least, integer) & at_most_signed(integer, most);
    };
    const Term most = like(x_, f_.infinity()) - offset;
    const Term least = like(x_, f_.sign() | f_.infinity()) - offset;
    const Term rounded = float_to_signed(f_, nearest, f_.width(), q_);
    const Term is_rounded =
        if_then_else(is_above(q_), is_within(limit, most),
                     if_then_else(is_below(q_), is_within(least, -limit), equal(integer, rounded)));
    return implies(float_equal(f_, low, high), is_rounded);
  }

  /// The second one.
  Term of_steps() const {
    const Term first = float_mul(f_, nearest, x_, y_);
    const Term left = float_fma(f_, nearest, first ^ f_.sign(), s_, x_);
    const Term second = float_fma(f_, nearest, y_, left, first);
    const Term quarter = like(x_, power(-2));
    const auto is_small = [&](const Term& a) {
      return less_unsigned(magnitude_of(f_, a), quarter);
    };
    const Term same = if_then_else(is_small(q_), is_small(second), equal(q_, second));
    const Term is_quotient = if_then_else(is_above(q_), is_above(second),
                                          if_then_else(is_below(q_), is_below(second), same));
    const Term is_negative = bit(first, f_.width() - 1);
    const Term is_beyond = if_then_else(is_negative, is_below(q_), is_above(q_));
    return equal(is_nan(f_, first), is_nan(f_, x_)) &
           implies(is_infinite(f_, x_), is_infinite(f_, first)) &
           implies(is_infinite(f_, first), is_beyond) &
           implies(~is_infinite(f_, first) & ~is_nan(f_, first), ~is_nan(f_, left) & is_quotient);
  }

  const ReciprocalFormat& reciprocals_;
  const FloatFormat f_;
  const Term x_;
  const Term s_;
  const Term y_;
  const Term q_;
};

}  // namespace

ReciprocalFormat reciprocals_of_f32() {
  const auto exponent = [](double power) { return std::ilogb(power); };
  return {.format = f32_format,
          .least = exponent(jit::min_reciprocal_divisor),
          .largest = exponent(jit::max_reciprocal_divisor),
          .limit = exponent(jit::max_bounded_quotient)};
}

Term reciprocal_lemmas(const ReciprocalFormat& reciprocals, const Term& x, const Term& s) {
  return Lemmas(reciprocals, x, s).all();
}

namespace {

/// The f32 nodes of an operation.
std::vector<Term> nodes_of(const Term& term, TermOp op) {
  std::vector<Term> found;
  for (const uint32_t id : reachable_nodes(std::span(&term, 1))) {
    const Term node(&term.terms(), id);
    if (node.op() == op && node.width() == f32_format.width()) found.push_back(node);
  }
  return found;
}

/// Products of x and what is y are those of x and y, whichever factor comes first.
Term commuted(std::span<const Term> products, const Term& x, const Term& y) {
  const Term product = float_mul(f32_format, nearest, x, y);
  Term all = x.terms().truth(true);
  for (const Term& other : products) {
    for (int i = 0; i < 2; ++i) {
      if (!other.operand(i).same_as(x)) continue;
      all = all & implies(equal(other.operand(1 - i), y), equal(other, product));
    }
  }
  return all;
}

/// The lemmas of all quotients whose divisor has a reciprocal in the term; no term where there are
/// none.
Term lemmas_in(const Term& term) {
  constexpr Bits one = 0x3f800000;
  const std::vector<Term> quotients = nodes_of(term, TermOp::float_div);
  const std::vector<Term> products = nodes_of(term, TermOp::float_mul);
  Term all;
  for (const Term& y : quotients) {
    if (!y.operand(0).is_constant(one)) continue;
    for (const Term& q : quotients) {
      if (q.same_as(y) || !q.operand(1).same_as(y.operand(1))) continue;
      const Term lemmas = reciprocal_lemmas(reciprocals_of_f32(), q.operand(0), q.operand(1)) &
                          commuted(products, q.operand(0), y);
      all = all ? all & lemmas : lemmas;
    }
  }
  return all;
}

/// Copies a term so that f32 numbers are converted to integers before one of them is chosen.
class ConvertedFirst {
 public:
  Term of(const Term& term) {
    std::unordered_map<uint32_t, Term> copies;
    for (const uint32_t id : reachable_nodes(std::span(&term, 1))) {
      const Node node = term.terms().node(id);  // a copy: the Terms grow
      std::vector<Term> operands;
      for (size_t i = 0; i < node.operand_count; ++i) {
        operands.push_back(copies.at(node.operands[i]));
      }
      const bool is_leaf = node.operand_count == 0;
      copies[id] = is_leaf          ? Term(&term.terms(), id)
                   : converts(node) ? converted(node, operands[0])
                                    : with_operands(node, operands, term.terms(), term.terms());
    }
    return copies.at(term.id());
  }

  /// By the number that is converted.
  const std::unordered_map<uint32_t, Term>& conversions() const { return conversions_; }

 private:
  static bool converts(const Node& node) {
    const FloatDetail detail = FloatDetail::unpacked(node.detail);
    return node.op == TermOp::float_to_signed && node.width == f32_format.width() &&
           detail.format == f32_format && detail.rounding == nearest;
  }

  Term converted(const Node& node, const Term& number) {
    const auto known = chosen_.find(number.id());
    if (known != chosen_.end()) return known->second;
    Term result;
    if (number.op() == TermOp::if_then_else) {
      result = if_then_else(number.operand(0), converted(node, number.operand(1)),
                            converted(node, number.operand(2)));
    } else {
      result = with_operands(node, std::span(&number, 1), number.terms(), number.terms());
      if (!result.is_constant()) conversions_.emplace(number.id(), result);
    }
    chosen_.emplace(number.id(), result);
    return result;
  }

  std::unordered_map<uint32_t, Term> chosen_;
  std::unordered_map<uint32_t, Term> conversions_;
};

}  // namespace

Term conversion_lemmas(const ReciprocalFormat& reciprocals, const Term& number,
                       const Term& converted) {
  const FloatFormat f = reciprocals.format;
  const auto power = [&](int exponent) {
    return like(number, static_cast<Bits>(exponent + f.bias()) << f.fraction_bits());
  };
  const Term is_small = less_unsigned(magnitude_of(f, number), power(-2));
  const Term is_below = float_less(f, power(reciprocals.limit), number ^ f.sign());
  const Term limit = like(converted, Bits{1} << reciprocals.limit);
  return implies(is_small, equal(converted, 0)) &
         implies(equal(number, power(reciprocals.limit)), equal(converted, limit)) &
         implies(is_below, at_most_signed(converted, -limit));
}

std::optional<Term> with_reciprocal_lemmas(const Term& truth) {
  const Term lemmas = lemmas_in(truth);
  if (!lemmas) return std::nullopt;
  Terms& terms = truth.terms();
  ConvertedFirst first;
  Term all = first.of(truth & lemmas);
  std::unordered_map<uint32_t, uint32_t> replacements;
  std::vector<std::pair<Term, Term>> integers;
  for (const auto& [id, conversion] : first.conversions()) {
    const Term number(&terms, id);
    const Term integer = terms.input("converted", conversion.width());
    replacements.emplace(conversion.id(), integer.id());
    integers.emplace_back(number, integer);
  }
  all = with_nodes_replaced(all, replacements);
  for (const auto& [number, integer] : integers) {
    all = all & conversion_lemmas(reciprocals_of_f32(), number, integer);
    for (const auto& [other, its] : integers) {
      all = all & implies(equal(number, other), equal(integer, its));
    }
  }
  return all;
}

}  // namespace castor::prove
