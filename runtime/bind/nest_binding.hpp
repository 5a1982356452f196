// SPDX-License-Identifier: Apache-2.0
// The code of a nest whose operands' origins are known, with its argument blocks.
#pragma once

#include <span>

#include "ir/support/result.hpp"
#include "jit/plan/nest.hpp"
#include "runtime/bind/elementwise_step.hpp"
#include "runtime/bind/fold_step.hpp"
#include "runtime/memory/scratch_plan.hpp"

namespace castor::detail {

struct Compiled;
struct LikelyCode;

/// Picks code, which may be generated, for the nests of one bound function.
class NestBinding {
 public:
  /// `repetitions`: how often a call runs the steps, on other results each time.
  NestBinding(const Compiled& compiled, ScratchPlan& scratch, int64_t repetitions = 1)
      : compiled_(compiled), plan_(scratch), repetitions_(repetitions) {}

  /// Completes a step that has its operands: `strides[k]` are operand k's over `extents`. `likely`
  /// is code made ahead, or null.
  Status bind(const jit::Nest& nest, const LikelyCode* likely, const Dims& extents,
              std::span<const Dims> strides, ElementwiseStep& result);
  /// Completes a pass of a reduction that has its operands and its space.
  Status bind_fold(const jit::Nest& nest, const LikelyCode* likely, FoldStep& result) const;
  /// Completes an epilogue that has its operands; its calls are for parts of that space.
  Status bind_epilogue(const jit::Nest& nest, const LikelyCode* likely,
                       const jit::IterationSpace& space, LaneStep& result) const;

 private:
  Status bind_tiles(const jit::Nest& nest, const LikelyCode* likely, const jit::Tiles& tiles,
                    ElementwiseStep& result);
  void plan_periods(const jit::Nest& nest, const jit::IterationSpace& space,
                    ElementwiseStep& result);
  Status find_code(const jit::Nest& nest, const LikelyCode* likely, const jit::NestForm& form,
                   KernelCodePtr<jit::NestSpec>& code) const;
  Status bind_code(const jit::Nest& nest, const LikelyCode* likely,
                   const jit::IterationSpace& space, BoundCode& code) const;
  bool can_stream(const jit::Nest& nest, const jit::IterationSpace& space, int64_t bytes) const;
  Status bind_streaming(const jit::Nest& nest, const jit::IterationSpace& space,
                        ElementwiseStep& result) const;
  Status bind_any_start(const jit::Nest& nest, jit::IterationSpace space, LaneStep& result) const;

  int64_t bytes_of_call(const ElementwiseStep& step, int64_t bytes) const;

  const Compiled& compiled_;
  ScratchPlan& plan_;
  const int64_t repetitions_;
};

}  // namespace castor::detail
