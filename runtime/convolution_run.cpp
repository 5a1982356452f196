// SPDX-License-Identifier: Apache-2.0
// One call of a convolution: block by block, planes, window sums, tiles of output channels.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "ir/ceil_div.hpp"
#include "runtime/convolution_call_weights.hpp"
#include "runtime/convolution_output.hpp"
#include "runtime/interleave.hpp"
#include "runtime/nest_call.hpp"

namespace castor::detail {

namespace {

/// Runs one call of a convolution.
class ConvolutionRun {
 public:
  ConvolutionRun(const BoundConvolution& convolution, const BoundNest& nest,
                 const CallMemory& memory)
      : convolution_(convolution),
        plan_(convolution.plan),
        operands_(operands_of(nest, memory)),
        weights_(convolution, {operands_[1], operand(convolution.w_zero_point), input_zero_point()},
                 memory.scratch + convolution.scratch),
        output_(plan_.geometry, nest, memory) {}

  /// Before any task.
  void prepare() { weights_.prepare(); }

  /// Channel tiles of all blocks: what tasks share out.
  int64_t tiles() const { return blocks() * plan_.channel_tiles; }

  /// The tiles from `begin` to `end`, block by block, with planes in a scratch of the task's own.
  void run(int64_t begin, int64_t end, std::byte* scratch) const {
    KeptVectors kept;
    while (begin < end) {
      const int64_t block = begin / plan_.channel_tiles;
      const int64_t behind = std::min(end, (block + 1) * plan_.channel_tiles);
      const int64_t first = begin % plan_.channel_tiles;
      run_block(place_of(block), first, first + (behind - begin), scratch + convolution_.scratch,
                kept);
      begin = behind;
    }
  }

 private:
  using Operands = std::array<const std::byte*, 5>;

  static Operands operands_of(const BoundNest& nest, const CallMemory& memory) {
    Operands operands = {};
    for (size_t k = 0; k < nest.operands.size(); ++k) {
      operands[k] = reinterpret_cast<const std::byte*>(
          address(origin_of(nest.operands[k], memory), nest.elements[k]));
    }
    return operands;
  }

  const std::byte* operand(int index) const {
    return index < 0 ? nullptr : operands_[static_cast<size_t>(index)];
  }

  int32_t input_zero_point() const {
    const std::byte* zero = operand(convolution_.x_zero_point);
    if (zero == nullptr) return 0;
    return convolution_.x_is_signed ? static_cast<int8_t>(*zero) : static_cast<uint8_t>(*zero);
  }

  int64_t row_blocks() const { return ceil_div(plan_.output_rows(), plan_.block.rows); }
  int64_t column_blocks() const { return ceil_div(plan_.output_columns(), plan_.block.columns); }
  int64_t blocks() const {
    return plan_.geometry.batch * plan_.geometry.groups * plan_.outer_outputs * row_blocks() *
           column_blocks();
  }

  /// Blocks are numbered along columns first, then rows, outer positions, groups and images.
  BlockPlace place_of(int64_t block) const {
    const auto next = [&](int64_t extent) {
      const int64_t index = block % extent;
      block /= extent;
      return index;
    };
    BlockPlace place;
    place.column = next(column_blocks()) * plan_.block.columns;
    place.row = next(row_blocks()) * plan_.block.rows;
    place.outer = next(plan_.outer_outputs);
    place.group = next(plan_.geometry.groups);
    place.image = block;
    place.block = {.rows = std::min(plan_.block.rows, plan_.output_rows() - place.row),
                   .columns = std::min(plan_.block.columns, plan_.output_columns() - place.column)};
    return place;
  }

  void run_block(const BlockPlace& place, int64_t begin, int64_t end, std::byte* scratch,
                 KeptVectors& kept) const {
    const BlockTables& tables =
        *std::ranges::find_if(convolution_.blocks, [&](const BlockTables& of) {
          return of.block.rows == place.block.rows && of.block.columns == place.block.columns;
        });
    const Block block = {place, tables, source_of(place, scratch, kept), scratch};
    if (convolution_.window_sums != jit::WindowSums::none) sum_block(block);
    for (int64_t tile = begin; tile < end; ++tile) {
      weights_.prepare_tile(place.group, tile, scratch);
      plan_.lanes_hold == jit::ConvLanes::pixels ? run_line(block, tile) : run_pixels(block, tile);
    }
    if (transposes()) store_pixels(block, begin, end);
  }

