// SPDX-License-Identifier: Apache-2.0
// Filling of planes whose dwords hold the taps of windows: by generated code, many rows at a time
// where all rows of the windows are input.
#include <algorithm>
#include <array>

#include "runtime/conv/convolution.hpp"

namespace castor::detail {

namespace {

/// Fills the planes of one block.
class WindowFiller {
 public:
  WindowFiller(const jit::ConvPlan& plan, const KernelCode<jit::WindowForm>& code,
               const PlaneInput& input, const BlockPlace& place, std::byte* planes,
               KeptVectors& kept)
      : plan_(plan), code_(code), place_(place), vectors_(kept.vectors) {
    kept.rows = {};
    const int64_t first_channel =
        place.image * plan.geometry.channels + place.group * plan.geometry.group_channels();
    pixels_ = plan.rows.input * plan.columns.input;
    x_ = input.x + first_channel * pixels_;
    filling_.source_step = plan.rows.stride * plan.columns.input;
    filling_.planes = planes;
    filling_.plane_step = 4 * plan.plane_dwords;
    filling_.row_step = 4 * plan.pitch;
    filling_.vectors = vectors_.data();
    filling_.flips = input.is_signed ? 0x80808080u : 0;
    filling_.padding = static_cast<uint8_t>(input.zero_point) * 0x01010101u;
  }

  void fill() {
    constexpr int64_t max_columns = lanes * static_cast<int64_t>(KeptVectors{}.vectors.size());
    for (int64_t begin = 0; begin < place_.block.columns; begin += max_columns) {
      list_vectors(begin, std::min(begin + max_columns, place_.block.columns));
      fill_rows();
    }
  }

 private:
  static constexpr int64_t lanes = jit::ConvStore::max_lanes;

  void list_vectors(int64_t begin, int64_t end) {
    constexpr int64_t vector_bytes = 64;
    const ConvolutionAxis& axis = plan_.columns;
    filling_.vector_count = 0;
    for (int64_t column = begin; column < end; column += lanes) {
      const int64_t source = (place_.column + column) * axis.stride - axis.pad_begin;
      const int64_t first = std::clamp<int64_t>(-source, 0, vector_bytes);
      const int64_t behind = std::clamp<int64_t>(axis.input - source, first, vector_bytes);
      const auto stored = static_cast<uint32_t>(std::min(end - column, lanes));
      vectors_[static_cast<size_t>(filling_.vector_count++)] = {
          .source = source,
          .destination = static_cast<int32_t>(4 * column),
          .lanes = ((1u << stored) - 1) << lanes,
          .bytes = jit::first_bytes(behind) & ~jit::first_bytes(first)};
    }
  }

  /// Rows of a block whose windows lie in the input follow each other.
  void fill_rows() {
    std::byte* const planes = filling_.planes;
    for (int64_t row = 0; row < place_.block.rows; row += filling_.rows) {
      int64_t end = row;
      while (end < place_.block.rows && is_inside(end)) ++end;
      filling_.rows = std::max<int64_t>(end - row, 1);
      filling_.planes = planes + row * filling_.row_step;
      find_sources(first_input_row(row));
      filling_.sources = sources_.data();
      code_.call(&filling_);
    }
    filling_.planes = planes;
  }

  int64_t first_input_row(int64_t row) const {
    return (place_.row + row) * plan_.rows.stride - plan_.rows.pad_begin;
  }
  bool is_inside(int64_t row) const {
    const int64_t first = first_input_row(row);
    return first >= 0 && first + plan_.rows.window() <= plan_.rows.input;
  }

  void find_sources(int64_t first_row) {
    size_t source = 0;
    for (int64_t channel = 0; channel < plan_.geometry.group_channels(); ++channel) {
      for (int64_t tap = 0; tap < plan_.rows.kernel; ++tap) {
        const int64_t row = first_row + tap * plan_.rows.dilation;
        const bool is_input = row >= 0 && row < plan_.rows.input;
        sources_[source++] =
            is_input ? x_ + channel * pixels_ + row * plan_.columns.input : nullptr;
      }
    }
  }

  const jit::ConvPlan& plan_;
  const KernelCode<jit::WindowForm>& code_;
  const BlockPlace& place_;
  decltype(KeptVectors::vectors)& vectors_;
  const std::byte* x_;  ///< the group's first channel
  int64_t pixels_;
  std::array<const std::byte*, jit::WindowForm::max_rows> sources_;
  jit::WindowFilling filling_;
};

}  // namespace

void fill_windows(const jit::ConvPlan& plan, const MovementCode& code, const PlaneInput& input,
                  const BlockPlace& place, std::byte* planes, KeptVectors& kept) {
  WindowFiller(plan, *code.windows, input, place, planes, kept).fill();
}

}  // namespace castor::detail
