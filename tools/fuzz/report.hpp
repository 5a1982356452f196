// SPDX-License-Identifier: Apache-2.0
// What `castor fuzz` prints on a mismatch.
#pragma once

#include <string>
#include <vector>

#include "tools/fuzz/minimise.hpp"

namespace castor::fuzz {

/// Where in a run a program stands.
struct RunPosition {
  uint64_t run_seed = 0;
  uint64_t index = 0;  ///< the program's number in the run
  const std::vector<Tier>& tiers;
};

/// The full report: what is wrong first in the minimised program (with the input's element, the
/// expected and the actual one, values and bits), its IR before and after canonicalisation, where
/// its tensors are stored, the listing of its code, the seed and the command that repeats the
/// original.
std::string report(const Mismatch& mismatch, const RunPosition& position);

}  // namespace castor::fuzz