  /// A block that a task works on.
  struct Block {
    const BlockPlace& place;
    const BlockTables& tables;
    const std::byte* source;
    std::byte* scratch;  ///< of the task, where this convolution's begins
  };

  const std::byte* source_of(const BlockPlace& place, std::byte* scratch, KeptVectors& kept) const {
    const PlaneInput input = {operands_[0], convolution_.x_is_signed, input_zero_point()};
    std::byte* to = scratch + convolution_.parts.source;
    switch (plan_.source) {
      case jit::ConvSource::input: return input_of(plan_, input, place);
      case jit::ConvSource::rows: copy_rows(plan_, input, place, to); break;
      case jit::ConvSource::planes:
        fill_planes(plan_, convolution_.movement, input, place, to, kept);
        break;
    }
    return to;
  }

  int32_t* window_sums(const Block& block) const {
    return reinterpret_cast<int32_t*>(block.scratch + convolution_.parts.window_sums);
  }

  /// The sums of a block's windows, as kernels read them.
  void sum_block(const Block& block) const {
    int32_t* sums = window_sums(block);
    convolution_.sums_code ? sum_line(block, sums) : sum_rows(block, sums);
    if (convolution_.window_sums != jit::WindowSums::words) return;
    std::transform(sums, sums + sum_count(block), sums, jit::words_of_sum);
  }

  int64_t sum_count(const Block& block) const {
    if (plan_.lanes_hold == jit::ConvLanes::channels) {
      return block.place.block.rows * block.place.block.columns;
    }
    return static_cast<int64_t>(block.tables.window_sums.size()) * plan_.lanes;
  }

  void sum_rows(const Block& block, int32_t* sums) const {
    auto* work = reinterpret_cast<int32_t*>(block.scratch + convolution_.parts.summing);
    sum_windows(plan_, block.source, block.place.block,
                {work, static_cast<size_t>(window_sum_dwords(plan_))}, sums);
  }

  void sum_line(const Block& block, int32_t* sums) const {
    constexpr int32_t zero = 0;
    const bool compact = plan_.lanes_hold == jit::ConvLanes::channels;
    const int vectors = compact ? plan_.tile.vectors : jit::vectors_of_window_sums;
    jit::ConvArguments arguments = line_arguments(block);
    arguments.tiles = static_cast<int64_t>(block.tables.window_sums.size()) / vectors;
    arguments.weights = reinterpret_cast<const std::byte*>(convolution_.sums_weights.data());
    arguments.start = &zero;
    arguments.stores = block.tables.window_sums.data();
    arguments.output = sums;
    convolution_.sums_code->entry_as<jit::ConvFunction>()(&arguments);
  }

  /// All tiles of a block's line.
  jit::ConvArguments line_arguments(const Block& block) const {
    jit::ConvArguments arguments;
    arguments.planes = block.source;
    arguments.taps = plan_.taps.data();
    arguments.tap_count = static_cast<int64_t>(plan_.taps.size());
    arguments.tiles = block.tables.line_tiles;
    return arguments;
  }

  bool transposes() const {
    return plan_.geometry.layout == ConvolutionLayout::nhwc &&
           plan_.lanes_hold == jit::ConvLanes::pixels;
  }
  int64_t first_channel(int64_t tile) const {
    return std::min<int64_t>(tile * plan_.tile_channels(), plan_.geometry.group_out_channels());
  }
  /// The output channels of a tile, without pixels.
  OutputPiece piece_of(const Block& block, int64_t tile) const {
    const int64_t first = first_channel(tile);
    return {.image = block.place.image,
            .channel = block.place.group * plan_.geometry.group_out_channels() + first,
            .channels = first_channel(tile + 1) - first};
  }
  /// The number of a block's first pixel.
  int64_t first_pixel(const BlockPlace& place) const {
    return (place.outer * plan_.output_rows() + place.row) * plan_.output_columns() + place.column;
  }
  /// A call's operands of an epilogue that kernels apply.
  using EpilogueOperands = std::array<jit::EpilogueOperand, jit::most_tile_operands + 1>;

  int64_t most_elements() const {
    return convolution_.applies_epilogue ? std::numeric_limits<int64_t>::max()
                                         : output_.most_elements();
  }

