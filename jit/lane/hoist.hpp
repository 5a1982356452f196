// SPDX-License-Identifier: Apache-2.0
// Loop-invariant code motion: at which loop level each instruction of a lane program runs.
#pragma once

#include <vector>

#include "jit/lane/program.hpp"

namespace castor::jit {

/// The level at which an instruction is loop-invariant.
enum class LoopLevel : uint8_t {
  nest,   ///< computed once, before all loops
  row,    ///< once per row of the innermost axis
  chunk,  ///< once per chunk
};

/// The level of each instruction: the innermost of its operands'. Constants belong to the nest,
/// loads and gathers to the level that `sources` has for their source, and stores to chunks.
std::vector<LoopLevel> loop_levels(const LaneProgram& program,
                                   const std::vector<LoopLevel>& sources);

}  // namespace castor::jit
