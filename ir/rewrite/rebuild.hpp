// SPDX-License-Identifier: Apache-2.0
// Copying a function's operations to a builder: inside ir/ only.
#pragma once

#include <vector>

#include "ir/builder.hpp"
#include "ir/function.hpp"

namespace castor::detail {

/// The builder's ids by those of the function that is copied; no_value: not yet.
using CopiedIds = std::vector<ValueId>;

/// Adds the function's parameters to a builder that is empty.
CopiedIds append_parameters(FunctionBuilder& builder, const Function& function);

/// Adds an operation whose operands are of the function and copied already, and whose results have
/// the types and names that they have there.
void append_copy(FunctionBuilder& builder, const Function& function, const Operation& operation,
                 CopiedIds& ids);

/// The function of what is copied, with the same results and attributes.
Result<FunctionPtr> finish_copy(FunctionBuilder& builder, const Function& function,
                                const CopiedIds& ids);

}  // namespace castor::detail
