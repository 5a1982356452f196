// SPDX-License-Identifier: Apache-2.0
// Convolutions ready to run: planned, with code, and with weights packed where they are constant.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "jit/conv/conv_plan.hpp"
#include "runtime/code_cache.hpp"
#include "runtime/scratch_plan.hpp"

namespace castor::detail {

struct CallMemory;
struct BoundNest;

/// Weights as kernels read them.
template <class Int>
struct PackedWeights {
  std::span<Int> dwords;  ///< by group, channel tile, tap and channel of the tile
  std::span<Int> sums;    ///< by output channel, the sum of its weights, as the kernel has them
};

/// Where the lanes of a block's line go.
struct LineTables {
  jit::ConvBlock block;
  int64_t tiles = 0;
  std::vector<jit::ConvStore> output;
  std::vector<jit::ConvStore> window_sums;  ///< empty where none are needed
};

/// Parts of the call's scratch, as offsets in bytes.
struct ConvScratch {
  size_t planes = 0;
  size_t start = 0;        ///< accumulators' first values, by output channel
  size_t zero_points = 0;  ///< of weights, likewise
  size_t window_sums = 0;  ///< by pixel of a line
  size_t weights = 0;      ///< packed in the call; then their sums
  size_t line = 0;         ///< outputs of a line, for layouts in which they do not lie side by side
  size_t end = 0;
};

/// One convolution of a bound kernel. Its operands are those of its nest: x, w, then the zero
/// points that there are, and y.
struct BoundConvolution {
  jit::ConvPlan plan;
  jit::Target target;
  bool x_is_signed = false;
  bool w_is_signed = false;
  int x_zero_point = -1;  ///< which operand; -1: none
  int w_zero_point = -1;
  bool zero_points_per_channel = false;
  NestCodePtr code;                   ///< of whole tiles; null where there is nothing to multiply
  NestCodePtr last_code;              ///< of the last channel tile
  NestCodePtr sums_code;              ///< of window sums; null where weights have no zero point
  std::vector<int32_t> packed;        ///< weights, then their sums; empty where each call packs
  std::vector<int32_t> sums_weights;  ///< 1 for each channel that there is, by tap
  std::vector<LineTables> lines;      ///< one for each size of block, at most four
  size_t scratch = 0;                 ///< where ConvScratch begins
  ConvScratch parts;
};

/// Binds the convolution of a nest. `constants` are the data of constant operands, else null.
/// Throws std::bad_alloc.
/// `x_zero_point` and `w_zero_point` number operands.
Result<std::shared_ptr<const BoundConvolution>> bind_convolution(
    const ConvolutionGeometry& geometry, std::span<const ElementType> elements,
    std::span<const std::byte* const> constants, int x_zero_point, int w_zero_point,
    bool zero_points_per_channel, const jit::Target& target, CodeCache& cache,
    ScratchPlan& scratch);

/// Dwords of all packed weights.
size_t packed_dwords(const jit::ConvPlan& plan);
/// Packs the weights `w`, which are row-major. `zero_points`, by output channel, are taken off
/// where there is no VNNI.
void pack_weights(const jit::ConvPlan& plan, const std::byte* w, bool is_signed,
                  const int32_t* zero_points, const PackedWeights<int32_t>& to);

/// What planes of input hold.
struct PlaneInput {
  const std::byte* x = nullptr;  ///< of the whole batch
  bool is_signed = false;
  int32_t zero_point = 0;
};

/// One block of output pixels of one group of one image.
struct BlockPlace {
  int64_t image = 0;
  int64_t group = 0;
  int64_t outer = 0;  ///< output position along the outer spatial axes, row-major
  int64_t row = 0;
  int64_t column = 0;
  jit::ConvBlock block;
};

/// Lays the input of a block out in planes; padding is the zero point.
void fill_planes(const jit::ConvPlan& plan, const PlaneInput& input, const BlockPlace& place,
                 std::byte* planes);

/// Runs it. Allocates nothing.
void run_convolution(const BoundConvolution& convolution, const BoundNest& nest,
                     const CallMemory& memory);

}  // namespace castor::detail
