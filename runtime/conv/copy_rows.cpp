// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "runtime/conv/convolution_step.hpp"
#include "runtime/conv/interleave.hpp"
#include "runtime/conv/pack_input.hpp"

namespace castor::detail {

namespace {

/// Copies rows as kernels read them.
class RowCopier : InputBlock {
 public:
  explicit RowCopier(const InputBlock& in)
      : InputBlock(in),
        rows_(std::get<jit::CopiedRows>(plan_.source)),
        elements_(rows_.channels),
        planes_(plan_.geometry.group_channels() / elements_),
        is_gathered_(plan_.has_pixel_rows() && plan_.geometry.layout == ConvolutionLayout::nchw) {}

  void copy(std::byte* to) const {
    for (int64_t i = 0; i < plan_.slices * planes_; ++i, to += rows_.plane_bytes()) {
      const std::optional<int64_t> outer =
          jit::outer_position(plan_.geometry, place_.outer, i / planes_);
      for (int64_t j = 0; j < jit::input_extent(place_.block.rows, plan_.rows); ++j) {
        if (j % plan_.rows.stride >= plan_.rows.window()) continue;  // no tap reads it
        const int64_t row = place_.row * plan_.rows.stride - plan_.rows.pad_begin + j;
        const bool is_input = outer && row >= 0 && row < plan_.rows.input;
        const std::byte* from = nullptr;
        if (is_input) {
          from =
              at(i % planes_ * elements_, (*outer * plan_.rows.input + row) * plan_.columns.input);
        }
        copy_row(from, to + j * rows_.row_bytes);
      }
    }
  }

 private:
  /// Padding, data, padding; null: only padding.
  void copy_row(const std::byte* row, std::byte* to) const {
    const ConvolutionAxis& axis = plan_.columns;
    const int64_t columns = jit::input_extent(place_.block.columns, axis);
    const int64_t begin = place_.column * axis.stride - axis.pad_begin;
    const int64_t first = std::clamp<int64_t>(-begin, 0, columns);
    const int64_t end = std::clamp<int64_t>(axis.input - begin, first, columns);
    const auto pad = [&](int64_t from, int64_t end_of_pad) {
      std::memset(to + from * rows_.column_bytes, pad_,
                  static_cast<size_t>((end_of_pad - from) * rows_.column_bytes));
    };
    if (row == nullptr) return pad(0, columns);
    pad(0, first);
    if (first < end) {
      copy_columns(row + (begin + first) * pixel_step_, end - first,
                   to + first * rows_.column_bytes);
    }
    pad(end, columns);
  }

  void copy_columns(const std::byte* from, int64_t columns, std::byte* to) const {
    if (is_gathered_) {
      return gather_pixels({from, channel_step_, elements_, columns, end_}, to, rows_.column_bytes);
    }
    if (pixel_step_ == elements_ && !rows_.has_aligned_pixels) {
      return copy_elements(from, columns * elements_, to);
    }
    if (has_pairs()) return widen(from, elements_, columns, to);
    if (elements_ == line && sign_flip_ == 0) return copy_lines(from, columns, to);
    for (int64_t column = 0; column < columns; ++column) {
      copy_elements(from + column * pixel_step_, elements_, to + column * rows_.column_bytes);
    }
  }

  /// Columns that have a cache line of channels: of a constant size, so that no copy is a call.
  static constexpr int64_t line = 64;
  void copy_lines(const std::byte* from, int64_t columns, std::byte* to) const {
    for (int64_t column = 0; column < columns; ++column) {
      std::memcpy(to + column * rows_.column_bytes, from + column * pixel_step_, line);
    }
  }

  /// Adjacent elements.
  void copy_elements(const std::byte* from, int64_t count, std::byte* to) const {
    if (has_pairs()) {
      widen(from, count, 1, to);
    } else if (sign_flip_ == 0) {
      std::memcpy(to, from, static_cast<size_t>(count));
    } else {
      for (int64_t i = 0; i < count; ++i) to[i] = from[i] ^ std::byte{sign_flip_};
    }
  }

  /// I16 pairs are widened and less the zero point.
  void widen(const std::byte* from, int64_t count, int64_t columns, std::byte* to) const {
    widen_to_i16({.first = from, .step = pixel_step_, .count = count, .rows = columns},
                 input_.is_signed, input_.zero_point, to, rows_.column_bytes);
  }

  const jit::CopiedRows& rows_;
  const int64_t elements_;  ///< that a column has
  const int64_t planes_;    ///< that a slice has
  const bool is_gathered_;  ///< a column's elements are apart in the input
};

}  // namespace

void copy_rows(const InputBlock& in, std::byte* to) { RowCopier(in).copy(to); }

}  // namespace castor::detail
