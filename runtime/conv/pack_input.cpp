// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/pack_input.hpp"

#include <algorithm>
#include <cstring>

#include "ir/support/integer_math.hpp"
#include "runtime/conv/interleave.hpp"

namespace castor::detail {

namespace {

/// The planes of one slice of the filter and one stride phase of rows and of columns: one for each
/// k group, with data at the same positions, and padding around them.
struct PhasePlanes {
  uint32_t* first = nullptr;  ///< of the first k group
  int64_t pixel = 0;          ///< the first input pixel that the slice has
  int64_t input_row = 0;      ///< the planes' first row has it; may be negative
  int64_t input_column = 0;   ///< of a row's first k group; may be negative
  int64_t first_row = 0;      ///< with data
  int64_t end_row = 0;        ///< after the last one
  int64_t first_lane = 0;     ///< of a row, with data
  int64_t end_lane = 0;
};

/// The planes of a block.
class BlockPlanes : protected InputBlock {
 protected:
  /// The first `packed_pixels` are left out where rows are adjacent.
  BlockPlanes(const InputBlock& in, std::byte* to, int64_t packed_pixels)
      : InputBlock(in),
        planes_(*plan_.planes()),
        to_(reinterpret_cast<uint32_t*>(to)),
        rows_(plan_.rows),
        columns_(plan_.columns),
        row_(place_.row),
        column_(place_.column),
        row_count_(place_.block.rows + planes_.row_phases.max_shift),
        width_(place_.block.columns + planes_.column_phases.max_shift),
        held_(jit::channels_of_k_group(plan_.engine)),
        plane_step_(planes_.stride_phases() * planes_.plane_size) {
    if (has_adjacent_rows()) join_rows(packed_pixels);
  }

  /// Calls visit(planes) for each slice of the filter and each stride phase.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (int64_t slice = 0; slice < plan_.slices; ++slice) {
      for (size_t r = 0; r < planes_.row_phases.phases.size(); ++r) {
        for (size_t c = 0; c < planes_.column_phases.phases.size(); ++c) {
          visit(phase_planes(slice, r, c));
        }
      }
    }
  }
  bool is_of_columns() const { return planes_.layout == jit::PackedLayout::columns4; }
  uint32_t* row_of(const PhasePlanes& of, int64_t k_group, int64_t row) const {
    return of.first + k_group * plane_step_ + row * planes_.pitch;
  }
  /// Column 0 of the input that a row of a k group has.
  int64_t pixel_of_row(const PhasePlanes& of, int64_t row) const {
    return of.pixel + (of.input_row + row * rows_.stride) * columns_.input;
  }
  /// Fills the rows of a k group that are padding altogether.
  void fill_rows(const PhasePlanes& of, int64_t k_group) const {
    const auto fill = [&](int64_t row, int64_t end) {
      for (; row < end; ++row) std::fill_n(row_of(of, k_group, row), width_, pad());
    };
    fill(0, of.first_row);
    fill(of.end_row, row_count_);
  }
  uint32_t pad() const { return in_all_bytes(pad_); }

  const jit::PackedPlanes& planes_;
  uint32_t* to_;
  ConvolutionAxis rows_;
  ConvolutionAxis columns_;
  int64_t row_;  ///< the block's first, of the output
  int64_t column_;
  int64_t row_count_;         ///< of a plane
  int64_t width_;             ///< k groups of a row
  const int64_t held_;        ///< channels or columns of a k group
  const int64_t plane_step_;  ///< k groups from one k group's plane to the next one's

 private:
  /// Whether the planes' rows are whole rows of the input, adjacent in both.
  bool has_adjacent_rows() const {
    const auto begins_with_data = [](const ConvolutionAxis& axis) {
      return axis.stride == 1 && axis.pad_begin == 0;
    };
    return planes_.layout == jit::PackedLayout::nchw4c && planes_.stride_phases() == 1 &&
           begins_with_data(rows_) && begins_with_data(columns_) && column_ == 0 &&
           width_ == columns_.input && planes_.pitch == columns_.input &&
           row_ + row_count_ <= rows_.input;
  }

