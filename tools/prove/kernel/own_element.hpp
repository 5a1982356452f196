// SPDX-License-Identifier: Apache-2.0
// A term of many elements as one of a few: those of one index.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// Inputs that stand for whatever terms do not depend on an index's own elements, by width. Terms
/// of several elements have the same, so that equal functions become equal terms.
using OtherInputs = std::map<int, std::vector<Term>>;

/// How much of other elements stays.
enum class Neighbours : uint8_t {
  left_out,
  /// Those that the term has outside of its conditions, as lanes are cut from wider ones.
  kept,
};

/// The term with inputs replaced by the terms of their number. What depends on other inputs alone
/// becomes one input, and so do those operands of a conjunction or disjunction together in which
/// nothing is asked of own elements alone. So the result may be more than the term can be: what it
/// never is, the term never is.
Term of_own_elements(const Term& term, std::span<const Term> replacements, Terms& into,
                     OtherInputs& others, Neighbours neighbours);

}  // namespace castor::prove
