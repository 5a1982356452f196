// SPDX-License-Identifier: Apache-2.0
// The kernels of a function that no stage of its dump shows.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/function.hpp"
#include "jit/dump/dump.hpp"

namespace castor::tools::explorer {

/// A kernel that packs weights, copies tiles, starts from any element, ...; or what compiling makes
/// ahead for a nest that the microkernel before applies.
struct MadeKernel {
  size_t nest = 0;        ///< the first that needs it
  std::string name;       ///< as profilers name it, without prefix, tier and hash
  jit::MachineCode code;  ///< with notes
  bool made_by_binding = false;
};

/// All kernels that compiling the function and binding it to dense tensors make and `dumped`, its
/// nests for the target, does not hold, in the order in which they are made. Unknown extents are
/// long. `function` is canonicalised. What would run at binding returns at once, so that the
/// machine may lack the tier. Fails as compiling and binding do, and (executable_memory) where the
/// system refuses memory for code. Thread safe.
Result<std::vector<MadeKernel>> made_kernels(const FunctionPtr& function, const jit::Target& target,
                                             std::span<const jit::DumpedNest> dumped);

}  // namespace castor::tools::explorer
