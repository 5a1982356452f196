// SPDX-License-Identifier: Apache-2.0
// The kernels that compiling and binding make, on any tier, whether the machine has it or not: what
// the explorer shows, and golden files hold.
#pragma once

#include <castor/castor.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "jit/code.hpp"
#include "jit/memory/system_memory.hpp"
#include "jit/target.hpp"

namespace castor::tools {

/// A kernel that a cache of code made.
struct RecordedKernel {
  /// Its name without prefix, tier and hash of its key: what the profilers' names say of the code
  /// itself, so that it does not change with the form of keys.
  std::string name;
  jit::MachineCode code;
  /// The same, emitted once more with notes.
  Result<jit::MachineCode> annotated;
  bool made_by_binding = false;  ///< else by compiling, for the form that a nest most likely has
};

/// What binding does with the code that it runs itself: to pack constant weights, to make tables.
enum class RunAtBind : uint8_t {
  returns,  ///< all code begins with a return, so that the machine may lack the tier
  runs,     ///< as ever
};

/// Tensors that a function is bound to. Each of `strides` may be empty: dense; so may all.
struct RecordedTensors {
  std::span<const Dims> shapes;   ///< those of the inputs
  std::span<const Dims> strides;  ///< those of inputs and outputs
};

/// Compiles and binds for a target, whose caches are those of `jit::CacheSizes` unless it says
/// otherwise, never the machine's own. Thread safe.
class RecordingRuntime {
 public:
  explicit RecordingRuntime(const jit::Target& target, RunAtBind code = RunAtBind::returns);

  const jit::Target& target() const { return target_; }

  /// The kernels that compiling and binding make of an empty cache, in the order in which they are
  /// made. Fails as compiling and binding do, and (executable_memory) where the system refuses
  /// memory for code.
  Result<std::vector<RecordedKernel>> bind(const FunctionPtr& function,
                                           const RecordedTensors& tensors) const;
  /// The same, of binding the first `nests` nests alone, all of which compiling makes. A
  /// convolution and the nest that takes its sums are not to be parted.
  Result<std::vector<RecordedKernel>> bind_first(size_t nests, const FunctionPtr& function,
                                                 const RecordedTensors& tensors) const;

 private:
  jit::Target target_;
  jit::SystemCalls calls_;
};

}  // namespace castor::tools
