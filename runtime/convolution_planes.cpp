// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "runtime/convolution.hpp"
#include "runtime/interleave.hpp"

namespace castor::detail {

namespace {

/// Fills the planes of one block, plane by plane and row by row.
class PlaneFiller {
 public:
  PlaneFiller(const jit::ConvPlan& plan, const PlaneInput& input, const BlockPlace& place,
              std::byte* planes)
      : plan_(plan), input_(input), place_(place), planes_(planes) {
    const ConvolutionGeometry& geometry = plan.geometry;
    const bool nhwc = geometry.layout == ConvolutionLayout::nhwc;
    pixels_ = 1;
    for (const ConvolutionAxis& axis : geometry.axes) pixels_ *= axis.input;
    channel_step_ = nhwc ? 1 : pixels_;
    pixel_step_ = nhwc ? geometry.channels : 1;
    const bool bytes = plan.dot == jit::DotProduct::bytes;
    flip_ = static_cast<uint8_t>(input.is_signed ? 0x80 : 0);
    const auto pad = static_cast<uint8_t>(input.zero_point + (input.is_signed ? 128 : 0));
    padding_ = bytes ? pad * 0x01010101u : 0;
  }

  void fill() {
    for (int64_t slice = 0; slice < plan_.slices; ++slice) {
      const std::optional<int64_t> outer = outer_position(slice);
      for (int64_t part = 0; part < plan_.dwords; ++part) fill_part(slice, part, outer);
    }
  }

 private:
  /// The input position along the outer axes that the slice takes; nothing in the padding.
  std::optional<int64_t> outer_position(int64_t slice) const {
    const std::vector<ConvolutionAxis>& axes = plan_.geometry.axes;
    int64_t position = 0;
    int64_t unit = 1;
    int64_t output = place_.outer;
    for (size_t i = axes.size() > 2 ? axes.size() - 2 : 0; i-- > 0;) {
      const ConvolutionAxis& axis = axes[i];
      const int64_t at =
          output % axis.output * axis.stride - axis.pad_begin + slice % axis.kernel * axis.dilation;
      if (at < 0 || at >= axis.input) return std::nullopt;
      position += at * unit;
      unit *= axis.input;
      output /= axis.output;
      slice /= axis.kernel;
    }
    return position;
  }

  void fill_part(int64_t slice, int64_t part, std::optional<int64_t> outer) {
    const int64_t rows = place_.block.rows + plan_.row_phases.most_shift;
    const size_t columns = plan_.column_phases.phases.size();
    for (size_t r = 0; r < plan_.row_phases.phases.size(); ++r) {
      if (outer && takes_rows_at_once()) {
        interleave(source_of(part, *outer * plan_.rows.input * plan_.columns.input +
                                       place_.row * plan_.columns.input),
                   place_.block.rows * plan_.columns.input,
                   reinterpret_cast<uint32_t*>(planes_) +
                       (slice * plan_.dwords + part) * plan_.plane_dwords);
        continue;
      }
      for (int64_t j = 0; j < rows; ++j) {
        const int64_t row = (place_.row + j) * plan_.rows.stride + plan_.row_phases.phases[r] -
                            plan_.rows.pad_begin;
        const bool is_padding = !outer || row < 0 || row >= plan_.rows.input;
        for (size_t c = 0; c < columns; ++c) {
          const int64_t plane = ((slice * plan_.dwords + part) *
                                     static_cast<int64_t>(plan_.row_phases.phases.size()) +
                                 static_cast<int64_t>(r)) *
                                    static_cast<int64_t>(columns) +
                                static_cast<int64_t>(c);
          auto* to =
              reinterpret_cast<uint32_t*>(planes_) + plane * plan_.plane_dwords + j * plan_.pitch;
          if (is_padding) {
            std::fill_n(to, width(), padding_);
          } else {
            fill_row(part, *outer * plan_.rows.input + row, plan_.column_phases.phases[c], to);
          }
        }
      }
    }
  }

  /// Whether a block of planes is one piece of the input: of a filter of one position.
  bool takes_rows_at_once() const {
    const auto is_plain = [](const ConvolutionAxis& axis) {
      return axis.kernel == 1 && axis.stride == 1 && axis.pad_begin == 0 && axis.pad_end == 0;
    };
    return is_plain(plan_.rows) && is_plain(plan_.columns) &&
           plan_.block.columns == plan_.columns.output;
  }

  int64_t width() const { return place_.block.columns + plan_.column_phases.most_shift; }

  /// One row of a plane: padding, data, padding.
  void fill_row(int64_t part, int64_t row, int64_t phase, uint32_t* to) {
    const ConvolutionAxis& axis = plan_.columns;
    const int64_t begin = place_.column * axis.stride + phase - axis.pad_begin;  // of entry 0
    const auto entries_to = [&](int64_t column) {  // in front of the first at that column or behind
      const int64_t missing = std::max<int64_t>(column - begin, 0);
      return std::min(missing / axis.stride + (missing % axis.stride != 0 ? 1 : 0), width());
    };
    const int64_t first = entries_to(0);
    const int64_t end = std::max(entries_to(axis.input), first);
    std::fill_n(to, first, padding_);
    if (first < end) {
      interleave(source_of(part, row * axis.input + begin + first * axis.stride), end - first,
                 to + first);
    }
    std::fill_n(to + end, width() - end, padding_);
  }

  /// The channels of a dword at a pixel of the image's spatial extents.
  DwordSource source_of(int64_t part, int64_t pixel) const {
    const ConvolutionGeometry& geometry = plan_.geometry;
    const int count = jit::channels_of_dword(plan_.dot);
    DwordSource source;
    source.step = plan_.columns.stride * pixel_step_;
    const std::byte* image = input_.x + place_.image * geometry.channels * pixels_;
    for (int i = 0; i < count; ++i) {
      const int64_t channel = part * count + i;
      if (channel >= geometry.group_channels()) break;
      const int64_t of_all = place_.group * geometry.group_channels() + channel;
      source.channels[i] = image + of_all * channel_step_ + pixel * pixel_step_;
    }
    return source;
  }

  void interleave(const DwordSource& source, int64_t count, uint32_t* to) const {
    if (plan_.dot == jit::DotProduct::bytes) {
      interleave_bytes(source, flip_, count, to);
    } else {
      interleave_words(source, input_.is_signed, input_.zero_point, count, to);
    }
  }

  const jit::ConvPlan& plan_;
  const PlaneInput& input_;
  const BlockPlace& place_;
  std::byte* planes_;
  int64_t pixels_;
  int64_t channel_step_;
  int64_t pixel_step_;
  uint8_t flip_;  ///< makes signed bytes unsigned
  uint32_t padding_;
};

}  // namespace

void fill_planes(const jit::ConvPlan& plan, const PlaneInput& input, const BlockPlace& place,
                 std::byte* planes) {
  PlaneFiller(plan, input, place, planes).fill();
}

}  // namespace castor::detail
