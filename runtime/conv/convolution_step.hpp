// SPDX-License-Identifier: Apache-2.0
// A convolution as a step of a bound kernel.
#pragma once

#include <memory>

#include "runtime/bind/step_base.hpp"

namespace castor::detail {

struct BoundConvolution;
struct BoundEpilogue;

/// A convolution, with the elementwise nest that takes its result where there is one. Operands are
/// those of the convolution.
struct ConvolutionStep : StepBase {
  std::shared_ptr<const BoundConvolution> convolution;
  /// Takes the result slice by slice (see runtime/conv/epilogue.hpp); null: the last operand is
  /// written.
  std::shared_ptr<const BoundEpilogue> epilogue;
  int64_t nanoseconds = 0;  ///< that one thread takes, as estimated
};

}  // namespace castor::detail
