// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions whose channels lie side by side, ready to run: planned, with code, and
// with weights packed where they are constant.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "jit/conv/depthwise_nhwc_plan.hpp"
#include "runtime/code_cache.hpp"
#include "runtime/convolution_output.hpp"
#include "runtime/depthwise.hpp"

namespace castor::detail {

struct BoundDepthwiseNhwc {
  jit::DepthwiseNhwcPlan plan;
  jit::Target target;
  /// Its filter and operands alone, as the other layout's kernels have them: weights are packed for
  /// these first, channel by channel.
  BoundDepthwise filter;
  NestCodePtr codes[2][2];  ///< by the products, as DepthwiseProducts has them; null: not needed
  std::vector<int32_t> packed;    ///< PackedNhwc; empty where each call packs
  std::vector<int32_t> starts;    ///< first sums by vector; likewise
  DepthwiseProducts products;     ///< of what is packed
  bool applies_epilogue = false;  ///< kernels do
  size_t scratch_bytes = 0;       ///< that a call needs, 0 where all is known
};

/// Binds a convolution; null where there is no form of this kind for it. `constants` are the data
/// of constant operands, else null. `epilogue` is what kernels apply if they can, or null. Throws
/// std::bad_alloc.
Result<std::shared_ptr<const BoundDepthwiseNhwc>> bind_depthwise_nhwc(
    const ConvolutionGeometry& geometry, const ConvolutionOperands& operands,
    std::span<const std::byte* const> constants, const jit::Target& target, CodeCache& cache,
    const jit::TileEpilogue* epilogue = nullptr);

/// The first channel of a vector: the last vector lies over the one before where channels do not
/// fill it.
int64_t first_channel(const jit::DepthwiseNhwcPlan& plan, int64_t vector);
/// Weights as kernels read them, and what they are made of.
template <class Int>
struct PackedNhwc {
  std::span<Int> weights;     ///< by vector; begins at a line of the cache
  std::span<Int> sums;        ///< by channel, of weights less the zero point
  std::span<Int> by_channel;  ///< as the other layout's kernels read them
};
/// Dwords of the weights alone, and of all that it has.
size_t weight_dwords(const BoundDepthwiseNhwc& depthwise);
size_t packed_dwords(const BoundDepthwiseNhwc& depthwise);
size_t start_dwords(const BoundDepthwiseNhwc& depthwise);
/// Its parts, which lie somewhere behind `data`.
template <class Int>
PackedNhwc<Int> packed_nhwc(const BoundDepthwiseNhwc& depthwise, Int* data) {
  constexpr uintptr_t line = 64;
  const auto past = reinterpret_cast<uintptr_t>(data) % line;
  data += past == 0 ? 0 : (line - past) / sizeof(Int);
  const size_t weights = weight_dwords(depthwise);
  const auto rest = depthwise_weights(depthwise.filter, data + weights);
  return {{data, weights}, rest.sums, rest.dwords};
}
/// Packs the weights `w`, which are row-major, for products that do. `zero_points` is null where
/// there are none.
void pack_weights(const BoundDepthwiseNhwc& depthwise, const DepthwiseProducts& products,
                  const std::byte* w, const std::byte* zero_points, const PackedNhwc<int32_t>& to);
/// First values of sums, by vector.
void set_starts(const BoundDepthwiseNhwc& depthwise, const DepthwiseProducts& products,
                const std::byte* x_zero_point, std::span<const int32_t> sums,
                std::span<int32_t> starts);

struct BoundNest;
struct CallMemory;

/// Runs a convolution whose scratch begins at that offset. Allocates nothing.
void run_depthwise_nhwc(const BoundDepthwiseNhwc& depthwise, size_t scratch, const BoundNest& nest,
                        const CallMemory& memory);

}  // namespace castor::detail
