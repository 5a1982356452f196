// SPDX-License-Identifier: Apache-2.0
// A kernel bound to its tensors, ready to be run and timed.
#pragma once

#include <castor/castor.hpp>

#include <vector>

#include "bench/limits.hpp"

namespace castor::bench {

struct BoundCall {
  BoundKernel kernel;
  std::vector<ConstView> inputs;
  std::vector<View> outputs;
  RunOptions options = {};

  Status run() const { return kernel.run(inputs, outputs, options); }
  /// Only after a run that succeeded: later ones are given the same views.
  Contender contender() const {
    return {.run = [call = *this](size_t repetitions) {
      for (size_t i = 0; i < repetitions; ++i) static_cast<void>(call.run());
    }};
  }
};

/// Compiles the function and binds it to the views. Fails (internal) where the interpreter would
/// run.
Result<BoundCall> bind_call(const Runtime& runtime, const FunctionPtr& function,
                            std::vector<ConstView> inputs, std::vector<View> outputs);

}  // namespace castor::bench
