// SPDX-License-Identifier: Apache-2.0
// Dumps of convolutions' nests, planned as if unknown extents were long.
#pragma once

#include <span>
#include <string>

#include "jit/code.hpp"
#include "jit/plan/nest.hpp"

namespace castor::jit {

/// The operation, its plan, and what becomes of the nest after it. `index`: of the convolution's
/// nest. Fails (unsupported) where it has nothing to multiply.
Result<std::string> convolution_text(const Function& function, std::span<const Nest> nests,
                                     size_t index, const Target& target);

/// The microkernel, without notes.
Result<MachineCode> emit_convolution(const Function& function, std::span<const Nest> nests,
                                     size_t index, const Target& target);

}  // namespace castor::jit
