// SPDX-License-Identifier: Apache-2.0
// The port model's bound for the main loop of a function's code.
#pragma once

#include <cstdint>
#include <string>

#include "ir/function.hpp"
#include "jit/target.hpp"

namespace castor::bench {

struct PortBound {
  int64_t elements = 0;  ///< of one iteration of the loop
  double cycles_per_element = 0;
  std::string limited_by;  ///< "pipes FP0 FP1", "store", ...
};

/// The bound for the main loop (or, without one, the first loop) of the only nest of `function`,
/// dense operands. Fails (internal) where there is no such loop or the model has no cost for an
/// instruction.
Result<PortBound> port_bound(const FunctionPtr& function, const jit::Target& target);

}  // namespace castor::bench
