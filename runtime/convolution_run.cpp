// SPDX-License-Identifier: Apache-2.0
// One call of a convolution: block by block, planes, window sums, tiles of output channels.
#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/convolution_parts.hpp"
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
        scratch_(memory.scratch + convolution.scratch) {
    for (size_t k = 0; k < nest.operands.size(); ++k) {
      operands_[k] = reinterpret_cast<std::byte*>(
          address(origin_of(nest.operands[k], memory), nest.elements[k]));
    }
    y_ = reinterpret_cast<int32_t*>(operands_[nest.operands.size() - 1]);
  }

  /// What all tasks read: zero points, weights, first values. Before any of them.
  void prepare() {
    int32_t* zeros = part(convolution_.parts.zero_points);
    const auto channels = static_cast<size_t>(plan_.geometry.out_channels);
    set_weight_zero_points(convolution_, operand(convolution_.w_zero_point), {zeros, channels});
    if (convolution_.packed.empty()) {
      const auto to = packed_weights(plan_, part(convolution_.parts.weights));
      pack_weights(plan_, operands_[1], convolution_.w_is_signed, zeros, to);
      packed_ = {to.dwords, to.sums};
    } else {
      packed_ = packed_weights(plan_, convolution_.packed.data());
    }
    set_starts({zeros, channels});
  }

  /// Channel tiles of all blocks: what tasks share out.
  int64_t tiles() const { return blocks() * plan_.channel_tiles; }

  /// The tiles from `begin` to `end`, block by block, with planes in a scratch of the task's own.
  void run(int64_t begin, int64_t end, std::byte* scratch) const {
    while (begin < end) {
      const int64_t block = begin / plan_.channel_tiles;
      const int64_t behind = std::min(end, (block + 1) * plan_.channel_tiles);
      const int64_t first = begin % plan_.channel_tiles;
      run_block(place_of(block), first, first + (behind - begin), scratch + convolution_.scratch);
      begin = behind;
    }
  }

 private:
  const std::byte* operand(int index) const {
    return index < 0 ? nullptr : operands_[static_cast<size_t>(index)];
  }

  int32_t* part(size_t offset) const { return reinterpret_cast<int32_t*>(scratch_ + offset); }

  /// As the kernel's unsigned input has it: signed ones plus 128. Without VNNI as it is.
  int32_t input_zero_point() const {
    const std::byte* zero = operand(convolution_.x_zero_point);
    if (zero == nullptr) return 0;
    return convolution_.x_is_signed ? static_cast<int8_t>(*zero) : static_cast<uint8_t>(*zero);
  }

  /// (x - a)(w - b) summed is xw - b x - a w + a b summed; what does not depend on pixels comes
  /// first. Modulo 2^32.
  void set_starts(std::span<const int32_t> zeros) {
    int32_t* start = part(convolution_.parts.start);
    int64_t taps = plan_.geometry.group_channels();
    for (const ConvolutionAxis& axis : plan_.geometry.axes) taps *= axis.kernel;
    const auto a = static_cast<uint32_t>(input_zero_point() + (convolution_.x_is_signed ? 128 : 0));
    for (size_t m = 0; m < zeros.size(); ++m) {
      const auto b = static_cast<uint32_t>(zeros[m]);
      const bool bytes = plan_.dot == jit::DotProduct::bytes;
      const uint32_t sum = bytes ? static_cast<uint32_t>(packed_.sums[m]) : 0;
      start[m] = bytes ? static_cast<int32_t>(static_cast<uint32_t>(taps) * a * b - a * sum) : 0;
    }
  }

  static int64_t count_of(int64_t all, int64_t part) { return (all + part - 1) / part; }
  int64_t row_blocks() const { return count_of(plan_.output_rows(), plan_.block.rows); }
  int64_t column_blocks() const { return count_of(plan_.output_columns(), plan_.block.columns); }
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

  void run_block(const BlockPlace& place, int64_t begin, int64_t end, std::byte* scratch) const {
    std::byte* planes = scratch + convolution_.parts.planes;
    const PlaneInput input = {operands_[0], convolution_.x_is_signed, input_zero_point()};
    fill_planes(plan_, input, place, planes);
    const LineTables& line = *std::ranges::find_if(convolution_.lines, [&](const LineTables& of) {
      return of.block.rows == place.block.rows && of.block.columns == place.block.columns;
    });
    jit::ConvArguments arguments;
    arguments.planes = planes;
    arguments.taps = plan_.taps.data();
    arguments.tap_count = static_cast<int64_t>(plan_.taps.size());
    arguments.tiles = line.tiles;
    auto* window_sums = reinterpret_cast<int32_t*>(scratch + convolution_.parts.window_sums);
    if (convolution_.sums_code) sum_windows(line, arguments, window_sums);
    arguments.window_sums = window_sums;
    auto* outputs = reinterpret_cast<int32_t*>(scratch + convolution_.parts.line);
    for (int64_t tile = begin; tile < end; ++tile) run_tile(place, line, tile, arguments, outputs);
    if (is_nhwc()) store_pixels(place, begin, end, outputs);
  }

  bool is_nhwc() const { return plan_.geometry.layout == ConvolutionLayout::nhwc; }
  int64_t first_channel(int64_t tile) const {
    return std::min(tile * plan_.tile.channels, plan_.geometry.group_out_channels());
  }
  int64_t output_pixels() const {
    return plan_.outer_outputs * plan_.output_rows() * plan_.output_columns();
  }
  int64_t first_pixel(const BlockPlace& place) const {
    return (place.outer * plan_.output_rows() + place.row) * plan_.output_columns() + place.column;
  }

  /// Outputs that lie channel by channel go where they lie pixel by pixel.
  void store_pixels(const BlockPlace& place, int64_t begin, int64_t end,
                    const int32_t* outputs) const {
    const ConvolutionGeometry& geometry = plan_.geometry;
    const int64_t pixels = place.block.rows * place.block.columns;
    const int64_t first = first_channel(begin);
    const int64_t pixel = place.image * output_pixels() + first_pixel(place);
    const int64_t channel = place.group * geometry.group_out_channels() + first;
    transpose_dwords(outputs + first * pixels, pixels, first_channel(end) - first, pixels,
                     y_ + pixel * geometry.out_channels + channel, geometry.out_channels);
  }

  void sum_windows(const LineTables& line, jit::ConvArguments arguments, int32_t* sums) const {
    constexpr int32_t zero = 0;
    arguments.weights = reinterpret_cast<const std::byte*>(convolution_.sums_weights.data());
    arguments.start = &zero;
    arguments.stores = line.window_sums.data();
    arguments.output = sums;
    convolution_.sums_code->entry_as<jit::ConvFunction>()(&arguments);
  }

  /// The output channels of one tile; `outputs` takes them where they do not lie side by side.
  void run_tile(const BlockPlace& place, const LineTables& line, int64_t tile,
                jit::ConvArguments arguments, int32_t* outputs) const {
    const ConvolutionGeometry& geometry = plan_.geometry;
    const int64_t channel = place.group * geometry.group_out_channels() + first_channel(tile);
    arguments.weights = reinterpret_cast<const std::byte*>(
        packed_.dwords.data() + channel * static_cast<int64_t>(plan_.taps.size()));
    arguments.start = part(convolution_.parts.start) + channel;
    arguments.weight_zero_points = part(convolution_.parts.zero_points) + channel;
    arguments.stores = line.output.data();
    if (is_nhwc()) {
      const int64_t pixels = place.block.rows * place.block.columns;
      arguments.output = outputs + first_channel(tile) * pixels;
      arguments.channel_step = 4 * pixels;
    } else {
      const int64_t plane = place.image * geometry.out_channels + channel;
      arguments.output = y_ + plane * output_pixels() + first_pixel(place);
      arguments.channel_step = 4 * output_pixels();
    }
    const bool is_last = tile + 1 == plan_.channel_tiles;
    const NestCode& code = is_last ? *convolution_.last_code : *convolution_.code;
    code.entry_as<jit::ConvFunction>()(&arguments);
  }

  const BoundConvolution& convolution_;
  const jit::ConvPlan& plan_;
  std::byte* scratch_;
  std::array<std::byte*, 5> operands_ = {};
  int32_t* y_ = nullptr;
  PackedWeights<const int32_t> packed_;
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
  if (convolution.code == nullptr) {  // nothing to add up
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
