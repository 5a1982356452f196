// SPDX-License-Identifier: Apache-2.0
// What the reports of `castor check` and `castor fuzz` have in common.
#pragma once

#include <string>

#include "ir/function.hpp"
#include "jit/target.hpp"

namespace castor::tools {

/// Coordinates of element `index`, in row-major order, of a tensor of that shape.
Dims coordinates(int64_t index, const Dims& shape);

/// The function's text, and that of its canonical form where it is another.
std::string describe_function(const FunctionPtr& function);

/// Listings of the function's code for dense operands; empty where they cannot be had.
std::string describe_code(const FunctionPtr& function, jit::Tier tier);

}  // namespace castor::tools
