// SPDX-License-Identifier: Apache-2.0
// How often the instructions of a lane program have to run.
#pragma once

#include <vector>

#include "jit/lane/program.hpp"

namespace castor::jit {

/// For how long what an instruction gives stays the same.
enum class Scope : uint8_t {
  nest,   ///< it is computed once, in front of all loops
  row,    ///< once for each row of the innermost axis
  chunk,  ///< for every chunk
};

/// The scope of each instruction: the narrowest of its operands'. Constants are the same for the
/// whole nest, loads as long as `sources` says of their source; stores belong to chunks.
std::vector<Scope> scopes_of(const LaneProgram& program, const std::vector<Scope>& sources);

}  // namespace castor::jit
