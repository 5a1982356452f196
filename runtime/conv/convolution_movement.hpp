// SPDX-License-Identifier: Apache-2.0
// The code that brings the operands of convolutions into the order that kernels read them in.
#pragma once

#include "jit/conv/conv_plan.hpp"
#include "jit/conv/pack_planes.hpp"
#include "jit/conv/pack_weights.hpp"
#include "jit/conv/pack_windows.hpp"
#include "runtime/cache/code_cache.hpp"

namespace castor::detail {

/// Null where a plan or its target has no such code: plain loops do it then.
struct MovementCode {
  KernelCodePtr<jit::WeightUnit> weights;  ///< units of weights
  /// Where not all positions of the filter are in whole units: of the others.
  KernelCodePtr<jit::WeightUnit> last_weights;
  KernelCodePtr<jit::PlaneForm> planes;
  /// Packs im2col, where plans have it; then `planes` is null.
  KernelCodePtr<jit::WindowForm> windows;
};

/// The weights of one output channel as packing sees them. Taps that list weights in the order in
/// which they lie make a filter of one position of as many input channels.
struct WeightExtents {
  int64_t channels = 0;  ///< of input
  int64_t dwords = 0;    ///< of channels
  int64_t slices = 1;
  int64_t in_slice = 1;    ///< positions along the last two axes
  bool is_listed = false;  ///< in an order of their own

  int64_t positions() const { return slices * in_slice; }
};
WeightExtents weight_extents(const jit::ConvPlan& plan);

/// How the weights of a plan are cut into units.
struct WeightUnits {
  jit::WeightUnit whole;  ///< side by side along the positions of the filter, or the parts
  int64_t count = 0;      ///< of whole units along the positions
  jit::WeightUnit last;   ///< behind them; has no positions where nothing is left
};
WeightUnits weight_units(const WeightExtents& extents);

/// How planes of a plan are filled.
jit::PlaneForm plane_form(const jit::ConvPlan& plan);

Result<MovementCode> find_movement_code(const jit::ConvPlan& plan, const jit::Target& target,
                                        CodeCache& cache);

}  // namespace castor::detail
