// SPDX-License-Identifier: Apache-2.0
// Binds nests that fold into accumulators.
#pragma once

#include <functional>
#include <vector>

#include "runtime/bind/fold_step.hpp"
#include "runtime/bind/nest_binding.hpp"
#include "runtime/bind/value_origins.hpp"

namespace castor::detail {

struct BoundState;

/// Tensors that a pass reads, and their strides over the axes of its space.
struct FoldInputs {
  std::vector<StepOperand> operands;
  std::vector<Dims> strides;
};

/// Binds the passes of one nest. An order-free reduction is one pass over all of its axes, and one
/// more where rows are folded in parts; sums of floats fold one group of neighbouring axes after
/// the other (see SumTree).
class FoldBinder {
 public:
  /// Adds a step that copies a tensor to another of the same extents.
  using Copy = std::function<Status(const TensorOrigin& from, const TensorOrigin& to, ElementType)>;

  FoldBinder(BoundState& bound, ValueOrigins& origins, NestBinding& codes, size_t nest, Copy copy);

  /// `extents` are those of the nest's space.
  Status bind(FoldInputs inputs, const Dims& extents);

 private:
  using Axes = std::vector<bool>;

  Status bind_in_order(FoldInputs inputs, Dims extents);
  Status bind_passes(const jit::Nest& nest, FoldInputs inputs, Dims& extents, const Axes& reduced,
                     bool is_last, FoldInputs& partial);
  Status bind_pass(const jit::Nest& nest, const FoldInputs& inputs, const jit::FoldSpace& fold,
                   std::span<const OperandOrigin> accumulators);
  Status bind_unfolded(const jit::Nest& nest, FoldInputs& inputs, const Dims& extents);
  Status copy_to_results(const jit::FoldSpace& fold, const Dims& extents,
                         std::span<const OperandOrigin> from);
  std::vector<OperandOrigin> results();
  std::vector<OperandOrigin> take_scratch(int64_t elements);
  void give_back_scratch();
  void start_results();

  BoundState& bound_;
  ValueOrigins& origins_;
  NestBinding& codes_;
  const size_t at_;
  const jit::Nest& nest_;
  const Copy copy_;
  std::vector<size_t> scratch_;  ///< offsets that are given back after the passes
};

}  // namespace castor::detail
