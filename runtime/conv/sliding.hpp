// SPDX-License-Identifier: Apache-2.0
// Depthwise and grouped convolutions whose kernels slide down the rows, ready to run: planned, with
// code, and with weights packed where they are constant.
#pragma once

#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "jit/conv/sliding/sliding_plan.hpp"
#include "runtime/cache/code_cache.hpp"
#include "runtime/conv/convolution_output.hpp"
#include "runtime/conv/convolution_step.hpp"
#include "runtime/memory/weight_store.hpp"

namespace castor::detail {

/// How weights are multiplied. Less their zero points where all of these differences are i8, or u8
/// by signed input; else as they are, and window sums are subtracted. (Of a depthwise filter's taps
/// that are alone in their k groups there are no sums.)
struct SlidingProducts {
  bool signed_input = false;  ///< by u8 weights; else 128 is added to signed input
  bool subtracts_window_sums = false;
};

/// Kernels by signed_input, subtracts_window_sums, and whether they add to what other slices of the
/// filter have left; null where there is no need.
template <class Spec>
using ProductCodes = KernelCodePtr<Spec>[2][2][2];

/// Weights, row-major, and their zero points; null: there are none.
struct WeightData {
  const std::byte* weights = nullptr;
  const std::byte* zero_points = nullptr;
};

/// Packed weights.
template <class Int>
struct PackedPanels {
  Int* panels = nullptr;  ///< by slice of the filter; at a cache line
  Int* sums = nullptr;    ///< by slice and output channel: of weights less the zero point
};

/// The next address that begins a cache line.
template <class T>
T* at_next_line(T* data) {
  constexpr uintptr_t line = 64;
  return reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(data) + line - 1) / line * line);
}

/// A convolution with a plan of that kind. Weights are packed in panels: of an output channel in
/// NCHW, of a vector of output channels in NHWC.
template <class Plan>
struct BoundSliding {
  static constexpr bool is_nhwc = std::is_same_v<Plan, jit::GroupedNhwcPlan>;
  using Spec = decltype(Plan::spec);

  Plan plan;
  jit::Target target;
  ConvolutionOperands operands;
  ProductCodes<Spec> codes;
  PackedDwords packed;            ///< PackedPanels; empty where each call packs
  std::vector<int32_t> starts;    ///< what accumulators begin with, as sums are; empty as well
  SlidingProducts products;       ///< of what is packed
  bool applies_epilogue = false;  ///< kernels do
  size_t scratch_bytes = 0;       ///< that a call needs, 0 where all is known

  /// Panels of all slices, in 32-bit lanes.
  size_t panel_lanes() const {
    return static_cast<size_t>(plan.slices * plan.panels() * plan.panel_lanes());
  }
  size_t sums() const { return static_cast<size_t>(plan.slices * plan.geometry.out_channels); }
  /// What is read of starts, from the next cache line on: vectors of 16 lanes, of which the last
  /// may have few channels.
  size_t start_lanes() const { return sums() + 30; }
  /// 32-bit lanes of all that PackedPanels has, and of what is skipped to the next cache line.
  size_t packed_lanes() const {
    constexpr size_t to_next_line = 15;
    return to_next_line + panel_lanes() + sums();
  }
  /// Its parts, from the next cache line after `data` on.
  template <class Int>
  PackedPanels<Int> panels_at(Int* data) const {
    data = at_next_line(data);
    return {data, data + panel_lanes()};
  }
};

using BoundDepthwise = BoundSliding<jit::DepthwisePlan>;
using BoundGroupedNhwc = BoundSliding<jit::GroupedNhwcPlan>;

/// Binds a convolution by its plan. Throws std::bad_alloc.
Result<std::shared_ptr<const BoundDepthwise>> bind_plan(const jit::DepthwisePlan& plan,
                                                        const ConvolutionBinding& by);
Result<std::shared_ptr<const BoundGroupedNhwc>> bind_plan(const jit::GroupedNhwcPlan& plan,
                                                          const ConvolutionBinding& by);

/// The products that do for these weights.
SlidingProducts products_of(const ConvolutionGeometry& geometry,
                            const ConvolutionOperands& operands, jit::ProductEngine engine,
                            const WeightData& from);
/// Packs weights for products that do.
template <class Plan>
void pack_weights(const BoundSliding<Plan>& bound, const SlidingProducts& products,
                  const WeightData& from, const PackedPanels<int32_t>& to);
/// What accumulators begin with: the input's zero point (null: 0) times the sums of weights, less.
void set_starts(const ConvolutionOperands& operands, const SlidingProducts& products,
                const std::byte* x_zero_point, std::span<const int32_t> sums, int32_t* starts);

/// Runs a convolution whose scratch begins at that offset. Allocates nothing.
void run_plan(const BoundDepthwise& bound, size_t scratch, const ConvolutionStep& step,
              const CallMemory& memory);
void run_plan(const BoundGroupedNhwc& bound, size_t scratch, const ConvolutionStep& step,
              const CallMemory& memory);

}  // namespace castor::detail
