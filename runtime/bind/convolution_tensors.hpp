// SPDX-License-Identifier: Apache-2.0
// What a convolution's step reads, as the convolution takes it.
#pragma once

#include <vector>

#include "ir/shape/convolution.hpp"
#include "runtime/conv/convolution_step.hpp"
#include "runtime/memory/weight_store.hpp"

namespace castor::detail {

/// Completed while operands are added to a step: x, w, then the zero points that there are.
struct ConvolutionTensors {
  ConvolutionGeometry geometry;
  ConvolutionOperands operands;
  std::vector<const std::byte*> constants;  ///< by operand; null: not a constant
  WeightSharing sharing = {};
  std::vector<size_t> copies;         ///< offsets of scratch that is free after the step
  std::vector<std::byte> transposed;  ///< constant weights, for as long as they are packed from it
};

}  // namespace castor::detail
