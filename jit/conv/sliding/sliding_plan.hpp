// SPDX-License-Identifier: Apache-2.0
// Plans of depthwise and grouped convolutions: row ranges, where their outputs are along the rows,
// and the specs of their kernels.
//
// A filter that is dilated takes every d-th row and column, and outputs of each stride phase see an
// undilated filter: row ranges have outputs of one phase. Along outer spatial axes there is a pass
// for each slice of the filter, which adds to the pass before.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ir/support/integer_math.hpp"
#include "jit/conv/problem.hpp"
#include "jit/conv/sliding/sliding_spec.hpp"
#include "jit/core/cost_events.hpp"

namespace castor::jit {

/// Which weights of an output channel a 32-bit lane of its panel has: bytes `first`, first + step
/// ... of a slice of the filter.
struct PackedWeights {
  int64_t first = 0;  ///< in the first row of the filter; may be before it where `mask` has no bits
  uint32_t mask = 0;  ///< bytes that there are; others are 0
  uint32_t summed = 0;  ///< those that no lane before has
};

struct SlidingPlan : PlaneAxes {
  ConvolutionGeometry geometry;
  int lanes = 0;           ///< of a vector, at most
  int rows_of_vector = 1;  ///< output rows in the lanes of one vector, in NCHW
  int range_outputs = 1;   ///< output rows of whole row ranges
  int64_t row_phases = 1;  ///< output rows from one to the next that share input rows
  int64_t row_step = 1;    ///< rows of the image from an input row of a range to the next
  std::vector<PackedWeights> row_weights;  ///< of a row of the filter
  int64_t weight_step = 1;                 ///< from a byte of PackedWeights to the next

  /// Whether one call of a kernel writes each output, the only one.
  bool is_one_pass() const { return jit::is_one_pass(geometry); }
  /// The cost of an image, of which `plane` is that of a plane of outputs in one pass; slices of
  /// the filter in the padding have none.
  EventCounts cost_of_image(const EventCounts& plane, const ConvolutionProblem& problem) const {
    double passes = 1;
    for (size_t i = 0; i + 2 < geometry.axes.size(); ++i) {
      passes *= static_cast<double>(pairs_inside(geometry.axes[i]));
    }
    EventCounts image = plane * passes;
    const auto batch = static_cast<double>(geometry.batch);
    image[CostEvent::sliding_call] = 1 / batch;
    if (problem.has_constant_weights) return image;
    const int64_t channels = geometry.out_channels * geometry.group_channels();
    const int64_t weights = channels * slices * rows.kernel * columns.kernel;
    image[CostEvent::gathered_weight] = static_cast<double>(weights) / batch;
    return image;
  }
  /// Output rows from an output of a range to the next.
  int64_t output_step() const { return rows_of_vector * row_phases; }
  bool has_row(int64_t row) const { return row >= 0 && row < rows.input; }

  /// Sets what plan and spec have of rows. False: there is no code for them.
  bool set_rows(SlidingSpec& spec) {
    const AxisPhases phases = phases_of(rows);
    constexpr int64_t max = SlidingSpec::max_filter_rows;
    if (rows.kernel > max || phases.stride * rows_of_vector > max) return false;
    const bool is_one = rows.kernel == 1;
    row_phases = phases.count;
    row_step = phases.step * (is_one ? rows_of_vector : 1);
    spec.rows = static_cast<int>(rows.kernel);
    spec.row_stride = is_one ? 1 : static_cast<int>(phases.stride) * rows_of_vector;
    return true;
  }
  /// Row ranges of at most `max` output rows, all of about a size, which is a multiple of `step`
  /// where that is possible.
  void set_range_outputs(int64_t max, int64_t step = 1) {
    const int64_t outputs = ceil_div(rows.output / rows_of_vector, row_phases);
    max = std::clamp<int64_t>(max, 1, outputs);
    const int64_t even = ceil_div(outputs, ceil_div(outputs, max));
    const int64_t stepped = ceil_div(even, step) * step;
    range_outputs = static_cast<int>(stepped > max ? even : stepped);
  }
  /// Calls `add(row, outputs)` for the row ranges of all rows before `end`, by row: of at most
  /// `outputs` output rows, each `step` after the one before, in every one of `phases`.
  template <class Add>
  static void list_ranges(int64_t end, int64_t outputs, int64_t step, int64_t phases,
                          const Add& add) {
    for (int64_t unit = 0; unit < end; unit += outputs * step) {
      for (int64_t row = unit; row < std::min(unit + phases, end); ++row) {
        add(row, std::min(ceil_div(end - row, step), outputs));
      }
    }
  }
  /// A row range from an output row on, with `in_vector` rows in a vector. Which of its rows are
  /// border rows is left to NCHW.
  RowRange range_at(const SlidingSpec& spec, int64_t row, int64_t outputs,
                    int64_t in_vector) const {
    RowRange range = {.outputs = static_cast<int>(outputs), .masks_rows = in_vector > 1};
    const int count = spec.input_rows(range);
    const int64_t first = row * rows.stride - rows.pad_begin;
    const auto is_outside = [&](int64_t input_row) {
      int64_t k = 0;
      while (k < in_vector && !has_row(first + input_row * row_step + k * rows.stride)) ++k;
      return k == in_vector;
    };
    while (range.above < count && is_outside(range.above)) ++range.above;
    const int inside = count - range.above;
    while (range.below < inside && is_outside(count - 1 - range.below)) ++range.below;
    return range;
  }
};

/// The index of a row range among those that have code, to which it is added where it is new.
inline int64_t index_of(const RowRange& range, std::vector<RowRange>& ranges) {
  const auto index = std::ranges::find(ranges, range) - ranges.begin();
  if (index == std::ssize(ranges)) ranges.push_back(range);
  return index;
}

/// The spec of the kernel that has least room, if weights may need window sums.
template <class Spec>
Spec with_window_sums(Spec spec) {
  if (spec.has_pairs()) return spec;
  spec.subtracts_window_sums = true;
  spec.signed_input = spec.flips_input;
  spec.flips_input = false;
  return spec;
}

/// The plan of a depthwise convolution in NCHW. Lanes are output columns. The kernel goes
/// channel by channel, row range by row range, and in each from the first column position on.
struct DepthwisePlan : SlidingPlan {
  DepthwiseSpec spec;                      ///< without window sums and adding
  int64_t output_bytes = 4;                ///< 1: outputs are counted, for an epilogue
  std::vector<ColumnPositions> positions;  ///< of whole vectors, then of one with fewer rows
  std::vector<uint64_t> rows_loaded;       ///< of border rows, where ranges mask rows
  std::vector<DepthwiseRange> ranges;      ///< by row

