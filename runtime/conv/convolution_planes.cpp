// SPDX-License-Identifier: Apache-2.0
// Filling of planes: by generated code, several planes at a time, and row by row where there is
// none, or where it would read behind the input.
#include <algorithm>
#include <array>
#include <cstring>

#include "ir/support/integer_math.hpp"
#include "runtime/conv/convolution.hpp"
#include "runtime/conv/interleave.hpp"
#include "runtime/conv/plane_phases.hpp"

namespace castor::detail {

namespace {

/// Fills the planes of one block.
class PlaneFiller {
 public:
  PlaneFiller(const jit::ConvPlan& plan, const MovementCode& code, const PlaneInput& input,
              const BlockPlace& place, std::byte* planes, KeptVectors& kept,
              int64_t pixels_laid_out)
      : plan_(plan),
        code_(code.planes.get()),
        form_(plane_form(plan)),
        input_(input),
        place_(place),
        planes_(planes),
        kept_(kept),
        first_pixel_(pixels_laid_out) {
    const ConvolutionGeometry& geometry = plan.geometry;
    const bool nhwc = geometry.layout == ConvolutionLayout::nhwc;
    pixels_ = 1;
    for (const ConvolutionAxis& axis : geometry.axes) pixels_ *= axis.input;
    channel_step_ = nhwc ? 1 : pixels_;
    pixel_step_ = nhwc ? geometry.channels : 1;
    const bool bytes = plan.engine == jit::ProductEngine::u8_i8_dot;
    flip_ = static_cast<uint8_t>(input.is_signed ? 0x80 : 0);
    const auto pad = static_cast<uint8_t>(input.zero_point + (input.is_signed ? 128 : 0));
    padding_ = bytes ? pad * 0x01010101u : 0;
    rows_ = place.block.rows + plan.row_phases.max_shift;
    width_ = place.block.columns + plan.column_phases.max_shift;
  }

  void fill() const {
    for (int64_t slice = 0; slice < plan_.slices; ++slice) {
      for (size_t r = 0; r < plan_.row_phases.phases.size(); ++r) {
        for (size_t c = 0; c < plan_.column_phases.phases.size(); ++c) {
          fill_parts(planes_of_phase(plan_, place_, slice, r, c));
        }
      }
    }
  }

 private:
  static constexpr int lanes = jit::ConvStore::max_lanes;
  static constexpr size_t max_vectors = std::tuple_size_v<decltype(KeptVectors::vectors)>;

  bool holds_columns() const { return plan_.dwords_hold == jit::DwordsHold::columns; }

  void fill_parts(const PhasePlanes& of) const {
    if (code_ == nullptr || !of.has_data()) return fill_rows(of, 0, plan_.dwords, 0);
    if (holds_columns()) return fill_columns_by_code(of);
    const int64_t whole = plan_.geometry.group_channels() / jit::channels_of_k_group(plan_.engine);
    if (whole > 0) fill_by_code(of, 0, whole);
    if (whole < plan_.dwords) fill_by_code(of, whole, plan_.dwords);
  }

  /// Parts that have the same number of channels: by code, but for rows at the end of the input.
  void fill_by_code(const PhasePlanes& of, int64_t begin, int64_t end) const {
    int64_t part = end;
    while (part > begin && room_behind(of, part - 1) < 0) --part;
    if (part > begin) call(of, begin, part, rows_);
    for (; part < end; ++part) {
      const int64_t short_of = -room_behind(of, part);
      const int64_t row_bytes = saturated_product(plan_.rows.stride, plan_.columns.input);
      const int64_t rows = std::max(of.end_row - ceil_div(short_of, row_bytes), of.first_row);
      const bool is_worthwhile = rows > of.first_row && !form_.is_plain;
      if (is_worthwhile) call(of, part, part + 1, rows);
      fill_rows(of, part, part + 1, is_worthwhile ? rows : 0);
    }
  }

  /// Bytes of the input behind all that the code reads of a part; negative if it reads too far.
  int64_t room_behind(const PhasePlanes& of, int64_t part) const {
    const ConvolutionGeometry& geometry = plan_.geometry;
    const int64_t last = std::min<int64_t>(4 * part + 3, geometry.group_channels() - 1);
    const int64_t channel =
        place_.image * geometry.channels + place_.group * geometry.group_channels() + last;
    const int64_t end_row = of.input_row + (of.end_row - 1) * plan_.rows.stride + 1;
    const int64_t end = channel * pixels_ + of.pixel + end_row * plan_.columns.input;
    return geometry.batch * geometry.channels * pixels_ - end - (jit::bytes_read(form_) - 1);
  }

