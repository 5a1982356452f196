// SPDX-License-Identifier: Apache-2.0
// One convolution of the benchmark, and its function.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/cases/convolution_layers.hpp"
#include "ir/function.hpp"

namespace castor::bench {

/// Fills with bytes of all patterns, which depend on the seed alone.
void fill_with_patterns(std::span<std::byte> bytes, uint32_t seed);

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
  std::vector<float> scales;  ///< an epilogue's, by output channel, as the next
  std::vector<float> biases;
};
ConvolutionWeights make_weights(const ConvolutionCase& each);

/// The function: zero points, scales and biases are constants, and so are the weights unless they
/// are given at run time.
Result<FunctionPtr> convolution_function(const ConvolutionCase& each,
                                         const ConvolutionWeights& weights);

}  // namespace castor::bench
