// SPDX-License-Identifier: Apache-2.0
#include "ir/shape/convolution_axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/support/integer_math.hpp"

namespace castor::detail {

namespace {

/// The kernel's extent on spatial axis i, as w and kernel_shape say.
Result<int64_t> kernel_extent(OpKind op, const ConvolutionOptions& options, int i,
                              int64_t extent_of_w) {
  const int64_t named =
      options.kernel_shape.empty() ? unknown : options.kernel_shape[static_cast<size_t>(i)];
  if (extent_of_w == 0) {
    return window_mistake(op,
                          fmt::format("w's axis {} is 0, expected a kernel of 1 or more", i + 2));
  }
  if (differ(named, extent_of_w)) {
    return window_mistake(op, fmt::format("kernel_shape[{}] = {}, expected {} as w's axis {}", i,
                                          named, extent_of_w, i + 2));
  }
  return is_known(extent_of_w) ? extent_of_w : named;
}

Status check_window(OpKind op, const ConvolutionAxis& axis, int i) {
  int64_t window = 0;
  if (!__builtin_mul_overflow(axis.kernel - 1, axis.dilation, &window) &&
      !__builtin_add_overflow(window, 1, &window)) {
    return {};
  }
  return window_mistake(
      op, fmt::format("dilations[{}] = {} makes a kernel of {} exceed 2^63 - 1, expected less", i,
                      axis.dilation, axis.kernel));
}

/// Input and padding, or nothing where that exceeds 2^63 - 1.
std::optional<int64_t> padded_input(const ConvolutionAxis& axis) {
  int64_t sum = 0;
  const bool overflows = __builtin_add_overflow(axis.input, axis.pad_begin, &sum) ||
                         __builtin_add_overflow(sum, axis.pad_end, &sum);
  return overflows ? std::nullopt : std::optional(sum);
}

Error padding_overflows(OpKind op, const ConvolutionAxis& axis, int i) {
  return window_mistake(
      op, fmt::format("spatial axis {}: an input of {} padded by {} and {} exceeds 2^63 - 1", i,
                      axis.input, axis.pad_begin, axis.pad_end));
}

/// The sum of both paddings that makes the output ceil(input / stride) positions long.
int64_t same_padding(const ConvolutionAxis& axis) {
  const int64_t partial_stride = axis.input % axis.stride;
  return std::max<int64_t>(axis.window() - (partial_stride == 0 ? axis.stride : partial_stride), 0);
}

/// auto_pad = same_upper or same_lower.
Status complete_same(OpKind op, AutoPad auto_pad, int i, ConvolutionAxis& axis) {
  if (!is_known(axis.input)) return {};
  axis.output = axis.input / axis.stride + (axis.input % axis.stride != 0);
  if (!is_known(axis.kernel)) return {};
  const int64_t total = same_padding(axis);
  const int64_t smaller = total / 2;
  axis.pad_begin = auto_pad == AutoPad::same_upper ? smaller : total - smaller;
  axis.pad_end = total - axis.pad_begin;
  return padded_input(axis) ? Status() : padding_overflows(op, axis, i);
}

/// Padding is given: the output has floor((padded - window) / stride) + 1 positions, in numbers
/// without bounds. A kernel that exceeds the padded input by at most one stride leaves none.
Status complete_given(OpKind op, int i, ConvolutionAxis& axis) {
  if (!is_known(axis.input)) return {};
  const std::optional<int64_t> padded = padded_input(axis);
  if (!padded) return padding_overflows(op, axis, i);
  if (!is_known(axis.kernel)) return {};
  const int64_t last_begin =
      *padded - axis.window();  // the last window's begin, counted from the padding on
  axis.output = floor_div(last_begin, axis.stride) + 1;
  if (axis.output >= 0) return {};
  return window_mistake(
      op,
      fmt::format("spatial axis {}: the kernel takes {} positions, with dilations[{}] = {}, "
                  "expected at most {}, the input of {} padded by {} and {}, plus strides[{}] = {}",
                  i, axis.window(), i, axis.dilation, *padded, axis.input, axis.pad_begin,
                  axis.pad_end, i, axis.stride));
}

/// Completes padding and output, as far as they follow from what is known.
Status complete(OpKind op, AutoPad auto_pad, int i, ConvolutionAxis& axis) {
  return is_same(auto_pad) ? complete_same(op, auto_pad, i, axis) : complete_given(op, i, axis);
}

}  // namespace

Error window_mistake(OpKind op, const std::string& detail) {
  return {ErrorCode::invalid_function, fmt::format("{}: {}", name_of(op), detail)};
}

Result<ConvolutionAxis> axis_of(OpKind op, const ConvolutionOptions& options, int i, int64_t input,
                                int64_t extent_of_w) {
  const Result<int64_t> kernel = kernel_extent(op, options, i, extent_of_w);
  if (!kernel) return kernel.error();
  const auto at = static_cast<size_t>(i);
  ConvolutionAxis axis{
      .input = input,
      .kernel = *kernel,
      .stride = options.strides[at],
      .dilation = options.dilations[at],
      .pad_begin = is_same(options.auto_pad) ? unknown : options.pads[at],
      .pad_end = is_same(options.auto_pad) ? unknown : options.pads[at + options.strides.size()],
      .output = unknown};
  Status status = is_known(axis.kernel) ? check_window(op, axis, i) : Status();
  if (status) status = complete(op, options.auto_pad, i, axis);
  if (!status) return status.error();
  return axis;
}

bool keeps_extent(const ConvolutionOptions& options, const ConvolutionAxis& axis) {
  if (axis.stride != 1) return false;
  if (is_same(options.auto_pad)) return true;
  return is_known(axis.kernel) && axis.window() - 1 - axis.pad_begin == axis.pad_end;
}

}  // namespace castor::detail
