// SPDX-License-Identifier: Apache-2.0
// The stages of the lowering as text, and machine code with notes: for people who read along.
#pragma once

#include <string>
#include <vector>

#include "ir/function.hpp"
#include "ir/result.hpp"
#include "jit/code.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// The nests that the function becomes for this target: iteration space, operands and access
/// classes, as if every operand were dense. `function` is canonicalised (ir/canonicalize.hpp). Any
/// target will do, also one that this machine cannot run. Fails (unsupported) where no nest can
/// be planned. Thread safe.
Result<std::string> dump_nest(const Function& function, const Target& target);

/// The lane program of each nest; otherwise like dump_nest.
Result<std::string> dump_lanes(const Function& function, const Target& target);

/// The machine code of each nest with notes and loops, dense operands; otherwise like dump_nest.
Result<std::vector<MachineCode>> emit_annotated(const Function& function, const Target& target);

}  // namespace castor::jit
