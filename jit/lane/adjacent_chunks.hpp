// SPDX-License-Identifier: Apache-2.0
// Several chunks done as one, so that each has hoisted values of its own.
#pragma once

#include <vector>

#include "jit/lane/program.hpp"

namespace castor::jit {

/// The program with `chunks` copies of each instruction, whose loads and stores are of chunks that
/// follow each other. What follows from constants and from sources with one element for all lanes,
/// as `is_uniform` says by source, has no copies.
LaneProgram adjacent_chunks(const LaneProgram& program, int chunks,
                            const std::vector<bool>& is_uniform);

}  // namespace castor::jit
