// SPDX-License-Identifier: Apache-2.0
// Chunks of twice as many lanes: what has 64-bit lanes is done for one half of a chunk after the
// other, and what follows, of at most 32 bits, for all of it at once.
#pragma once

#include "jit/lane/program.hpp"

namespace castor::jit {

/// The first value of 32-bit lanes by way of which alone 64-bit lanes reach what follows; no_lane
/// where there is none, or where nothing is computed of it.
LaneId value_after_wide_lanes(const LaneProgram& program);

/// The program in the order in which chunks of two halves are emitted: first what the value after
/// wide lanes, which it must have, is computed from, then a `join` of its halves, then all else.
LaneProgram with_joined_halves(const LaneProgram& program);

}  // namespace castor::jit
