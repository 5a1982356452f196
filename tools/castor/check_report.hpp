// SPDX-License-Identifier: Apache-2.0
// What `castor check` prints on a mismatch.
#pragma once

#include <string>

#include "tools/castor/check_case.hpp"

namespace castor::tools {

/// The full report: what differs first (input, expected, actual, values and bits), in which case,
/// `repeat` (the command that repeats it), the function before and after canonicalisation, and
/// the listing of the code where it can be had.
std::string report(const PreparedCase& prepared, const FunctionPtr& function,
                   const Finding& finding, Tier tier, const std::string& repeat);

}  // namespace castor::tools
