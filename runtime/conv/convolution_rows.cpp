// SPDX-License-Identifier: Apache-2.0
// Input of a block as rows: copies with their padding, and sums of windows.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/conv/convolution.hpp"
#include "runtime/conv/interleave.hpp"

namespace castor::detail {

namespace {

bool is_nhwc(const jit::ConvPlan& plan) { return plan.geometry.layout == ConvolutionLayout::nhwc; }

/// Rows and columns of input that a block reads.
int64_t extent_of(int64_t outputs, const ConvolutionAxis& axis) {
  return (outputs - 1) * axis.stride + axis.window();
}

int64_t pixels_of(const ConvolutionGeometry& geometry) {
  int64_t pixels = 1;
  for (const ConvolutionAxis& axis : geometry.axes) pixels *= axis.input;
  return pixels;
}

/// Copies the rows of one block.
class RowCopier {
 public:
  RowCopier(const jit::ConvPlan& plan, const PlaneInput& input, const BlockPlace& place,
            std::byte* to)
      : plan_(plan), input_(input), place_(place), to_(to) {
    const bool bytes = plan.engine == jit::ProductEngine::u8_i8_dot;
    flip_ = static_cast<uint8_t>(bytes && input.is_signed ? 0x80 : 0);
    padding_ = bytes ? static_cast<uint8_t>(input.zero_point + (input.is_signed ? 128 : 0)) : 0;
    pixels_ = pixels_of(plan.geometry);
    elements_ = is_nhwc(plan) ? plan.geometry.group_channels() : 1;
  }

  void copy() {
    const int64_t channels = is_nhwc(plan_) ? 1 : plan_.geometry.group_channels();
    for (int64_t slice = 0; slice < plan_.slices; ++slice) {
      const std::optional<int64_t> outer = outer_position(plan_.geometry, place_.outer, slice);
      for (int64_t c = 0; c < channels; ++c) {
        copy_plane(outer, c, to_ + (slice * channels + c) * plan_.input_rows.plane_bytes);
      }
    }
  }

 private:
  void copy_plane(std::optional<int64_t> outer, int64_t channel, std::byte* plane) {
    const ConvolutionAxis& axis = plan_.rows;
    const int64_t rows = extent_of(place_.block.rows, axis);
    for (int64_t j = 0; j < rows; ++j) {
      if (j % axis.stride >= axis.window()) continue;  // no tap reads it
      const int64_t row = place_.row * axis.stride - axis.pad_begin + j;
      std::byte* to = plane + j * plan_.input_rows.row_bytes;
      if (!outer || row < 0 || row >= axis.input) {
        pad(to, extent_of(place_.block.columns, plan_.columns));
      } else {
        copy_row(channel, *outer * axis.input + row, to);
      }
    }
  }

  /// Padding, data, padding.
  void copy_row(int64_t channel, int64_t row, std::byte* to) {
    const ConvolutionAxis& axis = plan_.columns;
    const int64_t columns = extent_of(place_.block.columns, axis);
    const int64_t begin = place_.column * axis.stride - axis.pad_begin;
    const int64_t first = std::clamp<int64_t>(-begin, 0, columns);
    const int64_t end = std::clamp<int64_t>(axis.input - begin, first, columns);
    pad(to, first);
    if (first < end) {
      copy_columns(channel, row * axis.input + begin + first, end - first,
                   to + first * plan_.input_rows.column_bytes);
    }
    pad(to + end * plan_.input_rows.column_bytes, columns - end);
  }

  void pad(std::byte* to, int64_t columns) {
    std::memset(to, padding_, static_cast<size_t>(columns * plan_.input_rows.column_bytes));
  }

  void copy_columns(int64_t channel, int64_t pixel, int64_t columns, std::byte* to) {
    const ConvolutionGeometry& geometry = plan_.geometry;
    const std::byte* image = input_.x + place_.image * geometry.channels * pixels_;
    const int64_t first = place_.group * geometry.group_channels() + channel;
    if (!is_nhwc(plan_)) return copy_elements(image + first * pixels_ + pixel, columns, to);
    const std::byte* from = image + pixel * geometry.channels + first;
    if (geometry.groups == 1) return copy_elements(from, columns * elements_, to);
    for (int64_t column = 0; column < columns; ++column) {
      copy_elements(from + column * geometry.channels, elements_,
                    to + column * plan_.input_rows.column_bytes);
    }
  }

  /// Elements as kernels read them.
  void copy_elements(const std::byte* from, int64_t count, std::byte* to) {
    if (plan_.engine == jit::ProductEngine::i16_pairs) return widen(from, count, to);
    if (flip_ == 0) {
      std::memcpy(to, from, static_cast<size_t>(count));
      return;
    }
    for (int64_t i = 0; i < count; ++i) to[i] = from[i] ^ std::byte{flip_};
  }

  /// To words, less the zero point.
  void widen(const std::byte* from, int64_t count, std::byte* to) {
    for (int64_t i = 0; i < count; ++i) {
      const int value =
          input_.is_signed ? static_cast<int8_t>(from[i]) : static_cast<uint8_t>(from[i]);
      const auto word = static_cast<int16_t>(value - input_.zero_point);
      std::memcpy(to + 2 * i, &word, sizeof(word));
    }
  }

