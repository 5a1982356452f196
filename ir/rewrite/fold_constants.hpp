// SPDX-License-Identifier: Apache-2.0
// What follows from constants.
#pragma once

#include "ir/function.hpp"

namespace castor {

/// Computes operations whose operands are all constants, with the interpreter, so that kernels need
/// not: scales that are combined, biases that are reshaped. Only elementwise operations, reshapes
/// and conversions of up to 64 Ki elements whose results are no larger than their operands; none in
/// functions where they have more than four million in all or that allow excess precision. Returns
/// the same pointer when nothing changes. Thread safe.
FunctionPtr fold_constants(const FunctionPtr& function);

}  // namespace castor
