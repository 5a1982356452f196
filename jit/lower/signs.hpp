// SPDX-License-Identifier: Apache-2.0
// Whether floats may be negative, as far as the operation that gives them says.
#pragma once

#include <cstdint>

#include "ir/function.hpp"

namespace castor::jit {

/// What is known of the sign bits of a tensor of floats. Those of NaNs may be set all the same.
enum class Signs : uint8_t {
  any,
  clear,  ///< no number is negative, and no zero is
};

/// That of the operation's results: relu gives max(x, 0), where -0 is below +0.
Signs signs_of(const Operation& operation);

}  // namespace castor::jit
