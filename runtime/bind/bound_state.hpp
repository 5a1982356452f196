// SPDX-License-Identifier: Apache-2.0
// What a BoundKernel points to.
#pragma once

#include <castor/castor.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jit/target.hpp"
#include "runtime/bind/in_place.hpp"
#include "runtime/bind/steps.hpp"
#include "runtime/check/check_overlap.hpp"
#include "runtime/check/check_views.hpp"
#include "runtime/memory/scratch.hpp"
#include "runtime/memory/task_scratch.hpp"
#include "runtime/requantize/scale_checks.hpp"

namespace castor::detail {

struct BoundState {
  std::shared_ptr<const KernelState> kernel;
  std::vector<BoundTensor> inputs;
  std::vector<BoundTensor> outputs;
  std::vector<Dims> output_shapes;
  std::vector<Step> steps;         ///< in the order in which they run
  std::vector<ScaleCheck> scales;  ///< checked for machine code; the interpreter checks them itself
  /// What code is made for: what the function was compiled for, or a lower tier where the system
  /// refuses what a convolution needs. Elementwise code of both tiers is the same.
  jit::Target target;
  std::string lower_tier_because;   ///< not empty: why code is of a lower tier than it could be
  std::string interpreted_because;  ///< not empty: there is no code, and no step
  size_t scratch_bytes = 0;         ///< bytes per task
  bool keeps_scratch = true;        ///< else every call brings its own
  mutable ScratchPool scratch;
  mutable TaskScratchPool task_scratch;
  InPlaceOrder order;  ///< in which steps read inputs and write outputs

  OverlapRules overlap_rules() const { return {inputs, outputs, order}; }
};

class CallProfile;

/// BoundKernel::run, whose times are added to the profile; of the interpreter there are none.
Status run_profiled(const BoundState& bound, std::span<const ConstView> inputs,
                    std::span<const View> outputs, const RunOptions& options, CallProfile& profile);

/// Runs machine code for tensors that were checked in full: of the views, only `data` and `offset`
/// are looked at. Refuses values that the function does not take. Throws std::bad_alloc. Shown by
/// the shared library for castor_mli alone.
CASTOR_API Status run_checked(const BoundState& bound, std::span<const ConstView> inputs,
                              std::span<const View> outputs, const RunOptions& options,
                              bool in_place);

}  // namespace castor::detail
