// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions ready to run: planned, with code, and with weights packed where they are
// constant.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "jit/conv/depthwise_plan.hpp"
#include "runtime/cache/code_cache.hpp"
#include "runtime/conv/convolution_operands.hpp"
#include "runtime/conv/convolution_output.hpp"
#include "runtime/conv/depthwise_blocks.hpp"
#include "runtime/conv/depthwise_products.hpp"
#include "runtime/conv/weight_sharing.hpp"

namespace castor::detail {

/// Weights as kernels read them.
template <class Int>
struct DepthwiseWeights {
  std::span<Int> dwords;  ///< by slice of the filter, output channel, row and dword
  std::span<Int> sums;    ///< by slice and output channel: of weights less the zero point
};

struct BoundDepthwise {
  jit::DepthwisePlan plan;
  jit::Target target;
  ConvolutionOperands operands;
  /// By the products, as DepthwiseProducts has them, then by whether outputs are added to; null
  /// where there is no need.
  ProductCodes<jit::DepthwiseForm> codes;
  PackedDwords packed;            ///< DepthwiseWeights; empty where each call packs
  std::vector<int32_t> starts;    ///< first sums, by slice and output channel; likewise
  DepthwiseProducts products;     ///< of what is packed
  bool applies_epilogue = false;  ///< kernels do
  size_t scratch_bytes = 0;       ///< that a call needs, 0 where all is known
};

/// Binds a convolution by its plan. `constants` are the data of constant operands, else null.
/// `epilogue` is what kernels apply, or null; fails (unsupported) where they have no room for it.
/// Throws std::bad_alloc.
Result<std::shared_ptr<const BoundDepthwise>> bind_depthwise(
    jit::DepthwisePlan plan, const ConvolutionOperands& operands,
    std::span<const std::byte* const> constants, const jit::Target& target, CodeCache& cache,
    const jit::TileEpilogue* epilogue = nullptr, const WeightSharing& sharing = {});

/// Dwords of all that DepthwiseWeights has.
size_t packed_dwords(const BoundDepthwise& depthwise);
/// Its parts, which begin at `data`.
template <class Int>
DepthwiseWeights<Int> depthwise_weights(const BoundDepthwise& depthwise, Int* data) {
  const auto channels = static_cast<size_t>(depthwise.plan.geometry.out_channels);
  const auto slices = static_cast<size_t>(depthwise.plan.slices);
  const size_t dwords = packed_dwords(depthwise) - slices * channels;
  return {{data, dwords}, {data + dwords, slices * channels}};
}
/// The products that calls may need whose weights are not known.
std::vector<DepthwiseProducts> possible_products(const ConvolutionOperands& operands,
                                                 const jit::Target& target);
/// The products that do for the weights `w`, which are row-major; `zero_points` is null where there
/// are none.
DepthwiseProducts products_of(const BoundDepthwise& depthwise, const std::byte* w,
                              const std::byte* zero_points);
/// Packs the weights for them.
void pack_weights(const BoundDepthwise& depthwise, const DepthwiseProducts& products,
                  const std::byte* w, const std::byte* zero_points,
                  const DepthwiseWeights<int32_t>& to);
/// First values of sums: what the input's zero point times the weights gives, less.
void set_starts(const BoundDepthwise& depthwise, const DepthwiseProducts& products,
                const std::byte* x_zero_point, std::span<const int32_t> sums,
                std::span<int32_t> starts);

struct ConvolutionStep;
struct CallMemory;

/// Runs a convolution whose scratch begins at that offset. Allocates nothing.
void run_depthwise(const BoundDepthwise& depthwise, size_t scratch, const ConvolutionStep& step,
                   const CallMemory& memory);

}  // namespace castor::detail
