// SPDX-License-Identifier: Apache-2.0
// Float operations written out on bits, in integer terms.
#pragma once

#include <span>

#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// What a rounding or a conversion computes, in integer operations only; an empty Term for nodes of
/// other operations. Where an operand's exponent is constant, shifts are by constants and fold.
/// Sums are left to the solver, whose own circuits of them it decides faster.
Term written_out(const Node& node, std::span<const Term> operands);

}  // namespace castor::prove
