// SPDX-License-Identifier: Apache-2.0
// Zero points that are zero.
#pragma once

#include "ir/function.hpp"

namespace castor {

/// Leaves out the zero points of convolutions and matrix products that are constants of zeros: a
/// kernel without them has less to do. Quantizers write them for symmetric weights and after
/// activations that are never negative. Returns the same pointer when nothing changes. Thread safe.
FunctionPtr drop_zero_points(const FunctionPtr& function);

}  // namespace castor
