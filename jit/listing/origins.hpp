// SPDX-License-Identifier: Apache-2.0
// Finds the origin of each instruction from the notes of annotated code.
#pragma once

#include <vector>

#include "ir/support/result.hpp"
#include "jit/code.hpp"

namespace castor::jit {

/// For each instruction, in order, the index of its note in `code.notes`. Fails (internal) where
/// disassemble does, and at the first instruction without origin: one that no note covers, whose
/// section has no name, or whose section has no such instructions (vector registers in a section
/// that only counts, for instance), which therefore is noted wrongly.
Result<std::vector<size_t>> origins(const MachineCode& code);

}  // namespace castor::jit
