// SPDX-License-Identifier: Apache-2.0
// One convolution of the benchmark: its function, and its tensors in memory.
#pragma once

#include <string>
#include <vector>

#include "bench/bound_call.hpp"
#include "bench/convolution_layers.hpp"
#include "bench/footprint.hpp"

namespace castor::bench {

struct ConvolutionCase {
  ConvolutionLayer layer;
  ConvolutionVariant variant;

  /// "ConvInteger/resnet50_2_3x3/u8i8".
  std::string name() const;
  Dims x_shape() const;
  Dims w_shape() const;  ///< [M, C / groups, k...] in either layout
  Dims y_shape() const;
  int64_t x_zero_point() const;
};

/// Bytes of all patterns, which depend on their arguments alone. Zero points by output channel are
/// all 0 where the weights have none.
struct ConvolutionWeights {
  std::vector<std::byte> weights;
  std::vector<std::byte> zero_points;
  std::vector<float> scales;  ///< of epilogues, by output channel, as the next
  std::vector<float> biases;
};
ConvolutionWeights make_weights(const ConvolutionCase& each);

/// The function: zero points, scales and biases are constants, and so are the weights unless they
/// are given at run time.
Result<FunctionPtr> convolution_function(const ConvolutionCase& each,
                                         const ConvolutionWeights& weights);

/// Tensors in memory, dense.
struct ConvolutionTensors {
  std::span<std::byte> x;
  std::span<std::byte> w;
  std::span<std::byte> y;

  std::vector<ConstView> inputs(const ConvolutionCase& each) const;
  View output(const ConvolutionCase& each) const;
};

/// Whose memory holds the tensors of every layer.
inline constexpr Footprint memory_of_layers = {"16MiB", size_t{16} << 20, false};

/// Places the tensors, each at a page of its own. Fails (internal) when they do not fit.
Result<ConvolutionTensors> place_tensors(const ConvolutionCase& each, std::span<std::byte> memory);

/// Fills x with bytes of all patterns, and w with the weights.
void fill_inputs(const ConvolutionTensors& tensors, const ConvolutionWeights& weights);

}  // namespace castor::bench
