// SPDX-License-Identifier: Apache-2.0
// Cleaning up a lane program before it is emitted.
#pragma once

#include "jit/lane/program.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// Computes equal values once, fuses a select into the instruction that it selects (AVX-512: one
/// instruction under a mask), drops what no store needs, and renumbers the others. The result
/// computes the same.
void optimize(LaneProgram& program, const Target& target);

}  // namespace castor::jit
