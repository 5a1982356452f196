// SPDX-License-Identifier: Apache-2.0
// One call of a nest that runs tile by tile.
#pragma once

#include "runtime/call/nest_call.hpp"

namespace castor::detail {

/// Runs a step that is walked in tiles; `code` takes the argument block of its main code.
void call_tiled(const ElementwiseStep& step, const KernelCode<jit::NestSpec>& code,
                const CallMemory& memory);

}  // namespace castor::detail