  /// Adjacent rows are packed as one, from some pixel on.
  void join_rows(int64_t packed_pixels) {
    column_ += row_ * columns_.input + packed_pixels;
    width_ += (row_count_ - 1) * columns_.input - packed_pixels;
    to_ += packed_pixels;
    row_ = 0;
    row_count_ = 1;
    columns_.input *= rows_.input;
    rows_.input = 1;
  }

  PhasePlanes phase_planes(int64_t slice, size_t row_phase, size_t column_phase) const {
    const auto phase = static_cast<int64_t>(row_phase) * planes_.column_phases.count() +
                       static_cast<int64_t>(column_phase);
    PhasePlanes of;
    of.first = to_ + slice * plan_.k_groups * plane_step_ + phase * planes_.plane_size;
    const std::optional<int64_t> outer = jit::outer_position(plan_.geometry, place_.outer, slice);
    if (!outer) return of;
    of.pixel = *outer * rows_.input * columns_.input;
    of.input_row = row_ * rows_.stride + planes_.row_phases.phases[row_phase] - rows_.pad_begin;
    of.input_column =
        column_ * columns_.stride + planes_.column_phases.phases[column_phase] - columns_.pad_begin;
    // Steps along an axis before `end` is reached.
    const auto steps = [](int64_t from, int64_t end, int64_t stride, int64_t max) {
      const int64_t distance = std::max<int64_t>(end - from, 0);
      return std::min(stride == 1 ? distance : ceil_div(distance, stride), max);  // divisions cost
    };
    of.first_row = steps(of.input_row, 0, rows_.stride, row_count_);
    of.end_row = std::max(steps(of.input_row, rows_.input, rows_.stride, row_count_), of.first_row);
    of.first_lane = steps(of.input_column, 0, columns_.stride, width_);
    of.end_lane =
        std::max(steps(of.input_column, columns_.input, columns_.stride, width_), of.first_lane);
    return of;
  }
};

/// Packs planes by generated code.
class CodePacker : BlockPlanes {
 public:
  CodePacker(const InputBlock& in, const KernelCode<jit::PackInput>& code, RowVectors& vectors,
             std::byte* to, int64_t packed_pixels)
      : BlockPlanes(in, to, packed_pixels), code_(code), vectors_(vectors) {}

  void pack() const {
    for_each([&](const PhasePlanes& of) {
      if (planes_.layout == jit::PackedLayout::im2col) return pack_im2col(of);
      for (int64_t k_group = 0; k_group < plan_.k_groups; ++k_group) fill_rows(of, k_group);
      if (of.first_row == of.end_row) return;
      if (is_of_columns()) return pack_columns(of);
      const int64_t whole = plan_.geometry.group_channels() / held_;
      if (whole > 0) pack_channels(of, 0, whole);
      if (whole < plan_.k_groups) pack_channels(of, whole, plan_.k_groups);
    });
  }

 private:
  /// The arguments for one k group's rows with data, from its channel 0 on.
  jit::PackInputArguments arguments_of(const PhasePlanes& of, int64_t k_group) const {
    jit::PackInputArguments arguments;
    arguments.source_row_step = wrapped_product(rows_.stride, columns_.input);
    arguments.planes = reinterpret_cast<std::byte*>(row_of(of, k_group, of.first_row));
    arguments.plane_step = 4 * plane_step_;
    arguments.row_step = 4 * planes_.pitch;
    arguments.k_groups = 1;
    arguments.rows = of.end_row - of.first_row;
    arguments.flips = in_all_bytes(sign_flip_);
    arguments.padding = pad() ^ arguments.flips;
    return arguments;
  }

