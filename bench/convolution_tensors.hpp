// SPDX-License-Identifier: Apache-2.0
// The tensors of one convolution of the benchmark in memory.
#pragma once

#include <vector>

#include "bench/bound_call.hpp"
#include "bench/cases/convolution_case.hpp"
#include "bench/footprint.hpp"

namespace castor::bench {

/// Tensors in memory, dense.
struct ConvolutionTensors {
  std::span<std::byte> x;
  std::span<std::byte> w;
  std::span<std::byte> y;

  std::vector<ConstView> inputs(const ConvolutionCase& each) const;
  View output(const ConvolutionCase& each) const;
};

/// The footprint whose memory holds the tensors of every layer.
inline constexpr Footprint memory_of_layers = {"16MiB", size_t{16} << 20, false};

/// Puts the tensors into the memory, each at a page of its own. Fails (internal) when they do not
/// fit.
Result<ConvolutionTensors> place_tensors(const ConvolutionCase& each, std::span<std::byte> memory);

/// Fills x with bytes of all patterns, and w with the weights.
void fill_inputs(const ConvolutionTensors& tensors, const ConvolutionWeights& weights);

}  // namespace castor::bench
