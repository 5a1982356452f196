// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/query/algebra.hpp"

#include <array>
#include <chrono>
#include <unordered_map>

#include "tools/prove/query/quotients.hpp"
#include "tools/prove/term/evaluate.hpp"

namespace castor::prove {
namespace {

constexpr int min_bits = 16;
constexpr int max_comparisons = 4;  ///< that are decided one by one

bool divides(const Term& term) {
  for (const uint32_t id : reachable_nodes(std::span(&term, 1))) {
    const TermOp op = term.terms().node(id).op;
    if (op == TermOp::udiv || op == TermOp::urem || op == TermOp::float_div) return true;
  }
  return false;
}

/// A copy in which nodes become what `replaced` gives for them, where that is a term.
template <class Replaced>
Term copied(const Term& term, Terms& into, const Replaced& replaced) {
  const Terms& from = term.terms();
  std::unordered_map<uint32_t, Term> copies;
  for (const uint32_t id : reachable_nodes(std::span(&term, 1))) {
    const Node node = from.node(id);  // a copy: the Terms may grow
    Term copy = replaced(Term(&term.terms(), id));
    if (!copy) {
      std::array<Term, max_operands> v;
      for (size_t i = 0; i < node.operand_count; ++i) v[i] = copies.at(node.operands[i]);
      copy = with_operands(node, std::span(v).first(node.operand_count), into, from);
    }
    copies[id] = copy;
  }
  return copies.at(term.id());
}

/// Products and quotients of integers become new inputs: what holds for any holds for them.
Term without_products(const Term& term) {
  Terms& terms = term.terms();
  return copied(term, terms, [&](const Term& node) -> Term {
    if (node.op() == TermOp::input) return node;
    const bool is_arithmetic =
        node.op() == TermOp::mul || node.op() == TermOp::udiv || node.op() == TermOp::urem;
    if (!is_arithmetic || !may_be_any_function(terms, node.node())) return {};
    return terms.input("unknown", node.width());
  });
}

/// On these operands; sums of which the upper half is taken become halves that are new inputs.
Term with_sums_in_halves(const Term& term, std::span<const Term> operands) {
  Terms& into = operands[0].terms();
  std::vector<bool> is_cut(term.terms().node_count());
  for (const uint32_t id : reachable_nodes(std::span(&term, 1))) {
    const Node& node = term.terms().node(id);
    const bool is_upper = node.op == TermOp::extract && node.detail == 32 && node.width == 32;
    if (is_upper) is_cut[node.operands[0]] = true;
  }
  return copied(term, into, [&](const Term& node) -> Term {
    if (node.op() == TermOp::input) return operands[node.node().detail];
    if (node.op() != TermOp::add || !is_cut[node.id()]) return {};
    return concat(into.input("high", 32), into.input("low", 32));
  });
}

/// The first comparison of the term, operands first.
Term first_comparison(const Term& term) {
  for (const uint32_t id : reachable_nodes(std::span(&term, 1))) {
    const TermOp op = term.terms().node(id).op;
    const bool compares =
        op == TermOp::equal || op == TermOp::less_unsigned || op == TermOp::less_signed;
    if (compares) return {&term.terms(), id};
  }
  return {};
}

/// One case of the operands.
class AlgebraCase {
 public:
  AlgebraCase(QuotientForm& form, Steps steps) : form_(form), steps_(steps) {}

  bool never(const Term& truth) {
    const Term form = form_.of(truth);
    return never(form, form.terms().truth(true), max_comparisons);
  }

 private:
  /// `path` is what was assumed.
  bool never(const Term& truth, const Term& path, int comparisons) {
    if (truth.is_constant(0)) return true;
    const Term comparison = comparisons > 0 ? first_comparison(truth) : Term();
    if (ask(path & truth, comparison ? steps_ / 8 : steps_)) return true;
    if (!comparison) return false;
    for (const bool value : {false, true}) {
      form_.assume(comparison, value);
      const Term under = form_.of(truth);
      const bool decided = never(under, path & (value ? comparison : ~comparison), comparisons - 1);
      form_.forget(comparison);
      if (!decided) return false;
    }
    return true;
  }

  bool ask(const Term& truth, Steps steps) {
    return can_hold(without_products(truth), steps).kind == Answer::Kind::never;
  }

  QuotientForm& form_;
  const Steps steps_;
};

/// An operand with a sign, or without, in halves where it has 64 bits.
Term operand_of(Terms& terms, int bits, std::optional<bool> sign) {
  Term low;
  int free = sign ? bits - 1 : bits;
  if (bits == 64) {
    low = terms.input("low", 32);
    free -= 32;
  }
  const Term high = terms.input("high", free);
  const Term all = low ? concat(high, low) : high;
  return sign ? concat(terms.constant(1, *sign ? 1 : 0), all) : all;
}

}  // namespace

bool has_algebra(const Query& query) {
  return query.operands.size() == 2 && query.operands[0] == query.operands[1] &&
         is_integer(query.operands[0]) && bits_of(query.operands[0]) >= min_bits;
}

bool decided_by_algebra(const Query& query, Steps steps, double& seconds) {
  const auto start = std::chrono::steady_clock::now();
  const ElementType type = query.operands[0];
  const int bits = bits_of(type);
  const bool is_signed = is_signed_integer(type);
  const bool with_divisor = divides(query.is_wrong);
  const auto decided = [&](std::optional<bool> sign_of_a, std::optional<bool> sign_of_b,
                           bool by_zero) {
    Terms terms;
    const Term a = operand_of(terms, bits, sign_of_a);
    const Term b = by_zero ? terms.constant(bits, 0) : operand_of(terms, bits, sign_of_b);
    QuotientForm form(std::array{a, b}, is_signed, with_divisor && !by_zero);
    const Term truth =
        with_divisor ? query.is_wrong : with_sums_in_halves(query.is_wrong, std::array{a, b});
    return AlgebraCase(form, steps).never(truth);
  };
  bool all = true;
  const int signs = is_signed ? 4 : 1;
  for (int i = 0; i < signs && all; ++i) {
    const auto sign = [&](int bit) {
      return is_signed ? std::optional((i >> bit & 1) != 0) : std::nullopt;
    };
    all = decided(sign(0), sign(1), false);
    if (all && with_divisor && i < 2) all = decided(sign(0), std::nullopt, true);
  }
  seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return all;
}

}  // namespace castor::prove