  /// The output channels of one tile of channels, pixels in the lanes.
  void run_line(const Block& block, int64_t tile) const {
    OutputPiece piece = piece_of(block, tile);
    jit::ConvArguments arguments = line_arguments(block);
    arguments.weights = weights_.packed(block.place.group, tile, block.scratch);
    arguments.start = weights_.starts(piece.channel, block.scratch);
    arguments.weight_zero_points = weights_.zero_points(piece.channel);
    const bool is_last = tile + 1 == plan_.channel_tiles;
    const auto code =
        (is_last ? *convolution_.last_code : *convolution_.code).entry_as<jit::ConvFunction>();
    const int64_t pixels = block.place.block.rows * block.place.block.columns;
    const int64_t lanes = plan_.tile.vectors * plan_.lanes;
    const int64_t at_once = transposes()
                                ? arguments.tiles
                                : std::max<int64_t>(most_elements() / (piece.channels * lanes), 1);
    for (int64_t first = 0; first < block.tables.line_tiles; first += at_once) {
      const int64_t end = std::min(first + at_once, block.tables.line_tiles);
      const jit::ConvStore* stores = block.tables.output.data() + first * plan_.tile.vectors;
      const int64_t pixel = stores->offset / 4;
      const int64_t behind = end == block.tables.line_tiles
                                 ? pixels
                                 : stores[(end - first) * plan_.tile.vectors].offset / 4;
      if (pixel == behind) continue;
      arguments.planes = block.source + 4 * first * lanes;
      arguments.window_sums = window_sums(block) + first * lanes;
      arguments.stores = stores;
      arguments.tiles = end - first;
      if (transposes()) {
        auto* line = reinterpret_cast<int32_t*>(block.scratch + convolution_.parts.line);
        arguments.output = line + first_channel(tile) * pixels;
        arguments.channel_step = 4 * pixels;
        code(&arguments);
        continue;
      }
      piece.pixel = first_pixel(block.place) + pixel;
      piece.pixels = behind - pixel;
      if (convolution_.applies_epilogue) {
        EpilogueOperands operands;
        output_.find_operands(piece, operands.data());
        arguments.epilogue = operands.data();
        code(&arguments);
        continue;
      }
      const PieceMemory memory = output_.begin(piece, block.scratch);
      arguments.output = counted_back(memory.data, pixel);
      arguments.channel_step = 4 * memory.channel_step;
      code(&arguments);
      output_.end(piece, block.scratch);
    }
  }

  /// Outputs that lie channel by channel go where they lie pixel by pixel.
  void store_pixels(const Block& block, int64_t begin, int64_t end) const {
    const int64_t pixels = block.place.block.rows * block.place.block.columns;
    const auto* line = reinterpret_cast<const int32_t*>(block.scratch + convolution_.parts.line);
    OutputPiece piece = piece_of(block, begin);
    piece.channels = first_channel(end) - first_channel(begin);
    const int64_t at_once = std::max<int64_t>(output_.most_elements() / piece.channels, 1);
    for (int64_t pixel = 0; pixel < pixels; pixel += at_once) {
      piece.pixel = first_pixel(block.place) + pixel;
      piece.pixels = std::min(at_once, pixels - pixel);
      const PieceMemory memory = output_.begin(piece, block.scratch);
      transpose_dwords(line + first_channel(begin) * pixels + pixel, pixels, piece.channels,
                       piece.pixels, memory.data, memory.pixel_step);
      output_.end(piece, block.scratch);
    }
  }

  /// The output channels of one tile of channels, channels in the lanes.
  void run_pixels(const Block& block, int64_t tile) const {
    OutputPiece piece = piece_of(block, tile);
    jit::ChannelArguments arguments;
    arguments.source = block.source;
    arguments.taps = plan_.taps.data();
    arguments.tap_count = static_cast<int64_t>(plan_.taps.size());
    arguments.weights = weights_.packed(block.place.group, tile, block.scratch);
    arguments.start = weights_.starts(piece.channel, block.scratch);
    arguments.weight_zero_points = weights_.zero_points(piece.channel);
    arguments.window_sums = window_sums(block);
    const bool is_last = tile + 1 == plan_.channel_tiles;
    for (const BoundTileRun& run : block.tables.runs) {
      run_tiles(block, run, is_last ? *run.last_code : *run.code, piece, arguments);
    }
  }

