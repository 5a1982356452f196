// SPDX-License-Identifier: Apache-2.0
// One call of a convolution: block by block, planes, window sums, tiles of output channels.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "ir/support/integer_math.hpp"
#include "runtime/conv/convolution_blocks.hpp"
#include "runtime/conv/convolution_call.hpp"
#include "runtime/conv/convolution_call_weights.hpp"
#include "runtime/conv/convolution_output.hpp"
#include "runtime/conv/interleave.hpp"
#include "runtime/conv/window_sums.hpp"

namespace castor::detail {

namespace {

/// Runs one call of a convolution.
class ConvolutionRun {
 public:
  ConvolutionRun(const ConvolutionStep& step, const TaskTeams& teams, const CallMemory& memory)
      : convolution_(*step.convolution),
        plan_(convolution_.plan),
        blocks_(convolution_),
        teams_(teams),
        operands_(operands_of(step, memory)),
        weights_(convolution_,
                 {operands_[1], data_of(convolution_.operands.w_zero_point, operands_),
                  input_zero_point()},
                 memory.scratch + convolution_.scratch),
        output_(plan_.geometry, step, memory) {}

  /// Before any task.
  void prepare() { weights_.prepare(); }

  /// The tasks from `begin` to `end`, each of which works in a scratch of its own.
  void run(int64_t begin, int64_t end, std::byte* scratch) const {
    KeptVectors kept;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t member = task % teams_.members;
      blocks_.for_each_part(task / teams_.members, teams_.teams, [&](const BlockPart& part) {
        run_share(part, blocks_.share_of(part, member, teams_.members),
                  blocks_.share_of(part, member + 1, teams_.members), scratch, kept);
      });
    }
  }

 private:
  int32_t input_zero_point() const {
    const std::byte* zero = data_of(convolution_.operands.x_zero_point, operands_);
    if (zero == nullptr) return 0;
    return convolution_.operands.x_is_signed ? static_cast<int8_t>(*zero)
                                             : static_cast<uint8_t>(*zero);
  }

  /// Some pixel tiles of some channel tiles.
  struct Tiles {
    int64_t begin = 0;  ///< channel tiles
    int64_t end = 0;
    PixelTiles pixels;
  };

  /// A task's share of a part: the rest of a channel tile, whole ones, the beginning of another.
  void run_share(const BlockPart& part, const ShareBegin& begin, const ShareBegin& end,
                 std::byte* scratch, KeptVectors& kept) const {
    const PixelTiles& all = part.tiles;
    const int64_t first = begin.channel_tile;
    if (first == end.channel_tile) {
      const Tiles tiles = {first, first + 1, {begin.pixel_tile, end.pixel_tile}};
      return run_tiles({&tiles, 1}, part, tiles.pixels, scratch, kept);
    }
    const bool begins_inside = begin.pixel_tile > all.begin;
    const std::array shares = {
        Tiles{first, begins_inside ? first + 1 : first, {begin.pixel_tile, all.end}},
        Tiles{begins_inside ? first + 1 : first, end.channel_tile, all},
        Tiles{end.channel_tile,
              std::min(end.channel_tile + 1, plan_.channel_tiles),
              {all.begin, end.pixel_tile}}};
    run_tiles(shares, part, all, scratch, kept);
  }

  /// `laid_out` are the pixel tiles of all `shares`.
  void run_tiles(std::span<const Tiles> shares, const BlockPart& part, const PixelTiles& laid_out,
                 std::byte* scratch, KeptVectors& kept) const {
    if (laid_out.count() == 0) return;
    const PixelRange pixels = blocks_.pixels_of(*part.tables, laid_out);
    if (pixels.begin == pixels.end) return;
    const BlockPlace inner = ConvolutionBlocks::part_with(part.place, pixels);
    const Tiles& first = *std::ranges::find_if(shares, [](const Tiles& tiles) {
      return tiles.begin < tiles.end && tiles.pixels.count() > 0;
    });
    const int64_t from_input = tiles_from_input(part, first);
    const std::byte* source =
        source_of(part.place, inner, scratch, kept, from_input * pixels_of_tile());
    const LaidOutBlock block = {part.place, inner, *part.tables, source, scratch};
    if (convolution_.window_sums != jit::WindowSums::none) sum_block(convolution_, block, laid_out);
    for (const Tiles& tiles : shares) {
      if (tiles.begin == tiles.end || tiles.pixels.count() == 0) continue;
      run_tiles(block, tiles, &tiles == &first ? from_input : 0);
    }
  }

