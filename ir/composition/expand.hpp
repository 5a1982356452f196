// SPDX-License-Identifier: Apache-2.0
// Functions without compositions: definitions instead.
#pragma once

#include "ir/function.hpp"

namespace castor {

/// Whether an operation is a composition.
CASTOR_API bool has_compositions(const Function& function);

/// The verified function with definitions instead of compositions. Parameters, results,
/// their declared types and their order stay, and so do the names of all values that were there.
/// Fails only where memory or the limits of the IR do not suffice.
CASTOR_API Result<FunctionPtr> expand_compositions(const Function& function);

}  // namespace castor