  /// Packs k groups that have the same number of channels. Those that the last one lacks are
  /// another channel: weights there are 0.
  void pack_channels(const PhasePlanes& of, int64_t begin, int64_t end) const {
    jit::PackInputArguments arguments = arguments_of(of, begin);
    const int64_t there = plan_.geometry.group_channels() - held_ * begin;
    arguments.source = at(held_ * begin, pixel_of_row(of, of.first_row));
    for (int i = 1; i < 4; ++i) arguments.channels[i - 1] = i < there ? i * channel_step_ : 0;
    arguments.source_k_group_step = held_ * channel_step_;
    arguments.k_groups = end - begin;
    call(arguments, of.input_column);
  }

  void pack_columns(const PhasePlanes& of) const {
    jit::PackInputArguments arguments = arguments_of(of, 0);
    arguments.source = at(0, pixel_of_row(of, of.first_row));
    arguments.source_k_group_step = pixels_;
    arguments.k_groups = plan_.k_groups;
    call(arguments, of.input_column);
  }

  /// Adjacent output rows whose receptive fields have no padding above or below are packed
  /// together.
  void pack_im2col(const PhasePlanes& of) const {
    std::array<const std::byte*, jit::PackInput::max_filter_rows> filter_rows = {};
    jit::PackInputArguments arguments = arguments_of(of, 0);
    arguments.filter_rows = filter_rows.data();
    const auto input_row = [&](int64_t row) { return of.input_row + row * rows_.stride; };
    const auto is_inside = [&](int64_t row) {
      return input_row(row) >= 0 && input_row(row) + rows_.window() <= rows_.input;
    };
    for (int64_t row = 0; row < row_count_; row += arguments.rows) {
      int64_t end = row;
      while (end < row_count_ && is_inside(end)) ++end;
      arguments.rows = std::max<int64_t>(end - row, 1);
      arguments.planes = reinterpret_cast<std::byte*>(row_of(of, 0, row));
      find_filter_rows(input_row(row), filter_rows.data());
      call(arguments, of.input_column);
    }
  }

  void find_filter_rows(int64_t first_row, const std::byte** to) const {
    for (int64_t channel = 0; channel < plan_.geometry.group_channels(); ++channel) {
      for (int64_t tap = 0; tap < rows_.kernel; ++tap) {
        const int64_t row = first_row + tap * rows_.dilation;
        const bool is_input = row >= 0 && row < rows_.input;
        *to++ = is_input ? at(channel, row * columns_.input) : nullptr;
      }
    }
  }

  /// Packs rows whose first lane is at that column of the input, by parts whose vectors are known
  /// at once.
  void call(jit::PackInputArguments& arguments, int64_t input_column) const {
    constexpr int64_t max_lanes = RowVectors::max_count * jit::ConvStore::max_lanes;
    std::byte* const planes = arguments.planes;
    for (int64_t lane = 0; lane < width_; lane += max_lanes) {
      arguments.first_column = input_column + lane * columns_.stride;
      arguments.planes = planes + 4 * lane;
      vectors_.set(-arguments.first_column, columns_.input - arguments.first_column,
                   std::min(width_ - lane, max_lanes), columns_.stride);
      arguments.vectors = vectors_.vectors.data();
      arguments.vector_count = vectors_.count;
      code_.call(&arguments);
    }
  }

  const KernelCode<jit::PackInput>& code_;
  RowVectors& vectors_;
};

/// Packs planes by loops, where there is no code.
class LoopPacker : BlockPlanes {
 public:
  LoopPacker(const InputBlock& in, std::byte* to, int64_t packed_pixels)
      : BlockPlanes(in, to, packed_pixels) {}

  void pack() const {
    for_each([&](const PhasePlanes& of) {
      const bool is_transposed = transposes(of);
      for (int64_t k_group = 0; k_group < plan_.k_groups; ++k_group) {
        fill_rows(of, k_group);
        if (is_of_columns()) {
          pack_columns(of, k_group);
        } else {
          pad_rows(of, k_group);
          if (!is_transposed) pack_rows(of, k_group);
        }
      }
      if (is_transposed) transpose_rows(of);
    });
  }

