// SPDX-License-Identifier: Apache-2.0
#include "bench/bound_call.hpp"

#include <fmt/format.h>

namespace castor::bench {

Result<BoundCall> bind_call(const Runtime& runtime, const FunctionPtr& function,
                            std::vector<ConstView> inputs, std::vector<View> outputs) {
  const Result<Kernel> kernel = runtime.compile(function);
  if (!kernel) return kernel.error();
  if (kernel->engine() != Engine::jit) {
    return Error{ErrorCode::internal,
                 fmt::format("@{} is interpreted: {}", function->name, kernel->engine_reason())};
  }
  const Result<BoundKernel> bound = kernel->bind(inputs, outputs);
  if (!bound) return bound.error();
  if (bound->tier() != kernel->tier()) {
    return Error{ErrorCode::unsupported,
                 fmt::format("@{} is not of tier {}: {}", function->name, name_of(*kernel->tier()),
                             bound->engine_reason())};
  }
  return BoundCall{*bound, std::move(inputs), std::move(outputs), {}};
}

}  // namespace castor::bench