  const jit::ConvPlan& plan_;
  const PlaneInput& input_;
  const BlockPlace& place_;
  std::byte* to_;
  uint8_t flip_;
  uint8_t padding_;
  int64_t pixels_;
  int64_t elements_;  ///< of a column
};

/// Adds up windows of a block: first the elements at each row and column, then rows, then columns.
class WindowSummer {
 public:
  WindowSummer(const jit::ConvPlan& plan, const std::byte* source, const jit::ConvBlock& block,
               std::span<int32_t> work)
      : plan_(plan),
        source_(source),
        block_(block),
        columns_(extent_of(block.columns, plan.columns)),
        elements_(is_nhwc(plan) ? plan.geometry.group_channels() : 1),
        at_(work.data()),
        window_rows_(work.data() + extent_of(block.rows, plan.rows) * columns_) {}

  void sum(int32_t* to) {
    std::fill_n(at_, extent_of(block_.rows, plan_.rows) * columns_, 0);
    for (int64_t plane : plan_.input_rows.planes) add_plane(source_ + plane);
    for (int64_t row = 0; row < block_.rows; ++row) sum_row(row, to + row * block_.columns);
  }

 private:
  void add_plane(const std::byte* plane) {
    for (int64_t row = 0; row < extent_of(block_.rows, plan_.rows); ++row) {
      if (row % plan_.rows.stride >= plan_.rows.window()) continue;
      add_row(plane + row * plan_.input_rows.row_bytes, at_ + row * columns_);
    }
  }

  void add_row(const std::byte* from, int32_t* to) {
    switch (elements_) {
      case 1: return add_columns<1>(from, to);
      case 2: return add_columns<2>(from, to);
      case 3: return add_columns<3>(from, to);
      case 4: return add_columns<4>(from, to);
      default: break;
    }
    const int64_t step = plan_.input_rows.column_bytes;
    const bool skips = plan_.columns.stride > plan_.columns.window();
    for (int64_t i = 0; i < columns_; ++i) {
      if (skips && i % plan_.columns.stride >= plan_.columns.window()) continue;
      to[i] += static_cast<int32_t>(sum_of_bytes(from + i * step, elements_, 0));
    }
  }

  /// The same of few elements a column.
  template <int elements>
  void add_columns(const std::byte* from, int32_t* to) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(from);
    const int64_t step = plan_.input_rows.column_bytes;
    for (int64_t i = 0; i < columns_; ++i) {
      for (int k = 0; k < elements; ++k) to[i] += bytes[i * step + k];
    }
  }

  void sum_row(int64_t row, int32_t* to) {
    std::fill_n(window_rows_, columns_, 0);
    for (int64_t r = 0; r < plan_.rows.kernel; ++r) {
      const int32_t* from = at_ + (row * plan_.rows.stride + r * plan_.rows.dilation) * columns_;
      for (int64_t i = 0; i < columns_; ++i) window_rows_[i] += from[i];
    }
    std::fill_n(to, block_.columns, 0);
    for (int64_t s = 0; s < plan_.columns.kernel; ++s) {
      const int32_t* from = window_rows_ + s * plan_.columns.dilation;
      for (int64_t i = 0; i < block_.columns; ++i) to[i] += from[i * plan_.columns.stride];
    }
  }

  const jit::ConvPlan& plan_;
  const std::byte* source_;
  const jit::ConvBlock block_;
  const int64_t columns_;
  const int64_t elements_;
  int32_t* at_;           ///< sums of the elements at a row and column
  int32_t* window_rows_;  ///< of a column's rows of one window
};

}  // namespace

void copy_rows(const jit::ConvPlan& plan, const PlaneInput& input, const BlockPlace& place,
               std::byte* to) {
  RowCopier(plan, input, place, to).copy();
}

const std::byte* input_of(const jit::ConvPlan& plan, const PlaneInput& input,
                          const BlockPlace& place) {
  const ConvolutionGeometry& geometry = plan.geometry;
  const int64_t pixels = pixels_of(geometry);
  const int64_t outer = outer_position(plan.geometry, place.outer, 0).value_or(0);
  const int64_t pixel =
      (outer * plan.rows.input + place.row * plan.rows.stride) * plan.columns.input +
      place.column * plan.columns.stride;
  const int64_t channel = place.group * geometry.group_channels();
  const std::byte* image = input.x + place.image * geometry.channels * pixels;
  return is_nhwc(plan) ? image + pixel * geometry.channels + channel
                       : image + channel * pixels + pixel;
}

int64_t window_sum_dwords(const jit::ConvPlan& plan) {
  return (extent_of(plan.block.rows, plan.rows) + 1) * extent_of(plan.block.columns, plan.columns);
}

void sum_windows(const jit::ConvPlan& plan, const std::byte* source, const jit::ConvBlock& block,
                 std::span<int32_t> work, int32_t* sums) {
  WindowSummer(plan, source, block, work).sum(sums);
}

std::optional<int64_t> outer_position(const ConvolutionGeometry& geometry, int64_t output,
                                      int64_t slice) {
  const std::vector<ConvolutionAxis>& axes = geometry.axes;
  int64_t position = 0;
  int64_t unit = 1;
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

}  // namespace castor::detail
