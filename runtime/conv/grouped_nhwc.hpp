// SPDX-License-Identifier: Apache-2.0
// Depthwise and grouped convolutions whose channels lie side by side, ready to run: planned, with
// code, and with weights packed where they are constant.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "jit/conv/grouped_nhwc_plan.hpp"
#include "runtime/cache/code_cache.hpp"
#include "runtime/conv/convolution_output.hpp"
#include "runtime/conv/depthwise.hpp"

namespace castor::detail {

struct BoundGroupedNhwc {
  jit::GroupedNhwcPlan plan;
  jit::Target target;
  ConvolutionOperands operands;
  /// By the products, as DepthwiseProducts has them, then by whether outputs are added to; null
  /// where there is no need.
  ProductCodes<jit::GroupedNhwcForm> codes;
  PackedDwords packed;                   ///< PackedNhwc; empty where each call packs
  std::vector<jit::NhwcVector> vectors;  ///< with their starts, by slice and vector; likewise
  DepthwiseProducts products;            ///< of what is packed
  bool applies_epilogue = false;         ///< kernels do
  size_t scratch_bytes = 0;              ///< that a call needs, 0 where all is known
};

/// Binds a convolution by its plan, as bind_depthwise does.
Result<std::shared_ptr<const BoundGroupedNhwc>> bind_grouped_nhwc(
    jit::GroupedNhwcPlan plan, const ConvolutionOperands& operands,
    std::span<const std::byte* const> constants, const jit::Target& target, CodeCache& cache,
    const jit::TileEpilogue* epilogue = nullptr, const WeightSharing& sharing = {});

/// The products that calls may need whose weights are not known.
std::vector<DepthwiseProducts> possible_products(const BoundGroupedNhwc& grouped);
/// The products that do for the weights `w`, which are row-major; `zero_points` is null where there
/// are none.
DepthwiseProducts products_of(const BoundGroupedNhwc& grouped, const std::byte* w,
                              const std::byte* zero_points);

/// The place of some data at the next line of the cache.
template <class T>
T* at_next_line(T* data) {
  constexpr uintptr_t line = 64;
  const auto past = reinterpret_cast<uintptr_t>(data) % line;
  return data + (past == 0 ? 0 : (line - past) / sizeof(T));
}

/// Weights as kernels read them, and what they are made of.
template <class Int>
struct PackedNhwc {
  std::span<Int> records;  ///< by slice of the filter and vector; begins at a line of the cache
  std::span<Int> sums;     ///< by slice and output channel: of weights less the zero point
};
/// Dwords of a vector's record, of all records, and of all that PackedNhwc has.
size_t record_dwords(const BoundGroupedNhwc& grouped);
size_t weight_dwords(const BoundGroupedNhwc& grouped);
size_t packed_dwords(const BoundGroupedNhwc& grouped);
/// Its parts, which lie somewhere behind `data`.
template <class Int>
PackedNhwc<Int> packed_nhwc(const BoundGroupedNhwc& grouped, Int* data) {
  data = at_next_line(data);
  const size_t weights = weight_dwords(grouped);
  const auto sums = static_cast<size_t>(grouped.plan.slices * grouped.plan.geometry.out_channels);
  return {{data, weights}, {data + weights, sums}};
}
/// Packs the weights `w`, which are row-major, for products that do. `zero_points` is null where
/// there are none.
void pack_weights(const BoundGroupedNhwc& grouped, const DepthwiseProducts& products,
                  const std::byte* w, const std::byte* zero_points, const PackedNhwc<int32_t>& to);

/// Vectors by slice of the filter.
size_t vector_count(const BoundGroupedNhwc& grouped);
/// What kernels read of them, first values of sums included.
void set_vectors(const BoundGroupedNhwc& grouped, const DepthwiseProducts& products,
                 const std::byte* x_zero_point, std::span<const int32_t> sums,
                 std::span<jit::NhwcVector> vectors);

struct ConvolutionStep;
struct CallMemory;

/// Runs a convolution whose scratch begins at that offset. Allocates nothing.
void run_grouped_nhwc(const BoundGroupedNhwc& grouped, size_t scratch, const ConvolutionStep& step,
                      const CallMemory& memory);

}  // namespace castor::detail