 private:
  KGroupSpec spec_of(int64_t elements) const {
    return k_group_spec(plan_.engine, elements, sign_flip_, input_.zero_point);
  }

  void pack_columns(const PhasePlanes& of, int64_t channel) const {
    for (int64_t row = of.first_row; row < of.end_row; ++row) {
      pack_column_row(at(channel, pixel_of_row(of, row)), of.input_column, spec_of(held_),
                      row_of(of, channel, row));
    }
  }

  /// Whether all k groups of a pixel are packed together, so that its channels are read once.
  bool transposes(const PhasePlanes& of) const {
    return transposes_pixels(plan_, of.end_lane - of.first_lane);
  }

  void transpose_rows(const PhasePlanes& of) const {
    const int64_t channels = plan_.geometry.group_channels();
    const int64_t count = of.end_lane - of.first_lane;
    const int64_t column = of.input_column + of.first_lane * columns_.stride;
    const int64_t step = wrapped_product(columns_.stride, pixel_step_);
    for (int64_t row = of.first_row; row < of.end_row; ++row) {
      const std::byte* const first = at(0, pixel_of_row(of, row) + column);
      uint32_t* const to = row_of(of, 0, row) + of.first_lane;
      // Some pixels of the input's last row may have too little after them.
      const int64_t room = end_ - first - transposed_bytes(plan_.engine, channels);
      const int64_t with_room = room < 0 ? 0 : std::min(room / step + 1, count);
      const int64_t pixels = transposes_pixels(plan_, with_room) ? with_room : 0;
      if (pixels > 0) {
        transpose_k_groups({first, step, channels, pixels}, spec_of(held_), {to, plane_step_});
      }
      for (int64_t k = 0; pixels < count && k < plan_.k_groups; ++k) {
        gather_k_groups({first + pixels * step + k * held_, channel_step_, step},
                        spec_of(channels - k * held_),
                        {to + k * plane_step_ + pixels, count - pixels});
      }
    }
  }

  /// Fills the padding of rows with data of a k group.
  void pad_rows(const PhasePlanes& of, int64_t k_group) const {
    for (int64_t row = of.first_row; row < of.end_row; ++row) {
      uint32_t* const to = row_of(of, k_group, row);
      std::fill(to, to + of.first_lane, pad());
      std::fill(to + of.end_lane, to + width_, pad());
    }
  }

  /// Packs the data of a k group's rows.
  void pack_rows(const PhasePlanes& of, int64_t k_group) const {
    const int64_t count = of.end_lane - of.first_lane;
    if (count == 0 || of.first_row == of.end_row) return;
    const int64_t first_channel = k_group * held_;
    const int64_t there = std::min(held_, plan_.geometry.group_channels() - first_channel);
    const KGroupSpec spec = spec_of(there);
    const int64_t column = of.input_column + of.first_lane * columns_.stride;
    KGroupSource source = {.first = at(first_channel, pixel_of_row(of, of.first_row) + column),
                           .element_step = channel_step_,
                           .step = wrapped_product(columns_.stride, pixel_step_),
                           .row_step = wrapped_product(rows_.stride, columns_.input * pixel_step_)};
    const int64_t rows = of.end_row - of.first_row;
    KGroupRows to = {row_of(of, k_group, of.first_row) + of.first_lane, count, rows, planes_.pitch};
    const int64_t read =
        (there - 1) * channel_step_ + (count - 1) * source.step + 1 + interleave_slack;
    while (to.rows > 0 && end_ - source.first - (to.rows - 1) * source.row_step < read) --to.rows;
    if (to.rows > 0) interleave(source, spec, to);
    // Rows at the end of the input, of which the last k groups are packed one by one.
    const int64_t tail = count == 1 ? 1 : std::min(count, ceil_div(interleave_slack, source.step));
    for (int64_t row = to.rows; row < rows; ++row) {
      const std::byte* first = source.first + row * source.row_step;
      uint32_t* row_to = to.first + row * to.step;
      interleave({first, source.element_step, source.step}, spec, {row_to, count - tail});
      gather_k_groups({first + (count - tail) * source.step, source.element_step, source.step},
                      spec, {row_to + count - tail, tail});
    }
  }

