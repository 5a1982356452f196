// SPDX-License-Identifier: Apache-2.0
// The layers of the ConvInteger benchmarks, and how each is computed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/shape/convolution.hpp"

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

/// What is computed from the i32 result, channel by channel.
enum class ConvolutionEpilogue : uint8_t {
  none,
  dequantize,  ///< times a scale, plus a bias, relu: f32
  requantize,  ///< the same, rounded to u8
};

/// Which operands have zero points.
enum class ConvolutionZeroPoints : uint8_t {
  usual,  ///< x; and unsigned weights: one for each output channel
  none,
  of_x,
  of_w,  ///< one for all output channels, as with the next
  of_both,
};

/// What a layer is computed of.
struct ConvolutionVariant {
  ElementType x;
  ElementType w;
  ConvolutionLayout layout = ConvolutionLayout::nchw;
  bool runtime_weights = false;
  ConvolutionEpilogue epilogue = ConvolutionEpilogue::none;
  ConvolutionZeroPoints zero_points = ConvolutionZeroPoints::usual;

  /// "u8i8/nhwc", "u8i8/dequantize", "u8i8/zero_points_none".
  std::string name() const;
  bool has_x_zero_point() const;
  bool has_weight_zero_points() const;
  /// The result's element type.
  ElementType y() const;
};

/// Every combination of signs; each in NCHW, in NHWC, and with weights given at run time. Of u8 and
/// i8 also what epilogues give. Of ResNet-50's layers of 3 x 3 and of depthwise ones also every
/// combination of signs and zero points.
std::vector<ConvolutionVariant> convolution_variants(const ConvolutionLayer& layer);

}  // namespace castor::bench
