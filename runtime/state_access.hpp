// SPDX-License-Identifier: Apache-2.0
// From the public handles to what they point to.
#pragma once

#include <castor/castor.hpp>

#include <memory>
#include <utility>

namespace castor::detail {

/// What kernels consist of, for tools that tell how they run, and for other interfaces. See
/// runtime/compiled.hpp and runtime/bind/bound_state.hpp.
struct StateAccess {
  static const BoundState& of(const BoundKernel& kernel) { return *kernel.state_; }
  static const KernelState& of(const Kernel& kernel) { return *kernel.state_; }
  static std::shared_ptr<const KernelState> shared(const Kernel& kernel) { return kernel.state_; }
  static BoundKernel handle(std::shared_ptr<const BoundState> bound) {
    return BoundKernel(std::move(bound));
  }
};

}  // namespace castor::detail
