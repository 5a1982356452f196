// SPDX-License-Identifier: Apache-2.0
// Convolutions ready to run: planned, with code, and with weights packed where they are constant.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <variant>

#include "runtime/conv/dense.hpp"
#include "runtime/conv/dot.hpp"
#include "runtime/conv/sliding.hpp"
#include "runtime/conv/weight_rows.hpp"
#include "runtime/memory/scratch_plan.hpp"

namespace castor::detail {

/// There is nothing to multiply: all results are 0.
struct NothingToMultiply {};

/// One convolution of a bound kernel.
struct BoundConvolution {
  ConvolutionGeometry geometry;
  jit::Target target;              ///< what it is planned for
  std::string lower_tier_because;  ///< not empty: the target is of a lower tier than was wanted
  std::variant<NothingToMultiply, std::shared_ptr<const BoundDense>,
               std::shared_ptr<const BoundDepthwise>, std::shared_ptr<const BoundGroupedNhwc>,
               std::shared_ptr<const BoundDot>, std::shared_ptr<const BoundWeightRows>>
      form;
  bool applies_epilogue = false;  ///< kernels do
  size_t scratch = 0;             ///< where its part of a call's scratch begins
  size_t scratch_bytes = 0;

  /// The convolution, if it has that form; else null.
  const BoundDense* dense() const { return as<BoundDense>(); }
  const BoundDepthwise* depthwise() const { return as<BoundDepthwise>(); }
  const BoundGroupedNhwc* grouped_nhwc() const { return as<BoundGroupedNhwc>(); }
  const BoundDot* dot() const { return as<BoundDot>(); }
  const BoundWeightRows* weight_rows() const { return as<BoundWeightRows>(); }

 private:
  template <class Bound>
  const Bound* as() const {
    const auto* bound = std::get_if<std::shared_ptr<const Bound>>(&form);
    return bound == nullptr ? nullptr : bound->get();
  }
};

/// What decides how a convolution is done besides the convolution itself.
struct ConvolutionChoice {
  /// One of the candidates, for whose tiles the caller has asked; null: the one with the lowest
  /// cost, of a tier without tiles where the system refuses them.
  const jit::Candidate* candidate = nullptr;
  /// What kernels apply where they can, else the result is left in pieces; null: nothing.
  const jit::TileEpilogue* epilogue = nullptr;
  /// Whether an epilogue, applied by kernels or not, reads a tensor element by element, which may
  /// be the one that it writes: then no result may be written twice.
  bool has_residual = false;
  WeightSharing weights = {};
};

/// Binds the convolution of a nest. `constants` are the data of constant operands, else null.
/// Throws std::bad_alloc.
Result<std::shared_ptr<const BoundConvolution>> bind_convolution(
    const ConvolutionGeometry& geometry, const ConvolutionOperands& operands,
    std::span<const std::byte* const> constants, const jit::Target& target, CodeCache& cache,
    ScratchPlan& scratch, const ConvolutionChoice& choice = {});

/// Runs a step. Allocates nothing.
void run_convolution(const ConvolutionStep& step, const CallMemory& memory);

}  // namespace castor::detail