  int64_t pixels_of_tile() const { return plan_.tile.vectors * plan_.lanes; }

  /// How many of the first tiles of pixels the first tile of channels takes from the input: all
  /// whole ones, if it has all tiles of a block and as many channels as the code for it.
  int64_t tiles_from_input(const BlockPart& part, const Tiles& tiles) const {
    const bool has_code = convolution_.input_code &&
                          (tiles.begin + 1 < plan_.channel_tiles || plan_.channel_tiles == 1);
    if (!has_code || tiles.pixels.count() < part.tables->pixel_tiles) return 0;
    return part.place.block.rows * part.place.block.columns / pixels_of_tile();
  }

  /// The first tile of channels takes the pixels of `from_input` tiles from the input.
  void run_tiles(const LaidOutBlock& block, const Tiles& tiles, int64_t from_input) const {
    for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
      weights_.prepare_tile(block.place.group, tile, block.scratch);
      if (!plan_.is_pixel_vectorised()) {
        run_pixels(block, tile, tiles.pixels);
        continue;
      }
      PixelTiles left = tiles.pixels;
      if (tile == tiles.begin && from_input > 0) {
        left.begin = from_input;
        run_line(block, tile, {0, from_input}, *convolution_.input_code);
      }
      const bool is_last = tile + 1 == plan_.channel_tiles;
      const KernelCode<jit::DenseTile>& code =
          is_last ? *convolution_.last_code : *convolution_.code;
      if (left.count() > 0) run_line(block, tile, left, code);
    }
    if (plan_.transposes()) store_pixels(block, tiles);
  }

  /// The source of a block, of which the inner part is laid out.
  const std::byte* source_of(const BlockPlace& place, const BlockPlace& inner, std::byte* scratch,
                             KeptVectors& kept, int64_t pixels_laid_out) const {
    const PlaneInput input = {operands_[0], convolution_.operands.x_is_signed, input_zero_point()};
    if (std::holds_alternative<jit::DirectInput>(plan_.source))
      return input_of(plan_, input, place);
    std::byte* source = scratch + convolution_.parts.source;
    std::byte* to = source + source_bytes_before(plan_, place, inner);
    if (pixels_laid_out < inner.block.rows * inner.block.columns) {
      pack_input(plan_, convolution_.input_packer.get(), input, inner, to, kept, pixels_laid_out);
    }
    return source;
  }

  /// The beginning of a block's line.
  jit::DenseArguments line_arguments(const LaidOutBlock& block) const {
    jit::DenseArguments arguments = taps_of_line(plan_, block);
    if (convolution_.input_code) {
      const ConvolutionGeometry& geometry = plan_.geometry;
      const int64_t channel =
          block.place.image * geometry.channels + block.place.group * geometry.group_channels();
      arguments.input_step = plan_.rows.input * plan_.columns.input;
      arguments.input =
          operands_[0] + channel * arguments.input_step + block.place.row * plan_.columns.input;
    }
    return arguments;
  }
  /// Lets the arguments be of some tiles of the line.
  void set_tiles(jit::DenseArguments& arguments, const LaidOutBlock& block,
                 const PixelTiles& tiles) const {
    const int64_t vectors = tiles.begin * plan_.tile.vectors;
    arguments.window_sums = window_sums(convolution_, block);
    arguments.stores = block.tables.output.data() + vectors;
    arguments.tiles = tiles.count();
  }

  int64_t first_channel(int64_t tile) const {
    return std::min<int64_t>(tile * plan_.tile.channels, plan_.geometry.group_out_channels());
  }
  /// The output channels of a tile, at the block's first pixel.
  OutputPiece piece_of(const LaidOutBlock& block, int64_t tile) const {
    const int64_t first = first_channel(tile);
    return {.image = block.place.image,
            .channel = block.place.group * plan_.geometry.group_out_channels() + first,
            .channels = first_channel(tile + 1) - first,
            .pixel = first_pixel(block.place)};
  }
  /// The number of a block's first pixel.
  int64_t first_pixel(const BlockPlace& place) const {
    return (place.outer * plan_.rows.output + place.row) * plan_.columns.output + place.column;
  }
  /// Where an epilogue's operands lie at a piece, for kernels that apply it.
  class EpilogueOperands {
   public:
    EpilogueOperands(const ConvolutionOutput& output, const OutputPiece& piece) {
      output.find_operands(piece, operands_.data());
    }
    const jit::EpilogueOperand* data() const { return operands_.data(); }

   private:
    std::array<jit::EpilogueOperand, jit::max_tile_operands + 1> operands_;
  };

