// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/term/polynomial.hpp"

#include <algorithm>

namespace castor::prove {
namespace {

/// Larger ones stay products of sums.
constexpr size_t max_products = 64;

/// Polynomials of one width.
class Expansion {
 public:
  explicit Expansion(int width) : width_(width) {}

  Polynomial of(const Term& term) {
    switch (term.op()) {
      case TermOp::constant: return constant(term.value());
      case TermOp::add: return sum(of(term.operand(0)), of(term.operand(1)));
      case TermOp::mul: return product(term);
      case TermOp::concat: return joined(term);
      case TermOp::bit_xor:
        if (const Term inner = complemented(term)) {
          return sum(scaled(of(inner), ~Bits{0}), constant(~Bits{0}));
        }
        break;
      case TermOp::extract:
        if (term.node().detail == 0) return cut(term);
        break;
      default: break;
    }
    return atom(term);
  }

 private:
  Polynomial constant(Bits value) const {
    Polynomial result;
    if ((value & low_mask(width_)) != 0) result[{}] = value & low_mask(width_);
    return result;
  }

  static bool is_constant(const Polynomial& a) {
    return a.empty() || (a.size() == 1 && a.begin()->first.empty());
  }

  static Polynomial atom(const Term& term) { return {{{term.id()}, 1}}; }

  void add_to(Polynomial& to, const std::vector<uint32_t>& factors, Bits coefficient) const {
    const Bits value = (to[factors] + coefficient) & low_mask(width_);
    to[factors] = value;
    if (value == 0) to.erase(factors);
  }

  Polynomial sum(Polynomial a, const Polynomial& b) const {
    for (const auto& [factors, coefficient] : b) add_to(a, factors, coefficient);
    return a;
  }

  Polynomial scaled(const Polynomial& a, Bits by) const {
    Polynomial result;
    for (const auto& [factors, coefficient] : a) add_to(result, factors, coefficient * by);
    return result;
  }

  Polynomial product(const Term& term) {
    const Polynomial a = of(term.operand(0));
    const Polynomial b = of(term.operand(1));
    const bool is_scaled = is_constant(a) || is_constant(b);
    if (!is_scaled && a.size() * b.size() > max_products) return atom(term);
    return multiplied(a, b);
  }

  /// The operand of a complement.
  static Term complemented(const Term& term) {
    if (term.operand(1).is_constant(~Bits{0})) return term.operand(0);
    if (term.operand(0).is_constant(~Bits{0})) return term.operand(1);
    return {};
  }

  Polynomial joined(const Term& term) {
    const Term high = term.operand(0);
    const Term low = term.operand(1);
    const Bits unit = Bits{1} << low.width();
    if (low.is_constant(0)) return scaled(lifted(high), unit);
    return sum(scaled(of_bits(high), unit), of_bits(low));
  }

  /// A polynomial whose bits from those of `narrow` on count for nothing.
  Polynomial lifted(const Term& narrow) {
    Polynomial result;
    for (const auto& [factors, coefficient] : Expansion(narrow.width()).of(narrow)) {
      Polynomial product = constant(coefficient);
      for (const uint32_t factor : factors) {
        product = multiplied(product, of_bits(Term(&narrow.terms(), factor)));
      }
      result = sum(std::move(result), product);
    }
    return result;
  }

  /// Narrower bits, extended with zeros.
  Polynomial of_bits(const Term& bits) {
    if (bits.is_constant()) return constant(bits.value());
    if (bits.op() != TermOp::concat) return atom(extend_zero(bits, width_));
    const Term low = bits.operand(1);
    return sum(scaled(of_bits(bits.operand(0)), Bits{1} << low.width()), of_bits(low));
  }

  /// The low bits of a polynomial are that of its terms' low bits.
  Polynomial cut(const Term& term) {
    const Term whole = term.operand(0);
    const Polynomial wide = Expansion(whole.width()).of(whole);
    if (wide.size() == 1 && wide.begin()->first == std::vector{whole.id()}) return atom(term);
    Polynomial result;
    for (const auto& [factors, coefficient] : wide) {
      Polynomial one = constant(coefficient);
      for (const uint32_t factor : factors) {
        const Term low = truncate(Term(&term.terms(), factor), width_);
        one = multiplied(one, low.op() == TermOp::extract ? atom(low) : of(low));
      }
      result = sum(std::move(result), one);
    }
    return result;
  }

  Polynomial multiplied(const Polynomial& a, const Polynomial& b) const {
    Polynomial result;
    for (const auto& [x, of_x] : a) {
      for (const auto& [y, of_y] : b) {
        std::vector<uint32_t> factors;
        std::ranges::merge(x, y, std::back_inserter(factors));
        add_to(result, factors, of_x * of_y);
      }
    }
    return result;
  }

  const int width_;
};

bool is_sum(const Term& term) {
  return term.op() == TermOp::add || term.op() == TermOp::mul || term.op() == TermOp::bit_xor ||
         (term.op() == TermOp::extract && is_sum(term.operand(0)));
}

}  // namespace

Polynomial polynomial_of(const Term& term) { return Expansion(term.width()).of(term); }

Term term_of(const Polynomial& polynomial, int width, Terms& terms) {
  Term sum = terms.constant(width, 0);
  for (const auto& [factors, coefficient] : polynomial) {
    Term product = terms.constant(width, coefficient);
    for (const uint32_t factor : factors) product = product * Term(&terms, factor);
    sum = sum + product;
  }
  return sum;
}

Term expanded(const Term& term) { return term_of(polynomial_of(term), term.width(), term.terms()); }

Term equal_expanded(const Term& a, const Term& b) {
  if (!is_sum(a) && !is_sum(b)) return equal(a, b);
  const Term difference = expanded(a - b);
  if (difference.is_constant()) return equal(difference, 0);
  const Term opposite = expanded(-difference);
  return equal(difference.id() < opposite.id() ? difference : opposite, like(a, 0));
}

}  // namespace castor::prove
