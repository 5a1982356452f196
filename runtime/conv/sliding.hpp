// SPDX-License-Identifier: Apache-2.0
// Depthwise and grouped convolutions whose kernels slide down the rows, ready to run: planned, with
// code, and with weights packed where they are constant.
#pragma once

#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "jit/conv/sliding/depthwise_plan.hpp"
#include "jit/conv/sliding/grouped_nhwc_plan.hpp"
#include "runtime/cache/code_cache.hpp"
#include "runtime/conv/convolution_output.hpp"
#include "runtime/conv/convolution_step.hpp"
#include "runtime/conv/weight_sharing.hpp"

namespace castor::detail {

/// How weights are multiplied. Less their zero points where all of these differences are signed
/// bytes, or unsigned ones by signed input; else as they are, and window sums are subtracted. (Of
/// a depthwise filter's taps that stand alone in their dwords there are no sums.)
struct SlidingProducts {
  bool signed_input = false;  ///< by unsigned weights; else 128 is added to signed input
  bool subtracts_window_sums = false;
};

/// Kernels by signed_input, subtracts_window_sums, and whether they add to what other slices of the
/// filter have left; null where there is no need.
template <class Spec>
using ProductCodes = KernelCodePtr<Spec>[2][2][2];

/// A convolution with a plan of that kind. Weights are packed in panels: of an output channel in
/// NCHW, of a vector of output channels in NHWC.
template <class Plan>
struct BoundSliding {
  using Form = decltype(Plan::form);
  /// What sums begin with, by panel: a number, or a vector of channels with its numbers.
  using Start =
      std::conditional_t<std::is_same_v<Plan, jit::DepthwisePlan>, int32_t, jit::NhwcVector>;

  Plan plan;
  jit::Target target;
  ConvolutionOperands operands;
  ProductCodes<Form> codes;
  PackedDwords packed;            ///< PackedPanels; empty where each call packs
  std::vector<Start> starts;      ///< by slice of the filter and panel; empty as well
  SlidingProducts products;       ///< of what is packed
  bool applies_epilogue = false;  ///< kernels do
  size_t scratch_bytes = 0;       ///< that a call needs, 0 where all is known
};

using BoundDepthwise = BoundSliding<jit::DepthwisePlan>;
using BoundGroupedNhwc = BoundSliding<jit::GroupedNhwcPlan>;

/// Binds a convolution by its plan, which is a DepthwisePlan or a GroupedNhwcPlan. `constants` are
/// the data of constant operands, else null. `epilogue` is what kernels apply, or null; fails
/// (unsupported) where they have no room for it. Throws std::bad_alloc.
template <class Plan>
Result<std::shared_ptr<const BoundSliding<Plan>>> bind_sliding(
    Plan plan, const ConvolutionOperands& operands, std::span<const std::byte* const> constants,
    const jit::Target& target, CodeCache& cache, const jit::TileEpilogue* epilogue,
    const WeightSharing& sharing);

struct ConvolutionStep;
struct CallMemory;

/// Runs a convolution whose scratch begins at that offset. Allocates nothing.
void run_depthwise(const BoundDepthwise& bound, size_t scratch, const ConvolutionStep& step,
                   const CallMemory& memory);
void run_grouped_nhwc(const BoundGroupedNhwc& bound, size_t scratch, const ConvolutionStep& step,
                      const CallMemory& memory);

}  // namespace castor::detail
