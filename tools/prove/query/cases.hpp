// SPDX-License-Identifier: Apache-2.0
// All values of an element type as cases in which shifts and exponents are constants.
#pragma once

#include <functional>

#include "ir/types/element_type.hpp"
#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// Some values of an element type: those of `bits` for which `condition` holds.
struct Case {
  Term bits;
  Term condition;
};

/// Calls `visit` with cases that together are all bit patterns of the type: of a float one for each
/// sign and exponent field that matters to a conversion to `to` and two for those below and above,
/// of an integer one for each count of equal leading bits. Each has new inputs of a Terms of its
/// own. Where `saturates`, what is beyond an integer type's range is not taken exponent by
/// exponent. Stops when `visit` gives false; gives whether all were visited.
bool for_each_case(ElementType type, ElementType to, bool saturates,
                   const std::function<bool(const Case&)>& visit);

/// Whether the type has cases.
bool has_cases(ElementType type);

}  // namespace castor::prove
