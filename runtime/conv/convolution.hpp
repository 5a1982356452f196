// SPDX-License-Identifier: Apache-2.0
// Convolutions ready to run: planned, with code, and with weights packed where they are constant.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "jit/conv/candidates.hpp"
#include "jit/conv/dense/tile_spec.hpp"
#include "runtime/cache/code_cache.hpp"
#include "runtime/conv/pack_input.hpp"
#include "runtime/conv/pack_weights.hpp"
#include "runtime/conv/sliding.hpp"
#include "runtime/conv/weight_sharing.hpp"
#include "runtime/memory/scratch_plan.hpp"

namespace castor::detail {

struct CallMemory;
struct ConvolutionStep;

/// Neighbouring tiles of a block, channels in the lanes, and their code.
struct BoundTileRun {
  jit::ChannelTileRun tiles;
  KernelCodePtr<jit::DenseTile> code;
  KernelCodePtr<jit::DenseTile> last_code;  ///< of the last channel tile
};

/// What is done for each block of one size.
struct BlockTables {
  jit::CacheBlock block;
  int64_t pixel_tiles = 0;                  ///< of the line, or places of all runs
  std::vector<jit::ConvStore> output;       ///< likewise
  std::vector<jit::ConvStore> window_sums;  ///< of planes; empty where none are needed
  std::vector<BoundTileRun> runs;           ///< channels in the lanes
};

/// Parts of the call's scratch, as offsets in bytes.
struct ConvScratch {
  size_t source = 0;       ///< planes, or copies of rows
  size_t start = 0;        ///< accumulators' first values, by output channel
  size_t zero_points = 0;  ///< of weights, likewise
  size_t window_sums = 0;  ///< by pixel of a line, or of a block
  size_t summing = 0;      ///< for the work of summing windows of rows
  size_t weights = 0;      ///< packed in the call; then their sums
  size_t line = 0;         ///< outputs of a line, for layouts in which they do not lie side by side
  size_t end = 0;
};

/// One convolution of a bound kernel.
struct BoundConvolution {
  jit::DensePlan plan;
  double cycles = 0;          ///< of an image, as estimated
  double packing_cycles = 0;  ///< those of them in which its input is packed
  jit::Target target;
  ConvolutionOperands operands;
  bool multiplies = false;        ///< else all results are 0
  bool applies_epilogue = false;  ///< kernels do
  /// How kernels subtract window sums, where weights have zero points.
  jit::WindowSums window_sums = jit::WindowSums::none;
  KernelCodePtr<jit::DenseTile> code;       ///< pixels in the lanes: of whole tiles
  KernelCodePtr<jit::DenseTile> last_code;  ///< likewise of the last channel tile
  KernelCodePtr<jit::DenseTile> sums_code;  ///< of window sums of planes; else null
  /// Of a channel tile that is not the last one, or is the only one, taking pixels from the input,
  /// which it lays out in planes; or null.
  KernelCodePtr<jit::DenseTile> input_code;
  KernelCodePtr<jit::PackInput> input_packer;  ///< or null
  WeightPackers weight_packers;
  PackedDwords packed;  ///< weights, then their sums; empty where each call packs
  /// Where each call packs: whether tile by tile in front of its one use.
  bool packs_by_tile = false;
  std::vector<int32_t> sums_weights;                ///< 1 for each channel that there is, by tap
  std::vector<BlockTables> blocks;                  ///< one for each size of block, at most four
  std::shared_ptr<const BoundDepthwise> depthwise;  ///< where it is one: then nothing above
  std::shared_ptr<const BoundGroupedNhwc> grouped_nhwc;  ///< likewise
  size_t scratch = 0;                                    ///< where ConvScratch begins
  ConvScratch parts;
};

/// What decides how a convolution is done besides the convolution itself.
struct ConvolutionChoice {
  /// One of the candidates; null: the one with the lowest cost.
  const jit::Candidate* candidate = nullptr;
  /// What kernels apply where they can, else the result is left in pieces; null: nothing.
  const jit::TileEpilogue* epilogue = nullptr;
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
