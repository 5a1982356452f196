// SPDX-License-Identifier: Apache-2.0
// Integer convolution: its attributes, its geometry and its result's type.
// Source: ONNX, ConvInteger-10; ir/README.md, Integer convolution.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/function.hpp"
#include "ir/support/export.hpp"

namespace castor {

/// Convolutions have at most this many spatial axes.
inline constexpr int max_spatial_axes = 6;

/// Where the padding comes from.
enum class AutoPad : uint8_t {
  notset,      ///< the attribute `pads`
  same_upper,  ///< output = ceil(input / stride); of an odd sum the larger half is at the end
  same_lower,  ///< the same, with the larger half at the beginning
  valid,       ///< none
};

/// Whether paddings follow from the input's extents.
constexpr bool is_same(AutoPad auto_pad) {
  return auto_pad == AutoPad::same_upper || auto_pad == AutoPad::same_lower;
}

/// The layout of x and y; w is [M, C / group, k...] in either.
enum class ConvolutionLayout : uint8_t {
  nchw,  ///< [N, C, d...]
  nhwc,  ///< [N, d..., C]
};

/// The axis of x and y that is their first spatial one.
constexpr int first_spatial_axis(ConvolutionLayout layout) {
  return layout == ConvolutionLayout::nchw ? 2 : 1;
}

/// The attributes of `conv_integer`. Lists have one entry for each spatial axis, `pads` two: all
/// the beginnings, then all the ends. An empty list stands for the default: strides and dilations
/// of 1, no padding, the kernel's extents as w has them.
struct ConvolutionOptions {
  AutoPad auto_pad = AutoPad::notset;
  int64_t group = 1;
  ConvolutionLayout layout = ConvolutionLayout::nchw;
  std::vector<int64_t> dilations{};
  std::vector<int64_t> kernel_shape{};
  std::vector<int64_t> pads{};
  std::vector<int64_t> strides{};
};

/// The options of a `conv_integer` with that many spatial axes: strides, dilations and pads in full
/// length, whether written or not (pads are 0 where auto_pad says them). The error names the
/// attribute, what was found and what was expected.
CASTOR_API Result<ConvolutionOptions> convolution_options(const Operation& operation,
                                                          int spatial_axes);

/// The attributes that say these options; defaults are not written.
CASTOR_API Attributes attributes_of(const ConvolutionOptions& options);

/// One spatial axis. Output position o takes input positions o * stride - pad_begin + k * dilation
/// for k from 0 to kernel - 1; those below 0 and from `input` on are padding, which adds 0.
struct ConvolutionAxis {
  int64_t input = 0;
  int64_t kernel = 0;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;
  int64_t output = 0;

  /// Input positions from the first to the last one that an output takes.
  int64_t window() const { return (kernel - 1) * dilation + 1; }
  friend bool operator==(const ConvolutionAxis&, const ConvolutionAxis&) = default;
};

/// All numbers of one convolution. No position, with padding or without, exceeds 2^63 - 1.
struct ConvolutionGeometry {
  ConvolutionLayout layout = ConvolutionLayout::nchw;
  int64_t batch = 0;
  int64_t channels = 0;      ///< channels of x
  int64_t out_channels = 0;  ///< channels of y, and of w's first axis
  int64_t groups = 1;        ///< divides both
  std::vector<ConvolutionAxis> axes{};
  /// Whether w has weights for each image, one after the other: a batch of matrix products is one
  /// convolution then.
  bool has_weights_by_image = false;

  int64_t group_channels() const { return channels / groups; }
  int64_t group_out_channels() const { return out_channels / groups; }
  /// The extents of y.
  CASTOR_API Dims output_extents() const;
  friend bool operator==(const ConvolutionGeometry&, const ConvolutionGeometry&) = default;
};

/// The geometry for extents of the operands; of a zero point that is absent, null. The error names
/// the operand or attribute, what was found and what was expected.
CASTOR_API Result<ConvolutionGeometry> convolution_geometry(const Operation& operation,
                                                            const Dims& x, const Dims& w,
                                                            const Dims* x_zero_point,
                                                            const Dims* w_zero_point);

/// Whether the function has a convolution.
CASTOR_API bool has_convolutions(const Function& function);

/// The result's type; four operands, the last two null where absent. Unknown extents: what they
/// must be is taken for granted, and checked in the same words where extents are bound. An output
/// extent that surely is the input's has its name; other unknown ones are `?`.
CASTOR_API Result<TensorType> convolution_type(const Operation& operation,
                                               std::span<const TensorType* const> operands);

}  // namespace castor
