// SPDX-License-Identifier: Apache-2.0
// Terms run on all inputs.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// Bits of all inputs of the term's Terms that it depends on.
int input_bits(const Term& term);

/// What running a term on all inputs found.
struct Exhaustion {
  bool complete = false;                    ///< false: it was stopped, or a node is too wide
  std::optional<std::vector<Bits>> inputs;  ///< by input number, the first that make it 1
};

/// Runs a term of width 1 on all values of its inputs, whose bits are at most 32 together, until it
/// is 1. Nodes have at most 64 bits. `goes_on` is asked now and then, with the fraction of the
/// inputs that were run.
Exhaustion run_on_all_inputs(const Term& truth,
                             const std::function<bool(double fraction)>& goes_on);

}  // namespace castor::prove
