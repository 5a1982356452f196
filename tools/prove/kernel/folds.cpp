// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/kernel/folds.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "jit/emit/fold_ops.hpp"
#include "tools/machine/float_rules.hpp"

namespace castor::prove {

using jit::Fold;
using machine::Symbols;

namespace {

bool is_signed(Fold fold) { return fold == Fold::min_signed || fold == Fold::max_signed; }
bool is_minimum(Fold fold) { return fold == Fold::min_signed || fold == Fold::min_unsigned; }

using Pair = std::optional<std::pair<Term, Term>>;

/// The two lanes of which the term is the less or the greater one.
Pair compared(Fold fold, const Term& term) {
  if (term.op() != TermOp::if_then_else) return std::nullopt;
  const Term condition = term.operand(0);
  const Term chosen = term.operand(1);
  const Term other = term.operand(2);
  const TermOp less = is_signed(fold) ? TermOp::less_signed : TermOp::less_unsigned;
  if (condition.op() != less) return std::nullopt;
  const bool is_less = condition.operand(0).same_as(chosen) && condition.operand(1).same_as(other);
  const bool is_greater =
      condition.operand(0).same_as(other) && condition.operand(1).same_as(chosen);
  if (is_minimum(fold) ? is_less : is_greater) return std::pair(chosen, other);
  return std::nullopt;
}

Pair parts_of(Fold fold, const Term& term) {
  if (fold != Fold::add) return compared(fold, term);
  if (term.op() != TermOp::add) return std::nullopt;
  return std::pair(term.operand(0), term.operand(1));
}

}  // namespace

Term folded(Symbols& symbols, Fold fold, const Term& a, const Term& b) {
  switch (fold) {
    case Fold::add: return a + b;
    case Fold::float_add: {
      const machine::Floats<Symbols> floats{symbols, a.width()};
      return floats.with_nans(symbols.float_add(a, b, Rounding::nearest_even), {a, b});
    }
    case Fold::min_signed: return min_signed(a, b);
    case Fold::max_signed: return max_signed(a, b);
    case Fold::min_unsigned: return min_unsigned(a, b);
    default: return max_unsigned(a, b);
  }
}

std::vector<uint32_t> fold_key(Fold fold, const Term& result) {
  if (fold == Fold::float_add) return {result.id()};
  std::vector<uint32_t> lanes;
  std::vector<Term> left = {result};
  while (!left.empty()) {
    const Term term = left.back();
    left.pop_back();
    if (const Pair parts = parts_of(fold, term)) {
      left.push_back(parts->first);
      left.push_back(parts->second);
    } else if (!term.is_constant(jit::fold_identity(fold, term.width()))) {
      lanes.push_back(term.id());
    }
  }
  std::ranges::sort(lanes);
  if (fold != Fold::add) lanes.erase(std::unique(lanes.begin(), lanes.end()), lanes.end());
  return lanes;
}

}  // namespace castor::prove