  /// How many of `count` parts of that many elements are one piece of the output.
  int64_t at_once_of(int64_t elements, int64_t count) const {
    return std::clamp<int64_t>(output_.max_elements() / elements, 1, count);
  }

  /// Some pixels of one tile of channels, pixels in the lanes.
  void run_line(const LaidOutBlock& block, int64_t tile, const PixelTiles& tiles,
                const KernelCode<jit::DenseTile>& kernel) const {
    OutputPiece piece = piece_of(block, tile);
    jit::DenseArguments arguments = line_arguments(block);
    set_tiles(arguments, block, tiles);
    arguments.weights = weights_.packed(block.place.group, tile, block.scratch);
    arguments.start = weights_.starts(piece.channel, block.scratch);
    arguments.weight_zero_points = weights_.zero_points(piece.channel);
    const auto code = kernel.entry();
    if (plan_.transposes()) {
      auto* line = reinterpret_cast<int32_t*>(block.scratch + convolution_.parts.line);
      arguments.output = line + first_channel(tile) * block.pixels();
      arguments.output_step = 4 * block.pixels();
      code(&arguments);
    } else if (convolution_.applies_epilogue) {
      const EpilogueOperands operands(output_, piece);
      arguments.epilogue = operands.data();
      code(&arguments);
    } else {
      run_pieces_of_line(block, tiles, piece, arguments, code);
    }
  }

  /// `piece` begins with the block's first pixel; `arguments` are of all tiles. Both are changed:
  /// copies would have to wait for all stores in front of them.
  void run_pieces_of_line(const LaidOutBlock& block, const PixelTiles& tiles, OutputPiece& piece,
                          jit::DenseArguments& arguments,
                          jit::KernelFunction<jit::DenseTile> code) const {
    const int64_t lanes = plan_.tile.vectors * plan_.lanes;
    const int64_t at_once = at_once_of(piece.channels * lanes, tiles.count());
    const int64_t first_pixel = piece.pixel;
    for (int64_t first = tiles.begin; first < tiles.end; first += at_once) {
      const PixelTiles some = {first, std::min(first + at_once, tiles.end)};
      const PixelRange pixels = blocks_.pixels_of(block.tables, some);
      if (pixels.begin == pixels.end) continue;
      piece.pixel = first_pixel + pixels.begin;
      piece.pixels = pixels.end - pixels.begin;
      const PieceMemory memory = output_.begin(piece, block.scratch);
      set_tiles(arguments, block, some);
      arguments.output = counted_back(memory.data, pixels.begin);
      arguments.output_step = 4 * memory.channel_step;
      code(&arguments);
      output_.end(piece, block.scratch);
    }
  }

  /// Outputs that lie channel by channel go where they lie pixel by pixel.
  void store_pixels(const LaidOutBlock& block, const Tiles& tiles) const {
    const int64_t pixels = block.pixels();
    const PixelRange range = blocks_.pixels_of(block.tables, tiles.pixels);
    const auto* line = reinterpret_cast<const int32_t*>(block.scratch + convolution_.parts.line);
    OutputPiece piece = piece_of(block, tiles.begin);
    piece.channels = first_channel(tiles.end) - first_channel(tiles.begin);
    const int64_t at_once = at_once_of(piece.channels, range.end - range.begin);
    for (int64_t pixel = range.begin; pixel < range.end; pixel += at_once) {
      piece.pixel = first_pixel(block.place) + pixel;
      piece.pixels = std::min(at_once, range.end - pixel);
      const PieceMemory memory = output_.begin(piece, block.scratch);
      transpose_dwords(line + first_channel(tiles.begin) * pixels + pixel, pixels, piece.channels,
                       piece.pixels, memory.data, memory.pixel_step);
      output_.end(piece, block.scratch);
    }
  }

  /// Some pixels of one tile of channels, channels in the lanes.
  void run_pixels(const LaidOutBlock& block, int64_t tile, const PixelTiles& tiles) const {
    OutputPiece piece = piece_of(block, tile);
    jit::DenseArguments arguments;
    arguments.source = block.source;
    arguments.k_steps = plan_.k_steps.data();
    arguments.k_step_count = static_cast<int64_t>(plan_.k_steps.size());
    arguments.weights = weights_.packed(block.place.group, tile, block.scratch);
    arguments.start = weights_.starts(piece.channel, block.scratch);
    arguments.weight_zero_points = weights_.zero_points(piece.channel);
    arguments.window_sums = window_sums(convolution_, block);
    const bool is_last = tile + 1 == plan_.channel_tiles;
    int64_t before = 0;  // tiles of the runs before
    for (const BoundTileRun& run : block.tables.runs) {
      const auto count = static_cast<int64_t>(run.tiles.places.size());
      const PixelTiles of_run = {std::clamp<int64_t>(tiles.begin - before, 0, count),
                                 std::clamp<int64_t>(tiles.end - before, 0, count)};
      before += count;
      if (of_run.count() == 0) continue;
      run_places(block, run, of_run, is_last ? *run.last_code : *run.code, piece, arguments);
    }
  }

