// SPDX-License-Identifier: Apache-2.0
// Convolutions that are ready to be timed.
#pragma once

#include "bench/convolution_tensors.hpp"
#include "bench/session.hpp"

namespace castor::bench {

/// A call whose results are right, on this tier and on every other that the host has, split into
/// tasks by the executor, which may be null. Its tensors are in the memory that all benchmarks
/// share.
Result<BoundCall> prepare_convolution(Session& session, const ConvolutionCase& each,
                                      Executor* executor = nullptr);

}  // namespace castor::bench
