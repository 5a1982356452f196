// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/pack_input.hpp"

#include <algorithm>
#include <cstring>

#include "ir/support/integer_math.hpp"
#include "runtime/conv/interleave.hpp"

namespace castor::detail {

namespace {

constexpr int64_t lanes = jit::ConvStore::max_lanes;

uint32_t bits(int64_t begin, int64_t end) { return (1u << end) - (1u << begin); }

/// The input of one block.
class InputBlock {
 public:
  InputBlock(const jit::DensePlan& plan, const PlaneInput& input, const BlockPlace& place)
      : plan_(plan), input_(input), place_(place) {
    const ConvolutionGeometry& geometry = plan.geometry;
    const bool nhwc = geometry.layout == ConvolutionLayout::nhwc;
    for (const ConvolutionAxis& axis : geometry.axes) pixels_ *= axis.input;
    channel_step_ = nhwc ? 1 : pixels_;
    pixel_step_ = nhwc ? geometry.channels : 1;
    group_ = input.x + place.image * geometry.channels * pixels_ +
             place.group * geometry.group_channels() * channel_step_;
    if (has_pairs()) return;
    flip_ = input.is_signed ? 0x80 : 0;
    pad_ = static_cast<uint8_t>(input.zero_point + flip_);
  }

  const std::byte* at(int64_t channel, int64_t pixel) const {
    return group_ + channel * channel_step_ + pixel * pixel_step_;
  }

 protected:
  bool has_pairs() const { return plan_.engine == jit::ProductEngine::i16_pairs; }
  const std::byte* end() const {
    return input_.x + plan_.geometry.batch * plan_.geometry.channels * pixels_;
  }

  const jit::DensePlan& plan_;
  const PlaneInput& input_;
  const BlockPlace& place_;
  int64_t pixels_ = 1;        ///< of an image
  int64_t channel_step_ = 0;  ///< bytes
  int64_t pixel_step_ = 0;
  const std::byte* group_ = nullptr;  ///< its first channel at the image's first pixel
  uint8_t flip_ = 0;                  ///< xor of 8-bit elements
  uint8_t pad_ = 0;  ///< padding as packed, of 8-bit elements; i16 pairs have zeros
};

/// The planes of one slice of the filter and one stride phase of rows and of columns: one for each
/// k group, with data at the same positions.
struct PhasePlanes {
  uint32_t* first = nullptr;  ///< of the first k group
  int64_t pixel = 0;          ///< of the input: the slice's first
  int64_t input_row = 0;      ///< of the planes' first row; may be negative
  int64_t input_column = 0;   ///< of a row's first k group; may be negative
  PlaneData data;
};

/// Packs planes: by generated code, several at a time, and row by row where there is none, or where
/// it would read past the end of the input.
class PlanePacker : InputBlock {
 public:
  PlanePacker(const InputBlock& in, const KernelCode<jit::PackInput>* code, KeptVectors& kept,
              std::byte* to, int64_t packed_pixels)
      : InputBlock(in),
        planes_(*plan_.planes()),
        code_(code),
        kept_(kept),
        to_(reinterpret_cast<uint32_t*>(to)),
        rows_(place_.block.rows + planes_.row_phases.max_shift),
        width_(place_.block.columns + planes_.column_phases.max_shift),
        held_(jit::channels_of_k_group(plan_.engine)),
        packed_pixels_(packed_pixels) {}

  void pack() const;

 private:
  PhasePlanes phase_planes(int64_t slice, size_t row_phase, size_t column_phase) const;
  void pack_planes(const PhasePlanes& of) const;

