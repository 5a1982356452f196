// SPDX-License-Identifier: Apache-2.0
// The kernels that binding makes, on any tier, whether the machine has it or not.
#pragma once

#include <castor/castor.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "jit/code.hpp"
#include "jit/memory/system_memory.hpp"
#include "jit/target.hpp"

namespace castor::test {

/// A kernel that a cache of code made.
struct RecordedKernel {
  /// Its name without prefix, tier and hash of its key: what the profilers' names say of the code
  /// itself, so that it does not change with the form of keys.
  std::string name;
  jit::MachineCode code;
  /// The same, emitted once more with notes.
  Result<jit::MachineCode> annotated;
};

/// What binding does with the code that it runs itself: to pack constant weights, to make tables.
enum class RunAtBind : uint8_t {
  returns,  ///< all code begins with a return, so that the machine may lack the tier
  runs,     ///< as ever
};

/// Compiles and binds for a tier, and plans for the caches of `jit::CacheSizes`, not for the
/// machine's own. Thread safe.
class RecordingRuntime {
 public:
  explicit RecordingRuntime(jit::Tier tier, RunAtBind code = RunAtBind::returns);

  /// The kernels that compiling and binding make of an empty cache, in the order in which they are
  /// made. Each of `strides` may be empty: dense; so may all.
  Result<std::vector<RecordedKernel>> bind(const FunctionPtr& function,
                                           std::span<const Dims> shapes,
                                           std::span<const Dims> strides = {}) const;

 private:
  jit::Target target_;
  jit::SystemCalls calls_;
};

}  // namespace castor::test
