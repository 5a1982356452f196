// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/facts/replace.hpp"

#include "tools/prove/term/evaluate.hpp"
#include "tools/prove/term/polynomial.hpp"

namespace castor::prove {

Term replaced(const Term& term, std::initializer_list<std::pair<Term, Term>> pairs) {
  Term result = term;
  for (const auto& [what, by] : pairs) {
    std::unordered_map<uint32_t, uint32_t> replacements;
    for (const uint32_t id : reachable_nodes(std::span(&result, 1))) {
      const Term node(&term.terms(), id);
      const bool may_be = node.width() == what.width() && !node.is_constant();
      if (may_be && (node.same_as(what) || equal_expanded(node, what).is_constant(1))) {
        replacements[id] = by.id();
      }
    }
    if (replacements.empty()) return {};
    result = with_nodes_replaced(result, replacements);
  }
  return result;
}

Term signed_64(const Term& a) { return a.width() < 64 ? extend_sign(a, 64) : a; }
Term unsigned_64(const Term& a) { return a.width() < 64 ? extend_zero(a, 64) : a; }

Term signed_like(const Term& a, int64_t value) {
  return like(a, sign_extended(static_cast<uint64_t>(value), 64) & low_mask(a.width()));
}

Term is_between(const Term& a, int64_t low, int64_t high) {
  return at_most_signed(signed_like(a, low), a) & at_most_signed(a, signed_like(a, high));
}

}  // namespace castor::prove