  uint32_t* plane(const PhasePlanes& of, int64_t part) const {
    const int64_t number = (of.slice * plan_.dwords + part) * plan_.phase_planes() + of.number;
    return reinterpret_cast<uint32_t*>(planes_) + number * plan_.plane_dwords;
  }

  /// The first `rows` rows of some parts by code.
  void call(const PhasePlanes& of, int64_t begin, int64_t end, int64_t rows) const {
    const int64_t first_row = of.input_row + of.first_row * plan_.rows.stride;
    const DwordSource source =
        source_of(begin, of.pixel + first_row * plan_.columns.input + of.column);
    jit::PlaneFilling filling;
    filling.source = source.channels[0];
    for (int i = 1; i < 4; ++i) {
      filling.channels[i - 1] = source.channels[i] != nullptr ? i * channel_step_ : 0;
    }
    filling.source_part_step = 4 * channel_step_;
    filling.planes = reinterpret_cast<std::byte*>(plane(of, begin));
    filling.part_step = 4 * plan_.phase_planes() * plan_.plane_dwords;
    filling.row_step = 4 * plan_.pitch;
    filling.parts = end - begin;
    filling.rows = 1;
    filling.flips = flip_ * 0x01010101u;
    filling.padding = padding_;
    if (form_.is_plain) {
      filling.source += first_pixel_;
      filling.planes += 4 * first_pixel_;
      filling.pixels = plain_pixels();
      code_->call(&filling);
    } else if (has_whole_rows(of)) {
      call_for_one_row(of, rows, filling);
    } else {
      call_for_padded_rows(of, rows, filling);
    }
  }

  void call_for_padded_rows(const PhasePlanes& of, int64_t rows,
                            const jit::PlaneFilling& filling) const {
    call_for_rows(of, rows, filling, [&](int64_t begin, int64_t behind, jit::PlaneVector& vector) {
      const int64_t from = std::clamp(of.first, begin, behind);
      const int64_t to = std::clamp(of.end, from, behind);
      if (from == to) return;
      vector.source = (from - of.first) * plan_.columns.stride;
      vector.lanes |= bits(from - begin, to - begin);
    });
  }

  /// Planes whose dwords hold neighbouring columns. Nothing outside the rows of data is read.
  void fill_columns_by_code(const PhasePlanes& of) const {
    const int64_t first_row = of.input_row + of.first_row * plan_.rows.stride;
    jit::PlaneFilling filling;
    filling.source = channel_at(0) + of.pixel + first_row * plan_.columns.input;
    filling.source_part_step = pixels_;
    filling.planes = reinterpret_cast<std::byte*>(plane(of, 0));
    filling.part_step = 4 * plan_.phase_planes() * plan_.plane_dwords;
    filling.row_step = 4 * plan_.pitch;
    filling.parts = plan_.dwords;
    filling.flips = flip_ * 0x01010101u;
    filling.padding = padding_ ^ filling.flips;
    call_for_rows(of, rows_, filling, [&](int64_t begin, int64_t behind, jit::PlaneVector& vector) {
      const int64_t stride = plan_.columns.stride;
      const int64_t column = of.begin + begin * stride;
      const int64_t count = (behind - begin - 1) * stride + 4;
      const int64_t first = std::clamp<int64_t>(-column, 0, count);
      const int64_t end = std::clamp<int64_t>(plan_.columns.input - column, first, count);
      vector.source = column;
      vector.bytes = jit::first_bytes(end) & ~jit::first_bytes(first);
    });
  }

  /// Whether data of all rows follow each other in the input.
  bool has_whole_rows(const PhasePlanes& of) const {
    return plan_.columns.stride == 1 && plan_.rows.stride == 1 &&
           of.end - of.first == plan_.columns.input;
  }

