// SPDX-License-Identifier: Apache-2.0
// The layers of the ConvInteger benchmarks, and how each is computed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/convolution.hpp"

namespace castor::bench {

/// A layer of a batch of one. Kernel, stride, dilation and padding are the same along all spatial
/// axes and at both ends.
struct ConvolutionLayer {
  std::string_view name;
  int64_t channels = 0;
  Dims input = {};  ///< spatial extents
  int64_t out_channels = 0;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t pad = 0;
  int64_t groups = 1;
  int64_t dilation = 1;

  int64_t group_channels() const { return channels / groups; }
  /// Spatial extents of the result.
  Dims output() const;
  /// Positions of the kernel.
  int64_t positions() const;
  /// Products that are summed, those of padding among them.
  int64_t products() const;
};

/// ResNet-50's, MobileNetV2's, a grouped one, Whisper's 1-D ones, the patch embedding, a 3-D one,
/// and some of no usual shape.
std::span<const ConvolutionLayer> convolution_layers();

/// What a layer is computed of.
struct ConvolutionVariant {
  ElementType x;
  ElementType w;
  ConvolutionLayout layout = ConvolutionLayout::nchw;
  bool runtime_weights = false;

  /// "u8i8/nhwc".
  std::string name() const;
  /// Only unsigned weights have zero points: one for each output channel.
  bool has_weight_zero_points() const { return w == ElementType::u8; }
};

/// Every combination of signs; each in NCHW, in NHWC, and with weights given at run time.
std::vector<ConvolutionVariant> convolution_variants();

}  // namespace castor::bench
