// SPDX-License-Identifier: Apache-2.0
// Convolutions ready to run: planned, with code, and with weights packed where they are constant.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "jit/conv/candidates.hpp"
#include "jit/conv/channel_kernel.hpp"
#include "jit/conv/conv_kernel.hpp"
#include "runtime/cache/code_cache.hpp"
#include "runtime/conv/convolution_movement.hpp"
#include "runtime/conv/sliding.hpp"
#include "runtime/conv/weight_sharing.hpp"
#include "runtime/memory/scratch_plan.hpp"

namespace castor::detail {

struct CallMemory;
struct ConvolutionStep;

/// Weights as kernels read them.
template <class Int>
struct DenseWeights {
  std::span<Int> dwords;  ///< by group, channel tile, tap and channel of the tile
  std::span<Int> sums;    ///< by output channel, the sum of its weights, as the kernel has them
};

/// Neighbouring tiles of a block, channels in the lanes, and their code.
struct BoundTileRun {
  jit::ChannelTileRun tiles;
  KernelCodePtr<jit::ChannelTile> code;
  KernelCodePtr<jit::ChannelTile> last_code;  ///< of the last channel tile
};

/// What is done for each block of one size.
struct BlockTables {
  jit::ConvBlock block;
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
  jit::ConvPlan plan;
  jit::Target target;
  ConvolutionOperands operands;
  bool multiplies = false;        ///< else all results are 0
  bool applies_epilogue = false;  ///< kernels do
  /// How kernels subtract window sums, where weights have zero points.
  jit::WindowSums window_sums = jit::WindowSums::none;
  KernelCodePtr<jit::ConvTile> code;       ///< pixels in the lanes: of whole tiles
  KernelCodePtr<jit::ConvTile> last_code;  ///< likewise of the last channel tile
  KernelCodePtr<jit::ConvTile> sums_code;  ///< of window sums of planes; else null
  /// Of a channel tile that is not the last one, or is the only one, taking pixels from the input,
  /// which it lays out in planes; or null.
  KernelCodePtr<jit::ConvTile> input_code;
  MovementCode movement;
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

/// Dwords of all packed weights.
size_t packed_dwords(const jit::ConvPlan& plan);
/// Dwords of a whole tile's packed weights.
int64_t tile_dwords(const jit::ConvPlan& plan);
/// Where the packed weights of a group's tile begin.
int64_t packed_tile(const jit::ConvPlan& plan, int64_t group, int64_t tile);
/// Packs the weights `w`, which are row-major. `zero_points`, by output channel, are taken off
/// where there is no VNNI.
void pack_weights(const jit::ConvPlan& plan, const MovementCode& code, const std::byte* w,
                  bool is_signed, const int32_t* zero_points, const DenseWeights<int32_t>& to);

/// The same of one tile of a group alone. Rows of the tile before may be packed once more.
void pack_weight_tile(const jit::ConvPlan& plan, const MovementCode& code, const std::byte* w,
                      bool is_signed, const int32_t* zero_points, int64_t group, int64_t tile,
                      const DenseWeights<int32_t>& to);

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

/// The vectors of the rows that were filled last, which those of the next group may be as well.
struct KeptVectors {
  struct Rows {
    int64_t first_row = 0;
    int64_t end_row = 0;
    int64_t first = 0;
    int64_t end = 0;
    int64_t dwords = 0;
    friend bool operator==(const Rows&, const Rows&) = default;
  };
  Rows rows;
  int64_t count = 0;
  std::array<jit::PlaneVector, 256> vectors;
};

/// Lays the input of a block out in planes; padding is the zero point. Where whole rows are taken,
/// the first `pixels_laid_out` pixels may be left out.
void fill_planes(const jit::ConvPlan& plan, const MovementCode& code, const PlaneInput& input,
                 const BlockPlace& place, std::byte* planes, KeptVectors& kept,
                 int64_t pixels_laid_out = 0);

/// The same of planes whose dwords hold taps, by the code that there is for them.
void fill_windows(const jit::ConvPlan& plan, const MovementCode& code, const PlaneInput& input,
                  const BlockPlace& place, std::byte* planes, KeptVectors& kept);

/// Copies the rows of a block's input; padding is the zero point.
void copy_rows(const jit::ConvPlan& plan, const PlaneInput& input, const BlockPlace& place,
               std::byte* to);

/// Where a block begins in the input itself.
const std::byte* input_of(const jit::ConvPlan& plan, const PlaneInput& input,
                          const BlockPlace& place);

/// Sums of the windows of a block's pixels, whose source is rows or the input; `work` has room for
/// window_sum_dwords.
void sum_windows(const jit::ConvPlan& plan, const std::byte* source, const jit::ConvBlock& block,
                 std::span<int32_t> work, int32_t* sums);
int64_t window_sum_dwords(const jit::ConvPlan& plan);

/// The input position along the outer axes that an output position there and a slice of the filter
/// take; nothing in the padding.
std::optional<int64_t> outer_position(const ConvolutionGeometry& geometry, int64_t output,
                                      int64_t slice);

/// Runs a step. Allocates nothing.
void run_convolution(const ConvolutionStep& step, const CallMemory& memory);

}  // namespace castor::detail
