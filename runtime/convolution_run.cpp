// SPDX-License-Identifier: Apache-2.0
// One call of a convolution: block by block, planes, window sums, tiles of output channels.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "ir/ceil_div.hpp"
#include "runtime/convolution_call.hpp"
#include "runtime/convolution_call_weights.hpp"
#include "runtime/convolution_output.hpp"
#include "runtime/interleave.hpp"

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
        weights_(convolution,
                 {operands_[1], data_of(convolution.operands.w_zero_point, operands_),
                  input_zero_point()},
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
      run_block(place_of(block), first, first + (behind - begin), scratch, kept);
      begin = behind;
    }
  }

 private:
  int32_t input_zero_point() const {
    const std::byte* zero = data_of(convolution_.operands.x_zero_point, operands_);
    if (zero == nullptr) return 0;
    return convolution_.operands.x_is_signed ? static_cast<int8_t>(*zero)
                                             : static_cast<uint8_t>(*zero);
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
    if (plan_.transposes()) store_pixels(block, begin, end);
  }

  /// A block that a task works on.
  struct Block {
    const BlockPlace& place;
    const BlockTables& tables;
    const std::byte* source;
    std::byte* scratch;  ///< of the task, where this convolution's begins

    int64_t pixels() const { return place.block.rows * place.block.columns; }
  };

  const std::byte* source_of(const BlockPlace& place, std::byte* scratch, KeptVectors& kept) const {
    const PlaneInput input = {operands_[0], convolution_.operands.x_is_signed, input_zero_point()};
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
      return block.pixels();
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

  int64_t first_channel(int64_t tile) const {
    return std::min<int64_t>(tile * plan_.tile_channels(), plan_.geometry.group_out_channels());
  }
  /// The output channels of a tile, at the block's first pixel.
  OutputPiece piece_of(const Block& block, int64_t tile) const {
    const int64_t first = first_channel(tile);
    return {.image = block.place.image,
            .channel = block.place.group * plan_.geometry.group_out_channels() + first,
            .channels = first_channel(tile + 1) - first,
            .pixel = first_pixel(block.place)};
  }
  /// The number of a block's first pixel.
  int64_t first_pixel(const BlockPlace& place) const {
    return (place.outer * plan_.output_rows() + place.row) * plan_.output_columns() + place.column;
  }
  /// Where an epilogue's operands lie at a piece, for kernels that apply it.
  class EpilogueOperands {
   public:
    EpilogueOperands(const ConvolutionOutput& output, const OutputPiece& piece) {
      output.find_operands(piece, operands_.data());
    }
    const jit::EpilogueOperand* data() const { return operands_.data(); }

   private:
    std::array<jit::EpilogueOperand, jit::most_tile_operands + 1> operands_;
  };

  /// The output channels of one tile of channels, pixels in the lanes.
  void run_line(const Block& block, int64_t tile) const {
    OutputPiece piece = piece_of(block, tile);
    jit::ConvArguments arguments = line_arguments(block);
    arguments.weights = weights_.packed(block.place.group, tile, block.scratch);
    arguments.start = weights_.starts(piece.channel, block.scratch);
    arguments.weight_zero_points = weights_.zero_points(piece.channel);
    arguments.window_sums = window_sums(block);
    arguments.stores = block.tables.output.data();
    const bool is_last = tile + 1 == plan_.channel_tiles;
    const auto code =
        (is_last ? *convolution_.last_code : *convolution_.code).entry_as<jit::ConvFunction>();
    if (plan_.transposes()) {
      auto* line = reinterpret_cast<int32_t*>(block.scratch + convolution_.parts.line);
      arguments.output = line + first_channel(tile) * block.pixels();
      arguments.channel_step = 4 * block.pixels();
      code(&arguments);
    } else if (convolution_.applies_epilogue) {
      const EpilogueOperands operands(output_, piece);
      arguments.epilogue = operands.data();
      code(&arguments);
    } else {
      run_pieces_of_line(block, piece, arguments, code);
    }
  }

  /// `piece` begins with the block's first pixel, `arguments` are of the whole line.
  void run_pieces_of_line(const Block& block, OutputPiece piece, jit::ConvArguments arguments,
                          jit::ConvFunction code) const {
    const int64_t lanes = plan_.tile.vectors * plan_.lanes;
    const int64_t at_once =
        std::max<int64_t>(output_.most_elements() / (piece.channels * lanes), 1);
    const int64_t first_pixel = piece.pixel;
    for (int64_t first = 0; first < block.tables.line_tiles; first += at_once) {
      const int64_t end = std::min(first + at_once, block.tables.line_tiles);
      const jit::ConvStore* stores = block.tables.output.data() + first * plan_.tile.vectors;
      const int64_t pixel = stores->offset / 4;
      const int64_t behind = end == block.tables.line_tiles
                                 ? block.pixels()
                                 : stores[(end - first) * plan_.tile.vectors].offset / 4;
      if (pixel == behind) continue;
      piece.pixel = first_pixel + pixel;
      piece.pixels = behind - pixel;
      const PieceMemory memory = output_.begin(piece, block.scratch);
      arguments.planes = block.source + 4 * first * lanes;
      arguments.window_sums = window_sums(block) + first * lanes;
      arguments.stores = stores;
      arguments.tiles = end - first;
      arguments.output = counted_back(memory.data, pixel);
      arguments.channel_step = 4 * memory.channel_step;
      code(&arguments);
      output_.end(piece, block.scratch);
    }
  }

  /// Outputs that lie channel by channel go where they lie pixel by pixel.
  void store_pixels(const Block& block, int64_t begin, int64_t end) const {
    const int64_t pixels = block.pixels();
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

  /// `piece` begins with the block's first pixel, from which places are counted.
  void run_tiles(const Block& block, const BoundTileRun& run, const NestCode& of_tiles,
                 OutputPiece piece, jit::ChannelArguments arguments) const {
    const std::vector<jit::TilePlace>& places = run.tiles.places;
    const auto code = of_tiles.entry_as<jit::ChannelFunction>();
    arguments.places = places.data();
    arguments.tiles = static_cast<int64_t>(places.size());
    if (convolution_.applies_epilogue) {
      const EpilogueOperands operands(output_, piece);
      arguments.epilogue = operands.data();
      return code(&arguments);
    }
    const int pixels = run.tiles.tile.pixels();
    const auto at_once = static_cast<size_t>(
        std::max<int64_t>(output_.most_elements() / (piece.channels * pixels), 1));
    const int64_t first_pixel = piece.pixel;
    for (size_t first = 0; first < places.size(); first += at_once) {
      const size_t tiles = std::min(at_once, places.size() - first);
      const int64_t pixel = places[first].pixel;
      piece.pixel = first_pixel + pixel;
      piece.pixels = places[first + tiles - 1].pixel + pixels - pixel;
      const PieceMemory memory = output_.begin(piece, block.scratch);
      arguments.places = places.data() + first;
      arguments.tiles = static_cast<int64_t>(tiles);
      arguments.output = counted_back(memory.data, pixel * memory.pixel_step);
      arguments.output_step = 4 * (run.tiles.tile.turns ? memory.channel_step : memory.pixel_step);
      code(&arguments);
      output_.end(piece, block.scratch);
    }
  }

  const BoundConvolution& convolution_;
  const jit::ConvPlan& plan_;
  const CallOperands operands_;
  CallWeights weights_;
  ConvolutionOutput output_;
};

}  // namespace

void set_weight_zero_points(const BoundConvolution& convolution, const std::byte* zero_points,
                            std::span<int32_t> to) {
  const bool bytes = convolution.plan.dot == jit::DotProduct::bytes;
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

void run_convolution(const BoundConvolution& convolution, const BoundNest& nest,
                     const CallMemory& memory) {
  if (!has_work(convolution.plan.geometry)) return;
  if (convolution.depthwise) {
    return run_depthwise(*convolution.depthwise, convolution.scratch, nest, memory);
  }
  if (convolution.grouped_nhwc) {
    return run_grouped_nhwc(*convolution.grouped_nhwc, convolution.scratch, nest, memory);
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
  share_out(run, run.tiles(), memory, convolution.scratch);
}

}  // namespace castor::detail