  /// Parts of a plane begin at multiples of as many rows.
  int64_t unit_rows() const {
    return range_outputs > 1 ? range_outputs * output_step() : rows_of_vector;
  }
  /// Parts of a row, and the first output column of one; after the last part, the width.
  int64_t column_parts() const { return rows_of_vector > 1 ? 1 : std::ssize(positions); }
  int64_t column_at(int64_t part) const {
    if (part == column_parts()) return columns.output;
    return positions[static_cast<size_t>(part)].output / output_bytes;
  }
  /// Panels of weights of a slice, 32-bit lanes of each, and the first output channel of one.
  int64_t panels() const { return geometry.out_channels; }
  int64_t panel_lanes() const { return panel_size(spec); }
  int64_t channel_at(int64_t panel) const { return panel; }
};

/// A row range, and where it begins.
struct NhwcRange {
  int64_t range = 0;  ///< index of its code in the spec
  int64_t row = 0;    ///< the first output row
};

/// The plan of a grouped convolution in NHWC. Lanes are output channels.
struct GroupedNhwcPlan : SlidingPlan {
  static constexpr int64_t line_channels = 64;  ///< of a cache line of results

  int64_t column_step = 1;  ///< input columns from one that the filter takes to the next
  int64_t column_phases = 1;
  bool overlaps = false;  ///< the last vector has channels of the one before as well
  GroupedNhwcSpec spec;   ///< without window sums and adding
  std::vector<NhwcVector> vectors;
  std::vector<NhwcPlace> places;      ///< of one row, by unit, then by phase
  std::vector<NhwcRange> ranges;      ///< by row
  std::vector<NhwcRange> rows_alone;  ///< single rows, where a task may be one

  /// Channels of a group that a k group holds, if they are several.
  int channels_held() const { return channels_of_k_group(spec.engine); }
  /// Output rows of a unit: whole ranges of all phases.
  int64_t unit_rows() const { return range_outputs * row_phases; }
  /// Output columns of a unit; it has a place for each phase.
  int64_t unit_columns() const { return spec.outputs * column_phases; }
  /// Units of a row, and the first output column of one; after the last unit, the width.
  int64_t column_parts() const { return ceil_div(columns.output, unit_columns()); }
  int64_t column_at(int64_t unit) const { return std::min(unit * unit_columns(), columns.output); }
  int64_t place_count() const {
    return columns.output / unit_columns() * column_phases +
           std::min(columns.output % unit_columns(), column_phases);
  }
  /// Output rows of a piece with at most `max` outputs of a cache line's channels: a unit, or a
  /// single row, which may have more.
  int64_t rows_within(int64_t max) const {
    const int64_t fit = max / std::min(geometry.out_channels, line_channels) / columns.output;
    return fit < unit_rows() ? 1 : unit_rows();
  }
  /// Panels of weights of a slice, 32-bit lanes of each, and the first output channel of one; after
  /// the last panel, the number of channels.
  int64_t panels() const { return std::ssize(vectors); }
  int64_t panel_lanes() const { return int64_t{panel_size(spec)} * lanes; }
  int64_t channel_at(int64_t panel) const {
    return panel == panels() ? geometry.out_channels : vectors[static_cast<size_t>(panel)].channel;
  }
};

/// Plans a convolution that has output elements; nothing where there are no kernels for it:
/// depthwise ones have one channel in a group, grouped ones several groups, or one channel.
/// `epilogue` is what kernels are to apply, or null: nothing where they have no room for it.
std::optional<DepthwisePlan> plan_depthwise(const ConvolutionProblem& problem, const Target& target,
                                            const TileEpilogue* epilogue = nullptr);
std::optional<GroupedNhwcPlan> plan_grouped_nhwc(const ConvolutionProblem& problem,
                                                 const Target& target,
                                                 const TileEpilogue* epilogue = nullptr);

/// The plan in words.
std::string print(const DepthwisePlan& plan);
std::string print(const GroupedNhwcPlan& plan);

}  // namespace castor::jit
