// SPDX-License-Identifier: Apache-2.0
// Folds of lanes as terms: what reductions leave in accumulators.
#pragma once

#include <vector>

#include "jit/lane/program.hpp"
#include "tools/machine/symbols.hpp"

namespace castor::prove {

/// What an instruction that folds makes of two lanes.
Term folded(machine::Symbols& symbols, jit::Fold fold, const Term& a, const Term& b);

/// Equal for results of a fold that do not differ. Sums of floats are what they are; for other
/// folds order does not matter, nor lanes that change nothing, and for extremes not how often a
/// lane occurs: then it is the numbers of the lanes' terms, ascending.
std::vector<uint32_t> fold_key(jit::Fold fold, const Term& result);

}  // namespace castor::prove
