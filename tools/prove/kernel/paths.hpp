// SPDX-License-Identifier: Apache-2.0
// Runs code on all paths that data may choose. States that come to one instruction become one,
// whose lanes are choices by the conditions of the jumps that parted them.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/machine/machine.hpp"

namespace castor::prove {

/// An instruction, and how many times a run comes to it before it stops there.
struct Stop {
  uint32_t offset = 0;
  int64_t arrivals = 1;
};

/// Runs the machine to its return, or to `stop`, on all paths; at the end it has the one state that
/// they merge to. Fails (unsupported) where some return and others stop, and as the machine does.
Status run_all_paths(machine::Machine<machine::Symbols>& machine, const Stop* stop);

}  // namespace castor::prove