  /// All rows as one.
  void call_for_one_row(const PhasePlanes& of, int64_t rows, jit::PlaneFilling filling) const {
    const int64_t end = rows < rows_ ? rows * plan_.pitch : (rows_ - 1) * plan_.pitch + width_;
    const KeptVectors::Rows key = {of.first_row, of.end_row, of.first, of.end, end};
    if (kept_.count > 0 && kept_.rows == key) return call_for_kept(filling);
    int64_t row = of.first_row;  // the first whose data end behind the vector's beginning
    int64_t source = 0;
    call_for_vectors(filling, end, [&](int64_t begin, int64_t behind, jit::PlaneVector& vector) {
      while (row < of.end_row && row * plan_.pitch + of.end <= begin) ++row;
      uint32_t present = 0;
      for (int64_t i = row; i < of.end_row && i * plan_.pitch + of.first < behind; ++i) {
        const int64_t data = i * plan_.pitch + of.first;  // the row's first dword with data
        const int64_t from = std::max(data, begin);
        const int64_t to = std::min(i * plan_.pitch + of.end, behind);
        if (present == 0) source = (i - of.first_row) * plan_.columns.input + (from - data);
        present |= bits(from - begin, to - begin);
      }
      vector.source = source;
      vector.lanes |= present;
    });
    if (end > static_cast<int64_t>(max_vectors) * lanes) kept_.count = 0;
    kept_.rows = key;
  }

  void call_for_kept(jit::PlaneFilling filling) const {
    filling.vectors = kept_.vectors.data();
    filling.vector_count = kept_.count;
    code_->call(&filling);
  }

  /// Rows in front of the data, rows with data, of whose vectors visit(begin, end, vector) is
  /// called, and rows behind.
  template <class Visit>
  void call_for_rows(const PhasePlanes& of, int64_t rows, jit::PlaneFilling filling,
                     Visit with_data) const {
    const int64_t end_row = std::min(of.end_row, rows);
    std::byte* planes = filling.planes;
    const auto only_padding = [](int64_t, int64_t, jit::PlaneVector&) {};
    const auto call_for = [&](int64_t from, int64_t to, int64_t source_step, auto visit) {
      if (from >= to) return;
      filling.planes = planes + from * filling.row_step;
      filling.rows = to - from;
      filling.source_row_step = source_step;
      call_for_vectors(filling, width_, visit);
    };
    call_for(0, of.first_row, 0, only_padding);
    call_for(of.first_row, end_row, wrapped_product(plan_.rows.stride, plan_.columns.input),
             with_data);
    call_for(end_row, rows, 0, only_padding);
  }

  /// Calls the code for dwords 0 to `end`, after visit(begin, end, vector) of each vector of them.
  template <class Visit>
  void call_for_vectors(jit::PlaneFilling filling, int64_t end, Visit visit) const {
    std::array<jit::PlaneVector, max_vectors>& vectors = kept_.vectors;
    kept_.rows = {};
    for (int64_t begin = 0; begin < end;) {
      size_t count = 0;
      for (; count < max_vectors && begin < end; begin += lanes, ++count) {
        const int64_t behind = std::min<int64_t>(begin + lanes, end);
        vectors[count] = {.source = 0,
                          .destination = static_cast<int32_t>(4 * begin),
                          .lanes = bits(0, behind - begin) << lanes};
        visit(begin, behind, vectors[count]);
      }
      kept_.count = static_cast<int64_t>(count);
      call_for_kept(filling);
    }
  }

  static uint32_t bits(int64_t begin, int64_t end) { return (1u << end) - (1u << begin); }

  /// Of a plain form: whole rows, or a piece of one, from the first pixel on.
  int64_t plain_pixels() const { return (rows_ - 1) * plan_.columns.input + width_ - first_pixel_; }

  /// Rows from `row` on, without code.
  void fill_rows(const PhasePlanes& of, int64_t begin, int64_t end, int64_t row) const {
    for (int64_t part = begin; part < end; ++part) {
      if (form_.is_plain && of.has_data()) {
        const int64_t first_row = of.pixel + of.input_row * plan_.columns.input;
        interleave(source_of(part, first_row + of.column + first_pixel_), plain_pixels(),
                   plane(of, part) + first_pixel_);
        continue;
      }
      for (int64_t i = row; i < rows_; ++i) {
        fill_row(of, part, i, plane(of, part) + i * plan_.pitch);
      }
    }
  }

