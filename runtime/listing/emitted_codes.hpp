// SPDX-License-Identifier: Apache-2.0
// The codes of an elementwise nest, emitted once more with notes.
#pragma once

#include <functional>
#include <string>

#include "jit/code.hpp"
#include "runtime/state.hpp"

namespace castor::detail {

struct EmittedCode {
  std::string part;       ///< "", ", streaming stores", ", from any element"
  jit::MachineCode code;  ///< the same bytes as those of `bound`
  const KernelCode<jit::NestSpec>* bound;
};

/// Whether a nest's code comes from lanes alone: not that of a convolution or requantization.
inline bool is_elementwise(const BoundNest& nest) {
  return nest.planned == nullptr || !(nest.planned->convolution || nest.planned->requantization);
}

/// Calls `visit` with each code of a nest that was bound from a planned elementwise nest; with none
/// for any other. `form` is that of its main code: of its space or, after a convolution, of the
/// epilogue's slices. Ends at the first failure.
Status for_each_emitted(const Compiled& compiled, const BoundNest& nest, const jit::NestForm& form,
                        const std::function<Status(const EmittedCode&)>& visit);

}  // namespace castor::detail