  /// Packs a row of columns4 by way of copies with padding, from which whole vectors may be read.
  void pack_column_row(const std::byte* row, int64_t first_column, const KGroupSpec& spec,
                       uint32_t* to) const {
    constexpr int64_t max_bytes = 1024;
    std::array<std::byte, max_bytes + interleave_slack> copy;
    const int64_t at_once = (max_bytes - held_) / columns_.stride + 1;
    for (int64_t lane = 0; lane < width_; lane += at_once) {
      const int64_t count = std::min(at_once, width_ - lane);
      const int64_t bytes = (count - 1) * columns_.stride + held_;
      copy_columns(row, first_column + lane * columns_.stride, bytes, copy.data());
      interleave({copy.data(), 1, columns_.stride}, spec, {to + lane, count});
    }
  }

  /// Copies a row from a column on, which may be padding.
  void copy_columns(const std::byte* row, int64_t column, int64_t bytes, std::byte* to) const {
    const int64_t first = std::clamp<int64_t>(-column, 0, bytes);
    const int64_t end = std::clamp<int64_t>(columns_.input - column, first, bytes);
    std::fill_n(to, first, static_cast<std::byte>(input_.zero_point));
    if (first < end) std::copy_n(row + (column + first), end - first, to + first);
    std::fill(to + end, to + bytes, static_cast<std::byte>(input_.zero_point));
  }
};

}  // namespace

void RowVectors::set(int64_t first_byte, int64_t end_byte, int64_t lane_count, int64_t step) {
  constexpr int64_t vector_lanes = jit::ConvStore::max_lanes;
  constexpr int64_t vector_bytes = 64;
  const int64_t bytes = lane_count * step + vector_bytes;
  first_byte = std::clamp<int64_t>(first_byte, 0, bytes);
  end_byte = std::clamp<int64_t>(end_byte, first_byte, bytes);
  if (first == first_byte && end == end_byte && lanes == lane_count) return;
  first = first_byte;
  end = end_byte;
  lanes = lane_count;
  count = 0;
  for (int64_t lane = 0; lane < lanes; lane += vector_lanes, ++count) {
    const auto bits_before = [&](int64_t byte) {
      return jit::first_bits(std::clamp<int64_t>(byte - lane * step, 0, vector_bytes));
    };
    vectors[static_cast<size_t>(count)] = {
        .bytes = bits_before(end) & ~bits_before(first),
        .lanes = jit::first_bits(std::min(lanes - lane, vector_lanes))};
  }
}

Result<KernelCodePtr<jit::PackInput>> find_input_packer(const jit::DensePlan& plan,
                                                        const jit::Target& target,
                                                        CodeCache& cache) {
  return has_packing_code(plan, target) ? cache.get(jit::pack_input_spec(plan), target)
                                        : KernelCodePtr<jit::PackInput>();
}

void pack_input(const jit::DensePlan& plan, const KernelCode<jit::PackInput>* code,
                const PlaneInput& input, const BlockPlace& place, std::byte* to,
                RowVectors& vectors, int64_t packed_pixels) {
  const InputBlock in(plan, input, place);
  if (plan.planes() == nullptr) return copy_rows(in, to);
  if (code == nullptr) return LoopPacker(in, to, packed_pixels).pack();
  CodePacker(in, *code, vectors, to, packed_pixels).pack();
}

const std::byte* input_of(const jit::DensePlan& plan, const PlaneInput& input,
                          const BlockPlace& place) {
  const int64_t outer = jit::outer_position(plan.geometry, place.outer, 0).value_or(0);
  const int64_t row = outer * plan.rows.input + place.row * plan.rows.stride;
  return InputBlock(plan, input, place)
      .at(0, row * plan.columns.input + place.column * plan.columns.stride);
}

}  // namespace castor::detail