  void run_tiles(const Block& block, const BoundTileRun& run, const NestCode& code,
                 OutputPiece piece, jit::ChannelArguments arguments) const {
    const std::vector<jit::TilePlace>& places = run.tiles.places;
    const int pixels = run.tiles.tile.pixels();
    const auto at_once =
        static_cast<size_t>(std::max<int64_t>(most_elements() / (piece.channels * pixels), 1));
    for (size_t first = 0; first < places.size(); first += at_once) {
      const size_t tiles = std::min(at_once, places.size() - first);
      const int64_t pixel = places[first].pixel;
      piece.pixel = first_pixel(block.place) + pixel;
      piece.pixels = places[first + tiles - 1].pixel + pixels - pixel;
      arguments.places = places.data() + first;
      arguments.tiles = static_cast<int64_t>(tiles);
      if (convolution_.applies_epilogue) {
        // Places are counted from the block's first pixel.
        OutputPiece whole = piece;
        whole.pixel -= pixel;
        EpilogueOperands operands;
        output_.find_operands(whole, operands.data());
        arguments.epilogue = operands.data();
        code.entry_as<jit::ChannelFunction>()(&arguments);
        continue;
      }
      const PieceMemory memory = output_.begin(piece, block.scratch);
      const bool turns = run.tiles.tile.turns;
      arguments.output = counted_back(memory.data, pixel * memory.pixel_step);
      arguments.output_step = 4 * (turns ? memory.channel_step : memory.pixel_step);
      code.entry_as<jit::ChannelFunction>()(&arguments);
      output_.end(piece, block.scratch);
    }
  }

  const BoundConvolution& convolution_;
  const jit::ConvPlan& plan_;
  const Operands operands_;
  CallWeights weights_;
  ConvolutionOutput output_;
};

}  // namespace

void set_weight_zero_points(const BoundConvolution& convolution, const std::byte* zero_points,
                            std::span<int32_t> to) {
  const bool bytes = convolution.plan.dot == jit::DotProduct::bytes;
  const int32_t shift = bytes && !convolution.w_is_signed ? 128 : 0;
  for (size_t m = 0; m < to.size(); ++m) {
    to[m] = -shift;
    if (zero_points == nullptr) continue;
    const std::byte byte = zero_points[convolution.zero_points_per_channel ? m : 0];
    to[m] += convolution.w_is_signed ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
  }
}

bool has_work(const ConvolutionGeometry& geometry) {
  for (const ConvolutionAxis& axis : geometry.axes) {
    if (axis.output == 0) return false;
  }
  return geometry.batch > 0 && geometry.out_channels > 0;
}

void run_convolution(const BoundConvolution& convolution, const BoundNest& nest,
                     const CallMemory& memory) {
  if (!has_work(convolution.plan.geometry)) return;
  if (convolution.depthwise) {
    return run_depthwise(*convolution.depthwise, convolution.scratch, nest, memory);
  }
  if (convolution.depthwise_nhwc) {
    return run_depthwise_nhwc(*convolution.depthwise_nhwc, convolution.scratch, nest, memory);
  }
  if (!convolution.multiplies) {  // nothing to add up
    const OperandOrigin& y = nest.operands.back();
    const int64_t to = address(origin_of(y, memory), ElementType::i32);
    const Dims extents = convolution.plan.geometry.output_extents();
    std::memset(reinterpret_cast<void*>(to), 0,
                static_cast<size_t>(element_count(extents).value_or(0)) * 4);
    return;
  }
  ConvolutionRun run(convolution, nest, memory);
  run.prepare();
  const auto most = static_cast<int64_t>(1 + memory.task_scratch.size());
  const int64_t tasks = std::min(most, run.tiles());
  if (tasks == 1) return run.run(0, run.tiles(), memory.scratch);
  struct Share {
    const ConvolutionRun& run;
    const CallMemory& memory;
    int64_t tasks;
  } share = {run, memory, tasks};
  const auto task = [](void* context, int index) {
    const auto& of = *static_cast<const Share*>(context);
    const int64_t tiles = of.run.tiles();
    std::byte* scratch =
        index == 0 ? of.memory.scratch : of.memory.task_scratch[static_cast<size_t>(index) - 1];
    of.run.run(tiles * index / of.tasks, tiles * (index + 1) / of.tasks, scratch);
  };
  memory.executor->run(static_cast<int>(tasks), task, &share);
}

}  // namespace castor::detail
