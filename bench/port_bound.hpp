// SPDX-License-Identifier: Apache-2.0
// The port model's bound for the main loop of a function's code.
#pragma once

#include <castor/castor.hpp>

#include <cstdint>
#include <string>

namespace castor::bench {

struct PortBound {
  int64_t elements = 0;  ///< elements per iteration of the loop
  double cycles_per_element = 0;
  std::string limited_by;  ///< "pipes FP0 FP1", "store", ...
};

/// The bound for the main loop (or, without one, the first loop) of the only nest that the kernel
/// runs, in the form in which it is bound. Fails (internal) where there is no such loop, where
/// inputs are copied tile by tile first, or the model has no cost for an instruction.
Result<PortBound> port_bound(const BoundKernel& kernel);

/// Whether that nest loops over more than the axis of its main loop.
bool has_outer_loop(const BoundKernel& kernel);

/// Whether two bound kernels of one function have the same access patterns, and so run the same
/// code.
bool same_loops(const BoundKernel& a, const BoundKernel& b);

}  // namespace castor::bench
