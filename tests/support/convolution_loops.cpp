// SPDX-License-Identifier: Apache-2.0
#include "tests/support/convolution_loops.hpp"

#include <algorithm>

namespace castor::test {

namespace {

std::vector<int32_t> numbers_of(const Patterns& tensor) {
  std::vector<int32_t> numbers;
  numbers.reserve(tensor.elements.size());
  for (uint64_t bits : tensor.elements) {
    const auto number = static_cast<int32_t>(bits & 0xff);
    numbers.push_back(tensor.type == ElementType::i8 && number > 127 ? number - 256 : number);
  }
  return numbers;
}

int64_t entry(const std::vector<int64_t>& list, size_t i, int64_t otherwise) {
  return list.empty() ? otherwise : list[i];
}

}  // namespace

ConvolutionLoops::ConvolutionLoops(const ConvolutionCase& row)
    : row_(row),
      channels_last_(row.options.layout == ConvolutionLayout::nhwc),
      channels_(row.x.shape[channels_last_ ? row.x.shape.rank() - 1 : 1]),
      group_channels_(row.w.shape[1]),
      out_channels_(row.w.shape[0]),
      batch_(row.x.shape[0]),
      x_(numbers_of(row.x)),
      w_(numbers_of(row.w)) {
  if (row.x_zero_point) x_zero_ = numbers_of(*row.x_zero_point)[0];
  if (row.w_zero_point) w_zeros_ = numbers_of(*row.w_zero_point);
  w_zeros_.resize(static_cast<size_t>(std::max<int64_t>(out_channels_, 1)),
                  w_zeros_.empty() ? 0 : w_zeros_[0]);
  const auto count = static_cast<size_t>(row.x.shape.rank() - 2);
  for (size_t i = 0; i < count; ++i) add_axis(row.options, i, count);
  shape_.push_back(batch_);
  if (!channels_last_) shape_.push_back(out_channels_);
  for (const Axis& axis : axes_) shape_.push_back(axis.output);
  if (channels_last_) shape_.push_back(out_channels_);
  count_ = batch_ * out_channels_ * outputs_;
}

void ConvolutionLoops::add_axis(const ConvolutionOptions& options, size_t i, size_t count) {
  const auto at = static_cast<int>(i);
  Axis axis{.input = row_.x.shape[at + (channels_last_ ? 1 : 2)],
            .kernel = row_.w.shape[at + 2],
            .stride = entry(options.strides, i, 1),
            .dilation = entry(options.dilations, i, 1),
            .begin = entry(options.pads, i, 0),
            .output = 0};
  const int64_t window = (axis.kernel - 1) * axis.dilation + 1;
  if (options.auto_pad == AutoPad::same_upper || options.auto_pad == AutoPad::same_lower) {
    const int64_t remainder = axis.input % axis.stride;
    const int64_t total = std::max<int64_t>(0, window - (remainder == 0 ? axis.stride : remainder));
    axis.begin = options.auto_pad == AutoPad::same_upper ? total / 2 : total - total / 2;
    axis.output = (axis.input + axis.stride - 1) / axis.stride;
  } else {
    const int64_t padded = axis.input + axis.begin + entry(options.pads, i + count, 0);
    axis.output = padded < window ? 0 : (padded - window) / axis.stride + 1;
  }
  inputs_ *= axis.input;
  outputs_ *= axis.output;
  kernels_ *= axis.kernel;
  axes_.push_back(axis);
}

std::vector<ConvolutionLoops::Tap> ConvolutionLoops::taps_at(int64_t output_position) const {
  std::vector<Tap> taps = {{0, 0}};
  int64_t unit = outputs_;
  for (const Axis& axis : axes_) {
    unit /= axis.output;
    const int64_t output = output_position / unit % axis.output;
    std::vector<Tap> longer;
    for (const Tap& tap : taps) {
      for (int64_t k = 0; k < axis.kernel; ++k) {
        const int64_t position = output * axis.stride - axis.begin + k * axis.dilation;
        if (position < 0 || position >= axis.input) continue;
        longer.push_back(
            {tap.position * axis.input + position, tap.kernel_position * axis.kernel + k});
      }
    }
    taps = std::move(longer);
  }
  return taps;
}

uint32_t ConvolutionLoops::element(int64_t number) const {
  const int64_t n = number / (out_channels_ * outputs_);
  const int64_t remainder = number % (out_channels_ * outputs_);
  const int64_t m = channels_last_ ? remainder % out_channels_ : remainder / outputs_;
  const int64_t output = channels_last_ ? remainder / out_channels_ : remainder % outputs_;
  const int64_t group = m / (out_channels_ / row_.options.group);
  const std::vector<Tap> taps = taps_at(output);
  uint32_t sum = 0;
  for (int64_t c = 0; c < group_channels_; ++c) {
    const int64_t channel = group * group_channels_ + c;
    for (const Tap& tap : taps) {
      const int64_t from = channels_last_ ? (n * inputs_ + tap.position) * channels_ + channel
                                          : (n * channels_ + channel) * inputs_ + tap.position;
      const int64_t weight = (m * group_channels_ + c) * kernels_ + tap.kernel_position;
      const int32_t a = x_[static_cast<size_t>(from)] - x_zero_;
      const int32_t b = w_[static_cast<size_t>(weight)] - w_zeros_[static_cast<size_t>(m)];
      sum += static_cast<uint32_t>(a * b);
    }
  }
  return sum;
}

Patterns ConvolutionLoops::all() const {
  Patterns y{ElementType::i32, shape_, {}};
  y.elements.reserve(static_cast<size_t>(count_));
  for (int64_t i = 0; i < count_; ++i) y.elements.push_back(element(i));
  return y;
}

}  // namespace castor::test
