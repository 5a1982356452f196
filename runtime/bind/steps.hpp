// SPDX-License-Identifier: Apache-2.0
// The steps of a bound kernel: what a run does, one after the other.
#pragma once

#include <type_traits>
#include <variant>

#include "runtime/bind/elementwise_step.hpp"
#include "runtime/bind/fold_step.hpp"
#include "runtime/bind/padding_step.hpp"
#include "runtime/bind/row_block_step.hpp"
#include "runtime/conv/convolution_step.hpp"
#include "runtime/requantize/requantize_step.hpp"

namespace castor::detail {

/// There is nothing to run: a nest has no elements, or a convolution's kernels fold what it would.
struct EmptyStep : StepBase {
  bool is_folded = false;
};

using Step = std::variant<EmptyStep, PaddingStep, ElementwiseStep, FoldStep, RowBlockStep,
                          ConvolutionStep, RequantizeStep, TableStep>;
// Argument blocks point into vectors of their step, which moving keeps and copying does not.
static_assert(std::is_nothrow_move_constructible_v<Step>);

}  // namespace castor::detail
