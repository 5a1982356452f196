// SPDX-License-Identifier: Apache-2.0
// One call of a convolution by dot products: tasks share the output channels, and each packs the
// pixels, block by block.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "runtime/conv/convolution_output.hpp"
#include "runtime/conv/dot.hpp"
#include "runtime/conv/interleave.hpp"

namespace castor::detail {

namespace {

/// Output channels of a group of an image.
struct ChannelParts {
  int64_t image = 0;
  int64_t group = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

/// Packs pixels of a call.
class DotPixels {
 public:
  DotPixels(const BoundDot& bound, const std::byte* x, int32_t zero_point)
      : bound_(bound), plan_(bound.plan), x_(x), zero_point_(zero_point) {}

  /// The zero point of packed pixels.
  int32_t packed_zero_point() const {
    if (bound_.sign_flip() == 0) return zero_point_;
    return zero_point_ + (is_signed() ? 128 : -128);
  }

  /// Packs the tiles of a block of an image's group; adds up pixels if weights have zero points.
  void pack(const ChannelParts& of, int64_t block, std::byte* scratch) const {
    std::byte* to = scratch + bound_.parts.pixels;
    auto* sums = reinterpret_cast<int32_t*>(scratch + bound_.parts.pixel_sums);
    const int64_t pixels = plan_.tile.pixels;
    for (int64_t tile = plan_.first_tile(block); tile < plan_.first_tile(block + 1); ++tile) {
      const int64_t first = std::min(tile * pixels, plan_.pixels - pixels);
      for (int64_t p = 0; p < pixels; ++p) {
        const int64_t pixel = of.image * plan_.pixels + first + p;
        const std::byte* from = x_ + pixel * plan_.geometry.channels + of.group * plan_.depth();
        pack_pixel(from, to + p * plan_.vector_bytes());
        if (plan_.tile.has_zero_points) *sums++ = sum_of(from);
      }
      to += pixels * plan_.pixel_bytes();
    }
  }

 private:
  bool is_signed() const { return bound_.operands.x_is_signed; }

  /// The steps of a pixel, between which are those of the tile's others.
  void pack_pixel(const std::byte* from, std::byte* to) const {
    const int64_t whole = plan_.whole_steps();
    const int64_t to_step = plan_.tile.pixels * plan_.vector_bytes();
    pack_rows({.first = from, .step = plan_.step, .count = plan_.step, .rows = whole}, to, to_step);
    if (!plan_.tile.has_tail) return;
    const int64_t zeros = plan_.vector_bytes() - plan_.rest() * bytes_of_channel(plan_.tile.engine);
    to += whole * to_step;
    std::memset(to, 0, static_cast<size_t>(zeros));
    pack_rows({.first = from + whole * plan_.step, .count = plan_.rest()}, to + zeros, 0);
  }

  void pack_rows(const ByteRows& from, std::byte* to, int64_t to_step) const {
    if (!multiplies_bytes(plan_.tile.engine)) {
      return widen_to_i16(from, is_signed(), zero_point_, to, to_step);
    }
    const std::byte flip{bound_.sign_flip()};
    for (int64_t row = 0; row < from.rows; ++row) {
      const std::byte* const first = from.first + row * from.step;
      std::transform(first, first + from.count, to + row * to_step,
                     [&](std::byte byte) { return byte ^ flip; });
    }
  }

  /// Of a pixel's channels, less the zero point, modulo 2^32.
  int32_t sum_of(const std::byte* pixel) const {
    const uint32_t sum = sum_of_bytes(pixel, plan_.depth(), is_signed() ? 0x80 : 0);
    const auto zero = static_cast<uint32_t>(zero_point_ + (is_signed() ? 128 : 0));
    return static_cast<int32_t>(sum - zero * static_cast<uint32_t>(plan_.depth()));
  }

  const BoundDot& bound_;
  const jit::DotPlan& plan_;
  const std::byte* const x_;
  const int32_t zero_point_;  ///< as x has it
};

/// What all tasks of a call read.
class DotRun {
 public:
  DotRun(const BoundDot& bound, const ConvolutionStep& step, const CallMemory& memory)
      : bound_(bound),
        plan_(bound.plan),
        operands_(operands_of(step, memory)),
        pixels_(bound, operands_[0],
                input_zero_point(bound.operands, data_of(bound.operands.x_zero_point, operands_))),
        output_(plan_.geometry, step, memory),
        profile_(memory.profile),
        nest_(step.nest) {}

  /// Parts of the output, which tasks share out: those of each group of each image.
  int64_t parts() const { return plan_.geometry.batch * plan_.geometry.groups * plan_.parts(); }

  /// The parts from `begin` to `end`, in a scratch of the task's own.
  void run(int64_t begin, int64_t end, std::byte* scratch) const {
    while (begin < end) {
      const int64_t group = begin / plan_.parts();
      const int64_t first = begin % plan_.parts();
      const ChannelParts parts = {.image = group / plan_.geometry.groups,
                                  .group = group % plan_.geometry.groups,
                                  .begin = first,
                                  .end = std::min(first + end - begin, plan_.parts())};
      run_group(parts, scratch);
      begin += parts.end - parts.begin;
    }
  }