  // By code:
  void pack_k_groups(const PhasePlanes& of, int64_t begin, int64_t end) const;
  int64_t bytes_left(const PhasePlanes& of, int64_t k_group) const;
  jit::PackInputArguments arguments_of(const PhasePlanes& of, int64_t k_group) const;
  void call(const PhasePlanes& of, int64_t begin, int64_t end, int64_t rows) const;
  void call_for_columns(const PhasePlanes& of) const;
  void call_for_im2col(const PhasePlanes& of) const;
  void find_filter_rows(int64_t first_row, const std::byte** to) const;
  template <class Visit>
  void call_for_rows(const PhasePlanes& of, int64_t k_group, int64_t rows,
                     jit::PackInputArguments& arguments, Visit visit) const;
  void call_for_whole_rows(const PhasePlanes& of, int64_t rows,
                           jit::PackInputArguments& arguments) const;
  void call_for_run(int64_t begin, int64_t end, jit::PackInputArguments& arguments) const;
  template <class Visit>
  void call_for_vectors(jit::PackInputArguments& arguments, int64_t begin, int64_t end,
                        Visit visit) const;
  void call_for_kept(jit::PackInputArguments& arguments) const;

  // By loops:
  void pack_rows(const PhasePlanes& of, int64_t k_group, int64_t row) const;
  void pack_row(const PhasePlanes& of, int64_t k_group, int64_t row, uint32_t* to) const;
  void pack_columns(const PhasePlanes& of, const std::byte* row, uint32_t* to) const;
  void interleave(const KGroupSource& source, int64_t count, uint32_t* to) const;
  KGroupSource source_of(int64_t k_group, int64_t pixel) const;

  /// Says which bytes of a row's vectors are input. Nothing outside the row is read.
  auto bytes_of_vectors(const PhasePlanes& of) const {
    return [this, &of](int64_t begin, int64_t, jit::PackedVector& vector) {
      constexpr int64_t vector_bytes = 64;
      vector.source = of.input_column + begin * plan_.columns.stride;
      const int64_t first = std::clamp<int64_t>(-vector.source, 0, vector_bytes);
      const int64_t end =
          std::clamp<int64_t>(plan_.columns.input - vector.source, first, vector_bytes);
      vector.bytes = jit::first_bits(end) & ~jit::first_bits(first);
    };
  }
  uint32_t* plane(const PhasePlanes& of, int64_t k_group) const {
    return of.first + k_group * planes_.phases() * planes_.plane_size;
  }
  /// The pixel of the input that a row of planes has data from.
  int64_t pixel_of_row(const PhasePlanes& of, int64_t row) const {
    return of.pixel + (of.input_row + row * plan_.rows.stride) * plan_.columns.input;
  }
  /// Its column. Without data that is no position, and may exceed all numbers.
  int64_t first_column(const PhasePlanes& of) const {
    return wrapped_sum(of.input_column, wrapped_product(of.data.first, plan_.columns.stride));
  }
  /// Whether the data of all rows are adjacent in the input.
  bool has_whole_rows(const PhasePlanes& of) const {
    return plan_.columns.stride == 1 && plan_.rows.stride == 1 &&
           of.data.end - of.data.first == plan_.columns.input;
  }
  /// Whether they are so in the plane as well.
  bool is_one_run(const PhasePlanes& of) const {
    return planes_.layout == jit::PackedLayout::nchw4c && has_whole_rows(of) &&
           planes_.pitch == plan_.columns.input && of.data.end_row - of.data.first_row == rows_;
  }
  void fill_rows(const PhasePlanes& of, int64_t k_group, int64_t row, int64_t end) const {
    for (; row < end; ++row) std::fill_n(plane(of, k_group) + row * planes_.pitch, width_, pad());
  }
  uint32_t pad() const { return pad_ * 0x01010101u; }

