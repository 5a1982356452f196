// SPDX-License-Identifier: Apache-2.0
// The codes of an elementwise nest, emitted once more with notes.
#pragma once

#include <functional>
#include <string>

#include "jit/code.hpp"
#include "runtime/bind/elementwise_step.hpp"
#include "runtime/bind/fold_step.hpp"

namespace castor::detail {

struct BoundEpilogue;
struct Compiled;

struct EmittedCode {
  std::string part;       ///< "", ", streaming stores", ", from any element"
  jit::MachineCode code;  ///< the same bytes as those of `bound`
  const KernelCode<jit::NestSpec>* bound;
};

/// Calls `visit` with each code of a step whose program is StepProgram::planned; with none for any
/// other. Ends at the first failure.
Status for_each_emitted(const Compiled& compiled, const ElementwiseStep& step,
                        const std::function<Status(const EmittedCode&)>& visit);

/// Calls `visit` with the code of a pass that runs its nest's program; of others not at all.
Status for_each_emitted(const Compiled& compiled, const FoldStep& step,
                        const std::function<Status(const EmittedCode&)>& visit);

/// Calls `visit` with each code of an epilogue that takes a convolution's result slice by slice.
Status for_each_emitted(const Compiled& compiled, const BoundEpilogue& epilogue,
                        const std::function<Status(const EmittedCode&)>& visit);

}  // namespace castor::detail