 private:
  int64_t channel(int64_t group, int64_t part) const {
    return group * plan_.geometry.group_out_channels() + plan_.first_channel(part);
  }
  const std::byte* weights(const OutputPiece& of) const {
    const int64_t before = plan_.geometry.has_weights_by_image ? of.image : 0;
    const int64_t row = before * plan_.geometry.out_channels + of.channel;
    const bool has_constants = !bound_.weights.empty();
    const auto* const kept = reinterpret_cast<const std::byte*>(bound_.weights.data());
    return (has_constants ? kept : operands_[1]) + row * plan_.depth();
  }
  int32_t* zero_points(std::byte* scratch) const {
    return reinterpret_cast<int32_t*>(scratch + bound_.parts.zero_points);
  }

  void run_group(const ChannelParts& parts, std::byte* scratch) const {
    if (plan_.tile.has_zero_points) set_zero_points(parts, zero_points(scratch));
    for (int64_t block = 0; block < plan_.blocks; ++block) {
      const int64_t count = plan_.first_pixel(block + 1) - plan_.first_pixel(block);
      const WorkTimer timer(profile_, nest_, Work::pack_input);
      pixels_.pack(parts, block, scratch);
      timer.done([&] {
        return WorkAmount{.bytes_read = count * plan_.depth(),
                          .bytes_written = count * plan_.pixel_bytes()};
      });
      const int64_t at_once = parts_at_once(count);
      for (int64_t part = parts.begin; part < parts.end; part += at_once) {
        const int64_t end = std::min(part + at_once, parts.end);
        run_block({parts.image, parts.group, part, end}, block, parts, scratch);
      }
    }
  }

  void set_zero_points(const ChannelParts& parts, int32_t* to) const {
    const std::byte* const from = data_of(bound_.operands.w_zero_point, operands_);
    const int64_t end = channel(parts.group, parts.end);
    for (int64_t each = channel(parts.group, parts.begin); each < end; ++each) {
      *to++ = weight_zero_point(bound_.operands, from, each);
    }
  }

  /// Parts that are one piece of the output with so many pixels; if they are many, of whole cache
  /// lines of results.
  int64_t parts_at_once(int64_t pixels) const {
    constexpr int64_t many = 16;
    const int64_t channels = output_.max_elements() / pixels;
    const int64_t most = std::max<int64_t>(channels / jit::DotTile::channels - 1, 1);
    return most < many ? most : most / many * many;
  }

  /// Some of a task's parts by the packed pixels of a block.
  void run_block(const ChannelParts& parts, int64_t block, const ChannelParts& of_task,
                 std::byte* scratch) const {
    const WorkTimer timer(profile_, nest_, Work::block);
    const OutputPiece piece = {
        .image = parts.image,
        .channel = channel(parts.group, parts.begin),
        .channels = plan_.first_channel(parts.end) - plan_.first_channel(parts.begin),
        .pixel = plan_.first_pixel(block),
        .pixels = plan_.first_pixel(block + 1) - plan_.first_pixel(block)};
    const PieceMemory to = output_.begin(piece, scratch);
    assert(to.channel_step == 1);
    const int64_t before = channel(of_task.group, of_task.begin);
    const jit::DotArguments arguments = {
        .pixels = scratch + bound_.parts.pixels,
        .weights = weights(piece),
        .channel_step = plan_.depth(),
        .steps = plan_.whole_steps(),
        .tail = plan_.rest() - plan_.step,
        .tail_ones = bound_.tail_ones.data(),
        .last_channel = piece.channels - jit::DotTile::channels,
        .tiles = plan_.first_tile(block + 1) - plan_.first_tile(block),
        .pixel_sums = reinterpret_cast<const int32_t*>(scratch + bound_.parts.pixel_sums),
        .weight_zero_points = zero_points(scratch) + (piece.channel - before),
        .input_zero_point = pixels_.packed_zero_point(),
        .output = to.data,
        .output_step = 4 * to.pixel_step,
        .last_output = to.data + (piece.pixels - plan_.tile.pixels) * to.pixel_step};
    bound_.code->call(&arguments);
    output_.end(piece, scratch);
    timer.done([&] {
      const int64_t outputs = piece.channels * piece.pixels;
      return WorkAmount{
          .bytes_read = piece.channels * plan_.depth() + piece.pixels * plan_.pixel_bytes(),
          .bytes_written = outputs * output_.kernel_result_bits(false) / 8,
          .products = outputs * plan_.depth()};
    });
  }

  const BoundDot& bound_;
  const jit::DotPlan& plan_;
  const CallOperands operands_;
  const DotPixels pixels_;
  const ConvolutionOutput output_;
  CallProfile* const profile_;  ///< null: nobody asks
  const size_t nest_;
};

}  // namespace

void run_plan(const BoundDot& bound, size_t scratch, const ConvolutionStep& step,
              const CallMemory& memory) {
  const DotRun run(bound, step, memory);
  share_out(run, run.parts(), max_tasks(memory, step.nanoseconds), memory, scratch);
}

}  // namespace castor::detail
