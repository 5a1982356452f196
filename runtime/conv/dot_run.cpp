// SPDX-License-Identifier: Apache-2.0
// One call of a convolution by dot products: tasks divide the output channels, and each packs the
// pixels, block by block.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "runtime/conv/convolution_output.hpp"
#include "runtime/conv/dot.hpp"
#include "runtime/conv/interleave.hpp"

namespace castor::detail {

namespace {

/// Output channels of a group of an image: from one panel to another.
struct ChannelPanels {
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
  void pack(const ChannelPanels& of, int64_t block, std::byte* scratch) const {
    std::byte* to = scratch + bound_.offsets.pixels;
    auto* sums = reinterpret_cast<int32_t*>(scratch + bound_.offsets.pixel_sums);
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
    const int64_t zeros =
        plan_.vector_bytes() - plan_.remainder() * bytes_of_channel(plan_.tile.engine);
    to += whole * to_step;
    std::memset(to, 0, static_cast<size_t>(zeros));
    pack_rows({.first = from + whole * plan_.step, .count = plan_.remainder()}, to + zeros, 0);
  }

  void pack_rows(const ByteRows& from, std::byte* to, int64_t to_step) const {
    if (!multiplies_bytes(plan_.tile.engine)) {
      return widen_to_i16(from, is_signed(), zero_point_, to, to_step);
    }
    const std::byte sign_flip{bound_.sign_flip()};
    for (int64_t row = 0; row < from.rows; ++row) {
      const std::byte* const first = from.first + row * from.step;
      std::transform(first, first + from.count, to + row * to_step,
                     [&](std::byte byte) { return byte ^ sign_flip; });
    }
  }

  /// What a pixel's channels, less the zero point, add up to, modulo 2^32.
  int32_t sum_of(const std::byte* pixel) const {
    const auto sum = static_cast<uint32_t>(sum_of_row(pixel, plan_.depth(), is_signed()));
    const auto zeros = static_cast<uint32_t>(zero_point_) * static_cast<uint32_t>(plan_.depth());
    return static_cast<int32_t>(sum - zeros);
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

  /// Panels of all groups of all images, which tasks divide.
  int64_t panels() const { return plan_.geometry.batch * plan_.geometry.groups * plan_.panels(); }

  /// The panels from `begin` to `end`, in a scratch of the task's own.
  void run(int64_t begin, int64_t end, std::byte* scratch) const {
    while (begin < end) {
      const int64_t group = begin / plan_.panels();
      const int64_t first = begin % plan_.panels();
      const ChannelPanels panels = {.image = group / plan_.geometry.groups,
                                    .group = group % plan_.geometry.groups,
                                    .begin = first,
                                    .end = std::min(first + end - begin, plan_.panels())};
      run_group(panels, scratch);
      begin += panels.end - panels.begin;
    }
  }

 private:
  int64_t channel(int64_t group, int64_t panel) const {
    return group * plan_.geometry.group_out_channels() + plan_.first_channel(panel);
  }
  const std::byte* weights(int64_t image, int64_t channel) const {
    const int64_t before = plan_.geometry.has_weights_by_image ? image : 0;
    const int64_t row = before * plan_.geometry.out_channels + channel;
    const bool has_constants = !bound_.weights.empty();
    const auto* const kept = reinterpret_cast<const std::byte*>(bound_.weights.data());
    return (has_constants ? kept : operands_[1]) + row * plan_.depth();
  }
  int32_t* zero_points(std::byte* scratch) const {
    return reinterpret_cast<int32_t*>(scratch + bound_.offsets.zero_points);
  }

  void run_group(const ChannelPanels& panels, std::byte* scratch) const {
    if (plan_.tile.has_zero_points) set_zero_points(panels, zero_points(scratch));
    for (int64_t block = 0; block < plan_.blocks; ++block) {
      const int64_t count = plan_.first_pixel(block + 1) - plan_.first_pixel(block);
      const WorkTimer timer(profile_, nest_, Work::pack_input);
      pixels_.pack(panels, block, scratch);
      timer.done([&] {
        return WorkAmount{.bytes_read = count * plan_.depth(),
                          .bytes_written = count * plan_.pixel_bytes()};
      });
      const int64_t at_once = panels_at_once(count);
      for (int64_t panel = panels.begin; panel < panels.end; panel += at_once) {
        const int64_t end = std::min(panel + at_once, panels.end);
        run_block({panels.image, panels.group, panel, end}, block, scratch);
      }
    }
  }

  /// Sets those of the panels, by channel of the group.
  void set_zero_points(const ChannelPanels& panels, int32_t* of_group) const {
    const std::byte* const from = data_of(bound_.operands.w_zero_point, operands_);
    const int64_t first = channel(panels.group, 0);
    for (int64_t i = plan_.first_channel(panels.begin); i < plan_.first_channel(panels.end); ++i) {
      of_group[i] = weight_zero_point(bound_.operands, from, first + i);
    }
  }

  /// Panels whose results of that many pixels the output takes at once; if they are many, of whole
  /// cache lines of results.
  int64_t panels_at_once(int64_t pixels) const {
    constexpr int64_t many = 16;
    const int64_t channels = output_.max_elements() / pixels;
    const int64_t most = std::max<int64_t>(channels / jit::DotTile::channels - 1, 1);
    return most < many ? most : most / many * many;
  }

  /// Some of a task's panels by the packed pixels of a block.
  void run_block(const ChannelPanels& panels, int64_t block, std::byte* scratch) const {
    const WorkTimer timer(profile_, nest_, Work::block);
    const OutputPiece results = {
        .image = panels.image,
        .channel = channel(panels.group, panels.begin),
        .channels = plan_.first_channel(panels.end) - plan_.first_channel(panels.begin),
        .pixel = plan_.first_pixel(block),
        .pixels = plan_.first_pixel(block + 1) - plan_.first_pixel(block)};
    const auto to = output_.begin(results, scratch);
    assert(to.channel_step == 1);
    const jit::DotArguments arguments = {
        .pixels = scratch + bound_.offsets.pixels,
        .weights = weights(results.image, results.channel),
        .channel_step = plan_.depth(),
        .steps = plan_.whole_steps(),
        .tail = plan_.remainder() - plan_.step,
        .tail_ones = bound_.tail_ones.data(),
        .last_channel = results.channels - jit::DotTile::channels,
        .tiles = plan_.first_tile(block + 1) - plan_.first_tile(block),
        .pixel_sums = reinterpret_cast<const int32_t*>(scratch + bound_.offsets.pixel_sums),
        .weight_zero_points = zero_points(scratch) + plan_.first_channel(panels.begin),
        .input_zero_point = pixels_.packed_zero_point(),
        .output = to.data,
        .output_step = 4 * to.pixel_step,
        .last_output = to.data + (results.pixels - plan_.tile.pixels) * to.pixel_step};
    bound_.code->call(&arguments);
    output_.end(results, scratch);
    timer.done([&] {
      const int64_t outputs = results.channels * results.pixels;
      return WorkAmount{
          .bytes_read = results.channels * plan_.depth() + results.pixels * plan_.pixel_bytes(),
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
  share_out(run, run.panels(), max_tasks(memory, step.nanoseconds), memory, scratch);
}

}  // namespace castor::detail
