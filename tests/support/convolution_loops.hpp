// SPDX-License-Identifier: Apache-2.0
// One element of a convolution at a time, straight from the formula: for layers of which only some
// elements are looked at.
#pragma once

#include "tests/support/convolution_cases.hpp"

namespace castor::test {

/// y[n, m, o] = sum over c and k of (x[n, c, o stride - pad + k dilation] - x_zero)(w[m, c, k] -
/// w_zero[m]), modulo 2^32. Shares no code with castor, nor with `direct_convolution`.
class ConvolutionLoops {
 public:
  explicit ConvolutionLoops(const ConvolutionCase& row);

  const Dims& shape() const { return shape_; }
  int64_t count() const { return count_; }
  /// The element of that row-major number.
  uint32_t element(int64_t number) const;
  /// All of them.
  Patterns all() const;

 private:
  struct Axis {
    int64_t input, kernel, stride, dilation, begin, output;
  };
  /// A position of the kernel that is inside the input, and where.
  struct Tap {
    int64_t position, kernel_position;
  };

  void add_axis(const ConvolutionOptions& options, size_t i, size_t count);
  std::vector<Tap> taps_at(int64_t output_position) const;

  ConvolutionCase row_;
  bool channels_last_;
  int64_t channels_, group_channels_, out_channels_, batch_;
  int64_t inputs_ = 1, outputs_ = 1, kernels_ = 1;  ///< positions
  std::vector<Axis> axes_;
  std::vector<int32_t> x_, w_, w_zeros_;
  int32_t x_zero_ = 0;
  Dims shape_;
  int64_t count_ = 0;
};

}  // namespace castor::test