  const jit::PackedPlanes& planes_;
  const KernelCode<jit::PackInput>* code_;
  KeptVectors& kept_;
  uint32_t* const to_;
  const int64_t rows_;           ///< of a plane
  const int64_t width_;          ///< k groups of a row
  const int64_t held_;           ///< channels or columns of a k group
  const int64_t packed_pixels_;  ///< from the first one on, of whole rows
};

void PlanePacker::pack() const {
  for (int64_t slice = 0; slice < plan_.slices; ++slice) {
    for (size_t r = 0; r < planes_.row_phases.phases.size(); ++r) {
      for (size_t c = 0; c < planes_.column_phases.phases.size(); ++c) {
        pack_planes(phase_planes(slice, r, c));
      }
    }
  }
}

PhasePlanes PlanePacker::phase_planes(int64_t slice, size_t row_phase, size_t column_phase) const {
  const auto phase = static_cast<int64_t>(row_phase) * planes_.column_phases.count() +
                     static_cast<int64_t>(column_phase);
  PhasePlanes of;
  of.first = to_ + (slice * plan_.k_groups * planes_.phases() + phase) * planes_.plane_size;
  const std::optional<int64_t> outer = jit::outer_position(plan_.geometry, place_.outer, slice);
  if (!outer) return of;
  const ConvolutionAxis& rows = plan_.rows;
  const ConvolutionAxis& columns = plan_.columns;
  of.pixel = *outer * rows.input * columns.input;
  of.input_row = place_.row * rows.stride + planes_.row_phases.phases[row_phase] - rows.pad_begin;
  of.input_column = place_.column * columns.stride + planes_.column_phases.phases[column_phase] -
                    columns.pad_begin;
  // Steps along an axis before `end` is reached.
  const auto steps = [](int64_t from, int64_t end, int64_t stride, int64_t max) {
    const int64_t distance = std::max<int64_t>(end - from, 0);
    return std::min(stride == 1 ? distance : ceil_div(distance, stride), max);  // divisions cost
  };
  PlaneData& data = of.data;
  data.first_row = steps(of.input_row, 0, rows.stride, rows_);
  data.end_row = std::max(steps(of.input_row, rows.input, rows.stride, rows_), data.first_row);
  data.first = steps(of.input_column, 0, columns.stride, width_);
  data.end = std::max(steps(of.input_column, columns.input, columns.stride, width_), data.first);
  return of;
}

void PlanePacker::pack_planes(const PhasePlanes& of) const {
  if (planes_.layout == jit::PackedLayout::im2col) return call_for_im2col(of);
  if (code_ == nullptr || of.data.is_empty()) {
    for (int64_t i = 0; i < plan_.k_groups; ++i) pack_rows(of, i, 0);
    return;
  }
  if (planes_.layout == jit::PackedLayout::columns4) return call_for_columns(of);
  const int64_t whole = plan_.geometry.group_channels() / held_;
  if (whole > 0) pack_k_groups(of, 0, whole);
  if (whole < plan_.k_groups) pack_k_groups(of, whole, plan_.k_groups);
}

/// Packs k groups that have the same number of channels: by code, but for rows at the end of the
/// input.
void PlanePacker::pack_k_groups(const PhasePlanes& of, int64_t begin, int64_t end) const {
  int64_t k_group = end;
  while (k_group > begin && bytes_left(of, k_group - 1) < 0) --k_group;
  if (k_group > begin) call(of, begin, k_group, rows_);
  for (; k_group < end; ++k_group) {
    const int64_t row_bytes = saturated_product(plan_.rows.stride, plan_.columns.input);
    const int64_t rows = of.data.end_row - ceil_div(-bytes_left(of, k_group), row_bytes);
    const bool is_worthwhile = rows > of.data.first_row;
    if (is_worthwhile) call(of, k_group, k_group + 1, rows);
    pack_rows(of, k_group, is_worthwhile ? rows : 0);
  }
}

/// Bytes of the input after all that the code reads of a k group; negative if it reads too far.
int64_t PlanePacker::bytes_left(const PhasePlanes& of, int64_t k_group) const {
  const int64_t last = std::min(held_ * k_group + 3, plan_.geometry.group_channels() - 1);
  const int64_t end_of_row = pixel_of_row(of, of.data.end_row - 1) + plan_.columns.input;
  return end() - at(last, end_of_row) - (jit::pack_input_spec(plan_).bytes_read() - 1);
}

/// The arguments for all rows with data from a k group's on.
jit::PackInputArguments PlanePacker::arguments_of(const PhasePlanes& of, int64_t k_group) const {
  jit::PackInputArguments arguments;
  arguments.source_row_step = wrapped_product(plan_.rows.stride, plan_.columns.input);
  arguments.planes = reinterpret_cast<std::byte*>(plane(of, k_group));
  arguments.plane_step = 4 * planes_.phases() * planes_.plane_size;
  arguments.row_step = 4 * planes_.pitch;
  arguments.k_groups = 1;
  arguments.rows = 1;
  arguments.flips = flip_ * 0x01010101u;
  arguments.padding = pad();
  return arguments;
}

/// Packs the first `rows` rows of some nchw4c planes.
void PlanePacker::call(const PhasePlanes& of, int64_t begin, int64_t end, int64_t rows) const {
  const KGroupSource source =
      source_of(begin, pixel_of_row(of, of.data.first_row) + first_column(of));
  jit::PackInputArguments arguments = arguments_of(of, begin);
  arguments.source = source.channels[0];
  for (int i = 1; i < 4; ++i) {
    arguments.channels[i - 1] = source.channels[i] != nullptr ? i * channel_step_ : 0;
  }
  arguments.source_k_group_step = held_ * channel_step_;
  arguments.k_groups = end - begin;
  if (is_one_run(of)) return call_for_run(packed_pixels_, rows * planes_.pitch, arguments);
  if (has_whole_rows(of)) return call_for_whole_rows(of, rows, arguments);
  call_for_rows(of, begin, rows, arguments,
                [&](int64_t from, int64_t to, jit::PackedVector& vector) {
                  const int64_t first = std::clamp(of.data.first, from, to);
                  const int64_t behind = std::clamp(of.data.end, first, to);
                  if (first == behind) return;
                  vector.source = (first - of.data.first) * plan_.columns.stride;
                  vector.lanes |= bits(first - from, behind - from);
                });
}

void PlanePacker::call_for_columns(const PhasePlanes& of) const {
  jit::PackInputArguments arguments = arguments_of(of, 0);
  arguments.source = at(0, pixel_of_row(of, of.data.first_row));
  arguments.source_k_group_step = pixels_;
  arguments.k_groups = plan_.k_groups;
  arguments.padding ^= arguments.flips;
  call_for_rows(of, 0, rows_, arguments, bytes_of_vectors(of));
}

/// Adjacent output rows whose receptive fields have no padding above or below are packed together.
void PlanePacker::call_for_im2col(const PhasePlanes& of) const {
  std::array<const std::byte*, jit::PackInput::max_filter_rows> filter_rows = {};
  jit::PackInputArguments arguments = arguments_of(of, 0);
  std::byte* const planes = arguments.planes;
  arguments.filter_rows = filter_rows.data();
  arguments.padding ^= arguments.flips;
  const auto input_row = [&](int64_t row) { return of.input_row + row * plan_.rows.stride; };
  const auto is_inside = [&](int64_t row) {
    return input_row(row) >= 0 && input_row(row) + plan_.rows.window() <= plan_.rows.input;
  };
  for (int64_t row = 0; row < rows_; row += arguments.rows) {
    int64_t end = row;
    while (end < rows_ && is_inside(end)) ++end;
    arguments.rows = std::max<int64_t>(end - row, 1);
    arguments.planes = planes + row * arguments.row_step;
    find_filter_rows(input_row(row), filter_rows.data());
    call_for_vectors(arguments, 0, width_, bytes_of_vectors(of));
  }
}

void PlanePacker::find_filter_rows(int64_t first_row, const std::byte** to) const {
  for (int64_t channel = 0; channel < plan_.geometry.group_channels(); ++channel) {
    for (int64_t tap = 0; tap < plan_.rows.kernel; ++tap) {
      const int64_t row = first_row + tap * plan_.rows.dilation;
      const bool is_input = row >= 0 && row < plan_.rows.input;
      *to++ = is_input ? at(channel, row * plan_.columns.input) : nullptr;
    }
  }
}

/// Packs the first `rows` rows of planes, for whose vectors visit(begin, end, vector) is called.
template <class Visit>
void PlanePacker::call_for_rows(const PhasePlanes& of, int64_t k_group, int64_t rows,
                                jit::PackInputArguments& arguments, Visit visit) const {
  const int64_t end_row = std::min(of.data.end_row, rows);
  for (int64_t i = 0; i < arguments.k_groups; ++i) {
    fill_rows(of, k_group + i, 0, of.data.first_row);
    fill_rows(of, k_group + i, end_row, rows);
  }
  arguments.planes += of.data.first_row * arguments.row_step;
  arguments.rows = end_row - of.data.first_row;
  call_for_vectors(arguments, 0, width_, visit);
}

/// Packs rows whose data are adjacent in the input as one row.
void PlanePacker::call_for_whole_rows(const PhasePlanes& of, int64_t rows,
                                      jit::PackInputArguments& arguments) const {
  const int64_t pitch = planes_.pitch;
  const PlaneData& data = of.data;
  const int64_t end = rows < rows_ ? rows * pitch : (rows - 1) * pitch + width_;
  if (kept_.data == data && kept_.end == end) {
    return call_for_kept(arguments);
  }
  int64_t row = data.first_row;  // the first whose data end after the vector's beginning
  call_for_vectors(
      arguments, 0, end, [&](int64_t begin, int64_t behind, jit::PackedVector& vector) {
        while (row < data.end_row && row * pitch + data.end <= begin) ++row;
        uint32_t present = 0;
        for (int64_t i = row; i < data.end_row && i * pitch + data.first < behind; ++i) {
          const int64_t first = i * pitch + data.first;  // the row's first k group with data
          const int64_t from = std::max(first, begin);
          const int64_t to = std::min(i * pitch + data.end, behind);
          if (present == 0) {
            vector.source = (i - data.first_row) * plan_.columns.input + (from - first);
          }
          present |= bits(from - begin, to - begin);
        }
        vector.lanes |= present;
      });
  if (end > KeptVectors::max_count * lanes) return;
  kept_.data = data;
  kept_.end = end;
}

/// Packs pixels that are adjacent in the input and in planes: as rows of a few vectors each, and a
/// row of the pixels that are left.
void PlanePacker::call_for_run(int64_t begin, int64_t end,
                               jit::PackInputArguments& arguments) const {
  constexpr int64_t row_pixels = 8 * lanes;
  const auto has_all = [](int64_t first, int64_t behind, jit::PackedVector& vector) {
    vector.source = first;
    vector.lanes |= bits(0, behind - first);
  };
  const std::byte* source = arguments.source;
  std::byte* planes = arguments.planes;
  arguments.source_row_step = row_pixels;
  arguments.row_step = 4 * row_pixels;
  while (begin < end) {
    arguments.source = source + begin;
    arguments.planes = planes + 4 * begin;
    arguments.rows = std::max<int64_t>((end - begin) / row_pixels, 1);
    call_for_vectors(arguments, 0, std::min(end - begin, row_pixels), has_all);
    begin += arguments.rows * row_pixels;
  }
}

/// Packs k groups `begin` to `end` of rows, after visit(begin, end, vector) of each vector of them.
template <class Visit>
void PlanePacker::call_for_vectors(jit::PackInputArguments& arguments, int64_t begin, int64_t end,
                                   Visit visit) const {
  kept_.data = {};
  while (begin < end) {
    kept_.count = 0;
    for (; kept_.count < KeptVectors::max_count && begin < end; begin += lanes, ++kept_.count) {
      const int64_t behind = std::min(begin + lanes, end);
      jit::PackedVector& vector = kept_.vectors[static_cast<size_t>(kept_.count)];
      vector = {.destination = static_cast<int32_t>(4 * begin),
                .lanes = bits(0, behind - begin) << lanes};
      visit(begin, behind, vector);
    }
    call_for_kept(arguments);
  }
}

void PlanePacker::call_for_kept(jit::PackInputArguments& arguments) const {
  arguments.vectors = kept_.vectors.data();
  arguments.vector_count = kept_.count;
  code_->call(&arguments);
}

/// Packs the rows from `row` on of one plane.
void PlanePacker::pack_rows(const PhasePlanes& of, int64_t k_group, int64_t row) const {
  uint32_t* to = plane(of, k_group) + row * planes_.pitch;
  if (is_one_run(of)) {
    const int64_t pixel = pixel_of_row(of, row) + first_column(of);
    return interleave(source_of(k_group, pixel), (rows_ - row) * planes_.pitch, to);
  }
  for (; row < rows_; ++row, to += planes_.pitch) pack_row(of, k_group, row, to);
}

/// Packs one row of a plane: padding, data, padding.
void PlanePacker::pack_row(const PhasePlanes& of, int64_t k_group, int64_t row,
                           uint32_t* to) const {
  const PlaneData& data = of.data;
  if (row < data.first_row || row >= data.end_row) return fill_rows(of, k_group, row, row + 1);
  const int64_t pixel = pixel_of_row(of, row);
  if (planes_.layout == jit::PackedLayout::columns4) {
    return pack_columns(of, at(k_group, pixel), to);
  }
  std::fill_n(to, data.first, pad());
  if (data.first < data.end) {
    interleave(source_of(k_group, pixel + first_column(of)), data.end - data.first,
               to + data.first);
  }
  std::fill_n(to + data.end, width_ - data.end, pad());
}

/// Packs one row of a columns4 plane by way of copies of the row with its padding.
void PlanePacker::pack_columns(const PhasePlanes& of, const std::byte* row, uint32_t* to) const {
  constexpr int64_t max_bytes = 2048;
  const int64_t stride = plan_.columns.stride;
  const int64_t at_once = (max_bytes - held_) / stride + 1;
  std::array<std::byte, max_bytes> copy;
  KGroupSource source = {.step = stride};
  for (int64_t k = 0; k < held_; ++k) source.channels[k] = copy.data() + k;
  for (int64_t i = 0; i < width_; i += at_once) {
    const int64_t count = std::min(at_once, width_ - i);
    const int64_t bytes = (count - 1) * stride + held_;
    const int64_t column = of.input_column + i * stride;
    const int64_t first = std::clamp<int64_t>(-column, 0, bytes);
    const int64_t end = std::clamp<int64_t>(plan_.columns.input - column, first, bytes);
    std::memset(copy.data(), input_.zero_point, static_cast<size_t>(bytes));
    if (first < end) {
      std::memcpy(copy.data() + first, row + (column + first), static_cast<size_t>(end - first));
    }
    interleave(source, count, to + i);
  }
}

void PlanePacker::interleave(const KGroupSource& source, int64_t count, uint32_t* to) const {
  if (has_pairs()) {
    interleave_pairs(source, input_.is_signed, input_.zero_point, count, to);
  } else {
    interleave_bytes(source, flip_, count, to);
  }
}

/// The channels of a k group at a pixel.
KGroupSource PlanePacker::source_of(int64_t k_group, int64_t pixel) const {
  const int64_t first = k_group * held_;
  KGroupSource source;
  source.step = wrapped_product(plan_.columns.stride, pixel_step_);
  for (int64_t i = 0; i < std::min(held_, plan_.geometry.group_channels() - first); ++i) {
    source.channels[i] = at(first + i, pixel);
  }
  return source;
}

/// Copies rows as kernels read them.
class RowCopier : InputBlock {
 public:
  explicit RowCopier(const InputBlock& in)
      : InputBlock(in), rows_(std::get<jit::CopiedRows>(plan_.source)) {
    const bool nhwc = plan_.geometry.layout == ConvolutionLayout::nhwc;
    elements_ = nhwc ? plan_.geometry.group_channels() : 1;
    channels_ = nhwc ? 1 : plan_.geometry.group_channels();
  }

