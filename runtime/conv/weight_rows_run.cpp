// SPDX-License-Identifier: Apache-2.0
// One call of a convolution by rows of weights: block by block of pixels, which are packed, all
// rows of weights.
#include <algorithm>
#include <limits>

#include "runtime/conv/block_arguments.hpp"
#include "runtime/conv/weight_rows.hpp"

namespace castor::detail {

namespace {

constexpr int64_t lanes = jit::DenseTile::tile_rows;

/// A block of pixels of an image, and a group's weights.
struct PixelBlock {
  int64_t image = 0;
  int64_t group = 0;
  int64_t block = 0;
};

/// What all tasks of a call read.
class WeightRowsRun {
 public:
  WeightRowsRun(const BoundWeightRows& bound, const ConvolutionStep& step, const CallMemory& memory)
      : bound_(bound),
        plan_(bound.plan),
        operands_(operands_of(step, memory)),
        zero_point_(
            input_zero_point(bound.operands, data_of(bound.operands.x_zero_point, operands_))),
        output_(plan_.geometry, step, memory),
        profile_(memory.profile),
        nest_(step.nest) {}

  /// Tiles of output channels of all blocks, which tasks divide.
  int64_t tiles() const {
    return plan_.geometry.batch * plan_.geometry.groups * plan_.blocks() * row_tiles();
  }

  /// The tiles from `begin` to `end`, in a scratch of the task's own.
  void run(int64_t begin, int64_t end, std::byte* scratch) const {
    PixelTiles set;  // the rows of a group whose first values there are
    int64_t set_group = -1;
    while (begin < end) {
      const int64_t block = begin / row_tiles();
      const int64_t first = begin % row_tiles();
      const int64_t count = std::min(end - begin, row_tiles() - first);
      const int64_t group = block / plan_.blocks();
      const bool has_last = first + count == row_tiles();
      const PixelBlock of = {.image = group / plan_.geometry.groups,
                             .group = group % plan_.geometry.groups,
                             .block = block % plan_.blocks()};
      const PixelTiles rows = {first, has_last ? bound_.rows.pixel_tiles : first + count};
      if (of.group != set_group || rows.begin < set.begin || rows.end > set.end) {
        set_start(of.group, rows, scratch);
        set_group = of.group;
        set = rows;
      }
      run_block(of, rows, scratch);
      begin += count;
    }
  }

 private:
  /// Tiles of output channels, of which the last two count as one where they have some in common.
  int64_t row_tiles() const {
    const int64_t tiles = bound_.rows.pixel_tiles;
    if (tiles == 1) return 1;
    const bool overlaps = bound_.rows.pixels_of({tiles - 1, tiles}).begin <
                          bound_.rows.pixels_of({tiles - 2, tiles - 1}).end;
    return overlaps ? tiles - 1 : tiles;
  }

  /// (x - a)(w - b) summed is xw - b x - a w + a b summed; what does not depend on pixels comes
  /// first. Modulo 2^32.
  void set_start(int64_t group, const PixelTiles& rows, std::byte* scratch) const {
    const PixelRange channels = bound_.rows.pixels_of(rows);
    const bool reads_weights = bound_.weights.empty() && zero_point_ != 0;
    if (!reads_weights) return set_start_of(group, channels, scratch);
    const WorkTimer timer(profile_, nest_, Work::pack_weights);
    set_start_of(group, channels, scratch);
    timer.done([&] {
      const int64_t count = channels.end - channels.begin;
      return WorkAmount{.bytes_read = count * plan_.depth(), .bytes_written = 4 * lanes * count};
    });
  }

