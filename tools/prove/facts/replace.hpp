// SPDX-License-Identifier: Apache-2.0
// Parts of a term that are replaced by others, so that a question has no products in it.
#pragma once

#include <initializer_list>
#include <utility>

#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// The term with each node that is the first of a pair, or the same polynomial as it, replaced by
/// the second, of the same width; an empty Term where one of the pairs has no such node.
Term replaced(const Term& term, std::initializer_list<std::pair<Term, Term>> pairs);

/// A number as terms of other widths: the same bits below, its sign or zeros above.
Term signed_64(const Term& a);
Term unsigned_64(const Term& a);

/// low <= a <= high, of signed numbers of any width up to 64.
Term is_between(const Term& a, int64_t low, int64_t high);
/// A constant of a's width.
Term signed_like(const Term& a, int64_t value);

}  // namespace castor::prove
