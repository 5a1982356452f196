// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions ready to run: planned, with code, and with weights packed where they are
// constant.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "jit/conv/depthwise_plan.hpp"
#include "runtime/code_cache.hpp"
#include "runtime/convolution_output.hpp"
#include "runtime/depthwise_blocks.hpp"

namespace castor::detail {

/// What is known of a convolution's operands besides their extents.
struct DepthwiseOperands {
  bool x_is_signed = false;
  bool w_is_signed = false;
  int x_zero_point = -1;  ///< which operand; -1: none
  int w_zero_point = -1;
  bool zero_points_per_channel = false;
};

/// How weights are multiplied. Less their zero points where all of these differences are signed
/// bytes, or unsigned ones by signed input; else as they are, and window sums are subtracted.
struct DepthwiseProducts {
  bool signed_input = false;  ///< by unsigned weights; else 128 is added to signed input
  bool subtracts_window_sums = false;
};

/// Weights as kernels read them.
template <class Int>
struct DepthwiseWeights {
  std::span<Int> dwords;  ///< by slice of the filter, output channel, row and dword
  std::span<Int> sums;    ///< by slice and output channel: of weights less the zero point
};

struct BoundDepthwise {
  jit::DepthwisePlan plan;
  jit::Target target;
  DepthwiseOperands operands;
  /// By the products, as DepthwiseProducts has them, then by whether outputs are added to; null
  /// where there is no need.
  NestCodePtr codes[2][2][2];
  std::vector<int32_t> packed;    ///< DepthwiseWeights; empty where each call packs
  std::vector<int32_t> starts;    ///< first sums, by slice and output channel; likewise
  DepthwiseProducts products;     ///< of what is packed
  bool applies_epilogue = false;  ///< kernels do
  size_t scratch_bytes = 0;       ///< that a call needs, 0 where all is known
};

/// Binds a convolution; null where there is no depthwise form for it. `constants` are the data of
/// constant operands, else null. `epilogue` is what kernels apply if they can, or null. Throws
/// std::bad_alloc.
Result<std::shared_ptr<const BoundDepthwise>> bind_depthwise(
    const ConvolutionGeometry& geometry, const DepthwiseOperands& operands,
    std::span<const std::byte* const> constants, const jit::Target& target, CodeCache& cache,
    const jit::TileEpilogue* epilogue = nullptr);

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

struct BoundNest;
struct CallMemory;

/// One call: the operands of the bound nest, and its scratch of `scratch_bytes`.
struct DepthwiseCall {
  std::span<const std::byte* const> operands;
  std::byte* scratch = nullptr;
  const ConvolutionOutput* output = nullptr;
};

/// Runs calls piece by piece. Allocates nothing.
class DepthwiseRun {
 public:
  /// Packs what all tasks read.
  DepthwiseRun(const BoundDepthwise& depthwise, const DepthwiseCall& call);

  /// Pieces of the output, which tasks share out.
  int64_t pieces() const;
  /// The pieces from `begin` to `end`; `scratch` belongs to the task and is the output's.
  void run(int64_t begin, int64_t end, std::byte* scratch) const;

 private:
  /// One piece: output channels of an image, and a part of their planes.
  struct Place {
    int64_t image = 0;
    int64_t channel = 0;
    int64_t channels = 0;
    int64_t outer = 0;  ///< output position along the outer spatial axes, row-major
    DepthwisePart part;
  };

  int64_t most_elements() const;
  void choose_pieces();
  int64_t row_pieces() const;
  int64_t column_pieces() const;
  int64_t channel_pieces() const;
  bool has_whole_planes() const { return piece_rows_ == plan_.rows.output && !splits_rows_; }
  Place place_of(int64_t piece) const;
  void run_place(const Place& place, std::byte* scratch) const;
  void run_blocks(const Place& place, const DepthwiseBlockList& blocks,
                  const PieceMemory& to) const;
  void apply_blocks(const Place& place, const DepthwiseBlockList& blocks,
                    const OutputPiece& piece) const;
  jit::DepthwiseArguments arguments_for(const DepthwiseBlockList& blocks) const;
  void clear(const Place& place, const PieceMemory& to) const;
  bool run_slice(const Place& place, int64_t slice, bool adds,
                 jit::DepthwiseArguments arguments) const;
  const std::byte* operand(int index) const;

  const BoundDepthwise& depthwise_;
  const jit::DepthwisePlan& plan_;
  const DepthwiseCall& call_;
  DepthwiseProducts products_;
  DepthwiseWeights<const int32_t> weights_;
  std::span<const int32_t> starts_;
  int64_t pixels_ = 1;  ///< of a channel of x
  int64_t piece_channels_ = 1;
  int64_t piece_rows_ = 1;
  bool splits_rows_ = false;  ///< whether a piece is a part of a row: one entry of columns
  DepthwiseWrites writes_;
  DepthwiseBlockList plane_;  ///< of a whole plane
};

/// Runs a convolution whose scratch begins at that offset. Allocates nothing.
void run_depthwise(const BoundDepthwise& depthwise, size_t scratch, const BoundNest& nest,
                   const CallMemory& memory);

}  // namespace castor::detail