  void set_start_of(int64_t group, const PixelRange& channels, std::byte* scratch) const {
    int32_t* const starts = int32_at(scratch, bound_.offsets.start);
    int32_t* const zero_points = int32_at(scratch, bound_.offsets.zero_points);
    const std::byte* const w_zero = data_of(bound_.operands.w_zero_point, operands_);
    const auto a = static_cast<uint32_t>(zero_point_);
    const auto depth = static_cast<uint32_t>(plan_.depth());
    const int64_t first = group * plan_.geometry.group_out_channels();
    for (int64_t row = channels.begin; row < channels.end; ++row) {
      const int32_t b = weight_zero_point(bound_.operands, w_zero, first + row);
      if (bound_.has_zero_points()) zero_points[row] = b;
      const uint32_t sum = a == 0 ? 0 : static_cast<uint32_t>(sum_of_weights(first + row));
      const uint32_t start = a * depth * static_cast<uint32_t>(b) - a * sum;
      std::fill_n(starts + row * lanes, lanes, static_cast<int32_t>(start));
    }
  }

  int32_t sum_of_weights(int64_t channel) const {
    if (bound_.weights.empty()) {
      return sum_of_row(operands_[1] + channel * plan_.depth(), plan_.depth(),
                        bound_.operands.w_is_signed);
    }
    return bound_.weights.data()[plan_.geometry.groups * plan_.weight_bytes() / 4 + channel];
  }

  /// Results of a call of a kernel at most.
  int64_t max_results() const {
    return bound_.applies_epilogue ? std::numeric_limits<int64_t>::max() : output_.max_elements();
  }

  const std::byte* weights(int64_t group) const {
    const auto* const kept = reinterpret_cast<const std::byte*>(bound_.weights.data());
    return (bound_.weights.empty() ? operands_[1] : kept) + group * plan_.weight_bytes();
  }

  /// Some tiles of output channels of a block.
  void run_block(const PixelBlock& of, const PixelTiles& rows, std::byte* scratch) const {
    pack(of, scratch);
    const WorkTimer timer(profile_, nest_, Work::block);
    const jit::TileScope scope(bound_.rows.configuration ? &*bound_.rows.configuration : nullptr);
    const int64_t pixels = plan_.pixels_of(of.block);
    const int64_t whole = pixels / plan_.tile_pixels();
    const int64_t at_once =
        std::max<int64_t>(max_results() / (plan_.tile_pixels() * plan_.product.tile.pixels()), 1);
    for (int64_t tile = 0; tile < whole; tile += at_once) {
      run_columns(of, {tile, std::min(at_once, whole - tile)}, rows, scratch);
    }
    if (pixels % plan_.tile_pixels() != 0) run_columns(of, {whole, 1}, rows, scratch);
    timer.done([&] {
      const PixelRange channels = bound_.rows.pixels_of(rows);
      const int64_t outputs = (channels.end - channels.begin) * pixels;
      return WorkAmount{
          .bytes_read = (channels.end - channels.begin + pixels) * plan_.depth(),
          .bytes_written = outputs * output_.kernel_result_bits(bound_.applies_epilogue) / 8,
          .products = outputs * plan_.depth()};
    });
  }

  /// Those of a tile's pixels. A kernel subtracts products of a number by row and one by column:
  /// by pixel and by channel elsewhere, by channel and by pixel here.
  int32_t* sums(std::byte* scratch, int64_t tile) const {
    return int32_at(scratch, bound_.offsets.sums) + tile * plan_.tile_pixels();
  }

  void pack(const PixelBlock& of, std::byte* scratch) const {
    const WorkTimer timer(profile_, nest_, Work::pack_input);
    const int64_t pixels = plan_.pixels_of(of.block);
    const int64_t channel = of.image * plan_.geometry.channels + of.group * plan_.depth();
    const std::byte* const first =
        operands_[0] + channel * plan_.pixels + of.block * plan_.block_pixels();
    const int64_t whole = pixels / plan_.tile_pixels();
    const auto pack_tiles = [&](int64_t tile, int64_t of_tiles, int64_t vectors) {
      interleave_pixels(
          {first + tile * plan_.tile_pixels(), plan_.pixels, plan_.depth()}, of_tiles,
          {scratch + bound_.offsets.pixels + tile * plan_.packed_tile_bytes(), vectors,
           plan_.packed_tile_bytes()},
          {bound_.has_zero_points() ? sums(scratch, tile) : nullptr, bound_.operands.x_is_signed});
    };
    const int64_t remainder = pixels % plan_.tile_pixels();
    pack_tiles(0, pixels - remainder, plan_.vectors());
    pack_tiles(whole, remainder, ceil_div(remainder, lanes));
    timer.done([&] {
      const int64_t bytes = pixels * plan_.depth();
      return WorkAmount{.bytes_read = bytes, .bytes_written = bytes};
    });
  }