  void copy(std::byte* to) const {
    for (int64_t i = 0; i < plan_.slices * channels_; ++i, to += rows_.plane_bytes()) {
      const std::optional<int64_t> outer =
          jit::outer_position(plan_.geometry, place_.outer, i / channels_);
      for (int64_t j = 0; j < input_extent(place_.block.rows, plan_.rows); ++j) {
        if (j % plan_.rows.stride >= plan_.rows.window()) continue;  // no tap reads it
        const int64_t row = place_.row * plan_.rows.stride - plan_.rows.pad_begin + j;
        const bool is_input = outer && row >= 0 && row < plan_.rows.input;
        const std::byte* from = nullptr;
        if (is_input) {
          from = at(i % channels_, (*outer * plan_.rows.input + row) * plan_.columns.input);
        }
        copy_row(from, to + j * rows_.row_bytes);
      }
    }
  }

 private:
  /// Padding, data, padding; null: only padding.
  void copy_row(const std::byte* row, std::byte* to) const {
    const ConvolutionAxis& axis = plan_.columns;
    const int64_t columns = input_extent(place_.block.columns, axis);
    const int64_t begin = place_.column * axis.stride - axis.pad_begin;
    const int64_t first = std::clamp<int64_t>(-begin, 0, columns);
    const int64_t end = std::clamp<int64_t>(axis.input - begin, first, columns);
    const auto pad = [&](int64_t from, int64_t behind) {
      std::memset(to + from * rows_.column_bytes, pad_,
                  static_cast<size_t>((behind - from) * rows_.column_bytes));
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
    if (pixel_step_ == elements_) return copy_elements(from, columns * elements_, to);
    for (int64_t column = 0; column < columns; ++column) {
      copy_elements(from + column * pixel_step_, elements_, to + column * rows_.column_bytes);
    }
  }

  /// I16 pairs are widened and less the zero point.
  void copy_elements(const std::byte* from, int64_t count, std::byte* to) const {
    if (has_pairs()) {
      for (int64_t i = 0; i < count; ++i) {
        const int value =
            input_.is_signed ? static_cast<int8_t>(from[i]) : static_cast<uint8_t>(from[i]);
        const auto number = static_cast<int16_t>(value - input_.zero_point);
        std::memcpy(to + 2 * i, &number, sizeof(number));
      }
    } else if (flip_ == 0) {
      std::memcpy(to, from, static_cast<size_t>(count));
    } else {
      for (int64_t i = 0; i < count; ++i) to[i] = from[i] ^ std::byte{flip_};
    }
  }

  const jit::CopiedRows& rows_;
  int64_t elements_ = 1;  ///< of a column
  int64_t channels_ = 1;  ///< that have planes of their own
};

}  // namespace

Result<KernelCodePtr<jit::PackInput>> find_input_packer(const jit::DensePlan& plan,
                                                        const jit::Target& target,
                                                        CodeCache& cache) {
  const bool is_nchw = plan.geometry.layout == ConvolutionLayout::nchw;
  if (!is_nchw || plan.planes() == nullptr) return KernelCodePtr<jit::PackInput>();
  const jit::PackInput spec = jit::pack_input_spec(plan);
  if (!fits(spec, target)) return KernelCodePtr<jit::PackInput>();
  return cache.get(spec, target);
}

void pack_input(const jit::DensePlan& plan, const KernelCode<jit::PackInput>* code,
                const PlaneInput& input, const BlockPlace& place, std::byte* to, KeptVectors& kept,
                int64_t packed_pixels) {
  const InputBlock in(plan, input, place);
  if (plan.planes() == nullptr) return RowCopier(in).copy(to);
  PlanePacker(in, code, kept, to, packed_pixels).pack();
}

const std::byte* input_of(const jit::DensePlan& plan, const PlaneInput& input,
                          const BlockPlace& place) {
  const int64_t outer = jit::outer_position(plan.geometry, place.outer, 0).value_or(0);
  const int64_t row = outer * plan.rows.input + place.row * plan.rows.stride;
  return InputBlock(plan, input, place)
      .at(0, row * plan.columns.input + place.column * plan.columns.stride);
}

}  // namespace castor::detail