  /// One row of a plane: padding, data, padding.
  void fill_row(const PhasePlanes& of, int64_t part, int64_t row, uint32_t* to) const {
    const bool is_padding = row < of.first_row || row >= of.end_row;
    if (holds_columns() && !is_padding) return fill_row_of_columns(of, part, row, to);
    const int64_t first = is_padding ? width_ : of.first;
    const int64_t end = is_padding ? width_ : of.end;
    std::fill_n(to, first, padding_);
    if (first < end) {
      const int64_t input_row = of.input_row + row * plan_.rows.stride;
      interleave(source_of(part, of.pixel + input_row * plan_.columns.input + of.column),
                 end - first, to + first);
    }
    std::fill_n(to + end, width_ - end, padding_);
  }

  /// One row of a plane whose dwords hold neighbouring columns, by way of a copy of the row with
  /// its padding, a piece at a time.
  void fill_row_of_columns(const PhasePlanes& of, int64_t channel, int64_t row,
                           uint32_t* to) const {
    constexpr int64_t max_bytes = 2048;
    const int64_t held = jit::channels_of_k_group(plan_.engine);
    const int64_t stride = plan_.columns.stride;
    const int64_t at_once = (max_bytes - held) / stride + 1;
    const int64_t input_row = of.input_row + row * plan_.rows.stride;
    std::array<std::byte, max_bytes> piece;
    for (int64_t i = 0; i < width_; i += at_once) {
      const int64_t count = std::min(at_once, width_ - i);
      copy_columns(channel, of.pixel + input_row * plan_.columns.input, of.begin + i * stride,
                   (count - 1) * stride + held, piece.data());
      DwordSource source;
      source.step = stride;
      for (int64_t k = 0; k < held; ++k) source.channels[k] = piece.data() + k;
      interleave(source, count, to + i);
    }
  }

  /// The first pixel of one of the group's channels, where channels lie one behind the other.
  const std::byte* channel_at(int64_t channel) const {
    const ConvolutionGeometry& geometry = plan_.geometry;
    const int64_t of_all =
        place_.image * geometry.channels + place_.group * geometry.group_channels() + channel;
    return input_.x + of_all * pixels_;
  }

  /// Columns of a channel's row from `column` on, be they inside the input or padding.
  void copy_columns(int64_t channel, int64_t row_pixel, int64_t column, int64_t count,
                    std::byte* to) const {
    const int64_t first = std::clamp<int64_t>(-column, 0, count);
    const int64_t end = std::clamp<int64_t>(plan_.columns.input - column, first, count);
    const std::byte* row = channel_at(channel) + row_pixel;
    std::memset(to, input_.zero_point, static_cast<size_t>(first));
    if (first < end)
      std::memcpy(to + first, row + (column + first), static_cast<size_t>(end - first));
    std::memset(to + end, input_.zero_point, static_cast<size_t>(count - end));
  }

  /// The channels of a dword at a pixel of the image's spatial extents.
  DwordSource source_of(int64_t part, int64_t pixel) const {
    const ConvolutionGeometry& geometry = plan_.geometry;
    const int count = jit::channels_of_k_group(plan_.engine);
    DwordSource source;
    source.step = wrapped_product(plan_.columns.stride, pixel_step_);
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
    if (plan_.engine == jit::ProductEngine::u8_i8_dot) {
      interleave_bytes(source, flip_, count, to);
    } else {
      interleave_words(source, input_.is_signed, input_.zero_point, count, to);
    }
  }

  const jit::ConvPlan& plan_;
  const KernelCode<jit::PlaneForm>* code_;
  const jit::PlaneForm form_;
  const PlaneInput& input_;
  const BlockPlace& place_;
  std::byte* planes_;
  KeptVectors& kept_;
  const int64_t first_pixel_;  ///< of a plain form
  int64_t pixels_;
  int64_t channel_step_;
  int64_t pixel_step_;
  int64_t rows_;   ///< of a plane
  int64_t width_;  ///< dwords of a row
  uint8_t flip_;   ///< makes signed bytes unsigned
  uint32_t padding_;
};

}  // namespace

void fill_planes(const jit::ConvPlan& plan, const MovementCode& code, const PlaneInput& input,
                 const BlockPlace& place, std::byte* planes, KeptVectors& kept,
                 int64_t pixels_laid_out) {
  if (plan.dwords_hold == jit::DwordsHold::taps) {
    return fill_windows(plan, code, input, place, planes, kept);
  }
  PlaneFiller(plan, code, input, place, planes, kept, pixels_laid_out).fill();
}

}  // namespace castor::detail
