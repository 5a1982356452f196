// SPDX-License-Identifier: Apache-2.0
// Checks of convolutions before they are timed, by the formula.
#pragma once

#include "bench/convolution_tensors.hpp"

namespace castor::bench {

/// Runs the call on a poisoned result, and compares elements with a sum over the kernel: the
/// corners, borders and middle along every axis in some output channels, and a thousand elsewhere.
/// The error (internal) names the first that differs.
Status run_and_check(const BoundCall& call, const ConvolutionCase& each,
                     const ConvolutionWeights& weights, const ConvolutionTensors& tensors);

}  // namespace castor::bench
