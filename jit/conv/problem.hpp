// SPDX-License-Identifier: Apache-2.0
// What a convolution is planned from.
#pragma once

#include "ir/shape/convolution.hpp"

namespace castor::jit {

/// A convolution as every planner and every cost sees it. It has output elements and taps:
/// channels, output channels, batch and output extents are not 0, and check_filter passes.
struct ConvolutionProblem {
  ConvolutionGeometry geometry;
  bool x_is_signed = false;
  bool w_is_signed = true;
  bool has_weight_zero_points = false;  ///< given as an operand, whatever its values
  bool has_constant_weights = true;     ///< else each call packs them

  /// Whether kernels that multiply u8 by i8 subtract window sums times zero points: unsigned
  /// weights have a zero point of 128 after their sign flip.
  bool needs_window_sums() const { return has_weight_zero_points || !w_is_signed; }
};

}  // namespace castor::jit