  /// Tiles of pixels, whole ones or the image's last, by tiles of output channels.
  void run_columns(const PixelBlock& of, const ChannelTiles& columns, const PixelTiles& rows,
                   std::byte* scratch) const {
    const int64_t first = columns.first * plan_.tile_pixels();
    const int64_t pixel = of.block * plan_.block_pixels() + first;
    const int64_t pixels =
        std::min(columns.count * plan_.tile_pixels(), plan_.pixels_of(of.block) - first);
    const bool is_whole = pixels % plan_.tile_pixels() == 0;
    const int64_t group_channel = of.group * plan_.geometry.group_out_channels();
    bound_.rows.for_each_run(rows, [&](const BoundTiles& run, const PixelTiles& tiles) {
      const auto code = (is_whole ? run.code : run.last_code)->entry();
      const int64_t at_once =
          std::clamp<int64_t>(max_results() / (run.run.tile.pixels() * pixels), 1, tiles.count());
      for (int64_t tile = tiles.begin; tile < tiles.end; tile += at_once) {
        const PixelTiles some = {tile, std::min(tile + at_once, tiles.end)};
        const PixelRange channels = run.pixels_of(some);
        jit::DenseArguments arguments = {
            .source = weights(of.group),
            .k_steps = plan_.product.k_steps.data(),
            .k_step_count = plan_.steps(),
            .weights = scratch + bound_.offsets.pixels + columns.first * plan_.packed_tile_bytes(),
            .start = int32_at(scratch, bound_.offsets.start),
            .weight_zero_points = sums(scratch, columns.first),
            .window_sums = int32_at(scratch, bound_.offsets.zero_points),
            .channel_tiles = columns.count,
            .weight_tile_bytes = plan_.packed_tile_bytes()};
        BlockArguments::set_tiles(arguments, run.run, some);
        run_kernel({.image = of.image,
                    .channel = group_channel + channels.begin,
                    .channels = channels.end - channels.begin,
                    .pixel = pixel,
                    .pixels = pixels},
                   channels.begin, arguments, code, scratch);
      }
    });
  }

  /// The kernel counts output channels from the group's first one.
  void run_kernel(OutputPiece results, int64_t channel, jit::DenseArguments& arguments,
                  jit::KernelFunction<jit::DenseTile> code, std::byte* scratch) const {
    if (bound_.applies_epilogue) {
      results.channel -= channel;
      return output_.apply_in_kernel(results, [&](const jit::EpilogueOperand* operands) {
        arguments.epilogue = operands;
        code(&arguments);
      });
    }
    const auto memory = output_.begin(results, scratch);
    arguments.output = counted_back(memory.data, channel * memory.channel_step);
    arguments.output_step = 4 * memory.channel_step;
    code(&arguments);
    output_.end(results, scratch);
  }

  const BoundWeightRows& bound_;
  const jit::WeightRowsPlan& plan_;
  const CallOperands operands_;
  const int32_t zero_point_;  ///< as x has it
  const ConvolutionOutput output_;
  CallProfile* const profile_;  ///< null: nobody asks
  const size_t nest_;
};

}  // namespace

void run_plan(const BoundWeightRows& bound, size_t scratch, const ConvolutionStep& step,
              const CallMemory& memory) {
  const WeightRowsRun run(bound, step, memory);
  share_out(run, run.tiles(), max_tasks(memory, step.nanoseconds), memory, scratch);
}

}  // namespace castor::detail