  /// Some tiles of a run. `piece` begins with the block's first pixel, from which places are
  /// counted.
  void run_places(const LaidOutBlock& block, const BoundTileRun& run, const PixelTiles& tiles,
                  const KernelCode<jit::DenseTile>& of_tiles, OutputPiece piece,
                  jit::DenseArguments arguments) const {
    const std::vector<jit::TilePlace>& places = run.tiles.places;
    const auto code = of_tiles.entry();
    if (convolution_.applies_epilogue) {
      const EpilogueOperands operands(output_, piece);
      arguments.epilogue = operands.data();
      arguments.places = places.data() + tiles.begin;
      arguments.tiles = tiles.count();
      return code(&arguments);
    }
    const int pixels = run.tiles.tile.pixels();
    const int64_t at_once = at_once_of(piece.channels * pixels, tiles.count());
    const int64_t first_pixel = piece.pixel;
    for (int64_t first = tiles.begin; first < tiles.end; first += at_once) {
      const int64_t end = std::min(first + at_once, tiles.end);
      const int64_t pixel = places[static_cast<size_t>(first)].pixel;
      piece.pixel = first_pixel + pixel;
      piece.pixels = places[static_cast<size_t>(end - 1)].pixel + pixels - pixel;
      const PieceMemory memory = output_.begin(piece, block.scratch);
      arguments.places = places.data() + first;
      arguments.tiles = end - first;
      arguments.output = counted_back(memory.data, pixel * memory.pixel_step);
      arguments.output_step =
          4 * (plan_.tile.store == jit::StorePolicy::transposed ? memory.channel_step
                                                                : memory.pixel_step);
      code(&arguments);
      output_.end(piece, block.scratch);
    }
  }

  const BoundConvolution& convolution_;
  const jit::DensePlan& plan_;
  const ConvolutionBlocks blocks_;
  const TaskTeams teams_;
  const CallOperands operands_;
  CallWeights weights_;
  ConvolutionOutput output_;
};

}  // namespace

void set_weight_zero_points(const BoundConvolution& convolution, const std::byte* zero_points,
                            std::span<int32_t> to) {
  const bool bytes = convolution.plan.engine == jit::ProductEngine::u8_i8_dot;
  const bool is_signed = convolution.operands.w_is_signed;
  const int32_t shift = bytes && !is_signed ? 128 : 0;
  for (size_t m = 0; m < to.size(); ++m) {
    to[m] = -shift;
    if (zero_points == nullptr) continue;
    const std::byte byte = zero_points[convolution.operands.zero_points_per_channel ? m : 0];
    to[m] += is_signed ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
  }
}

bool has_work(const ConvolutionGeometry& geometry) {
  for (const ConvolutionAxis& axis : geometry.axes) {
    if (axis.output == 0) return false;
  }
  return geometry.batch > 0 && geometry.out_channels > 0;
}

void run_convolution(const ConvolutionStep& step, const CallMemory& memory) {
  const BoundConvolution& convolution = *step.convolution;
  if (!has_work(convolution.plan.geometry)) return;
  if (convolution.depthwise) {
    return run_depthwise(*convolution.depthwise, convolution.scratch, step, memory);
  }
  if (convolution.grouped_nhwc) {
    return run_grouped_nhwc(*convolution.grouped_nhwc, convolution.scratch, step, memory);
  }
  if (!convolution.multiplies) {  // nothing to add up
    const int64_t to = address(step.operands.back(), memory);
    const Dims extents = convolution.plan.geometry.output_extents();
    std::memset(reinterpret_cast<void*>(to), 0,
                static_cast<size_t>(element_count(extents).value_or(0)) * 4);
    return;
  }
  const TaskTeams teams = choose_teams(convolution, max_tasks(memory, step.nanoseconds));
  ConvolutionRun run(step, teams, memory);
  run.prepare();
  share_out(run, teams.tasks(), teams.tasks(), memory, convolution.scratch);
}

}  // namespace castor::detail
