// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/bind/padding_step.hpp"
#include "runtime/call/nest_call.hpp"

namespace castor::detail {

/// Fills the padding, and nothing inside it.
void run_padding(const PaddingStep& step, const CallMemory& memory);

}  // namespace castor::detail
