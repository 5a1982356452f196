// SPDX-License-Identifier: Apache-2.0
// One call of a depthwise or grouped convolution: piece by piece, slice by slice of the filter.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "ir/support/integer_math.hpp"
#include "runtime/conv/convolution.hpp"
#include "runtime/conv/convolution_output.hpp"
#include "runtime/conv/convolution_step.hpp"
#include "runtime/conv/sliding.hpp"

namespace castor::detail {

namespace {

using jit::DepthwisePlan;
using jit::GroupedNhwcPlan;

constexpr int64_t any_elements = std::numeric_limits<int64_t>::max();

/// A part of the output: neighbouring rows, column parts and panels of output channels of an image.
struct SlidingPiece {
  int64_t image = 0;
  int64_t outer = 0;  ///< output position along the outer spatial axes, row-major
  int64_t row = 0;
  int64_t row_end = 0;
  int64_t column = 0;  ///< entry of column positions, or unit of places
  int64_t column_end = 0;
  int64_t panel = 0;
  int64_t panel_end = 0;
};

/// Column parts of a row, and the first output column of one; after the last part, the width.
int64_t column_parts(const DepthwisePlan& plan) {
  return static_cast<int64_t>(plan.runs[0].columns);
}
int64_t column_at(const DepthwisePlan& plan, int64_t part) {
  if (part == column_parts(plan)) return plan.columns.output;
  return plan.columns_of_runs[static_cast<size_t>(part)].output / 4;
}
int64_t column_parts(const GroupedNhwcPlan& plan) { return plan.column_units(); }
int64_t column_at(const GroupedNhwcPlan& plan, int64_t part) {
  return std::min(part * plan.unit_columns(), plan.columns.output);
}
/// The first output channel of a panel; after the last one, the number of channels.
int64_t channel_at(const DepthwisePlan&, int64_t panel) { return panel; }
int64_t channel_at(const GroupedNhwcPlan& plan, int64_t panel) {
  return panel == plan.panels() ? plan.geometry.out_channels
                                : plan.vectors[static_cast<size_t>(panel)].channel;
}

/// One call, which has what all tasks read: operands, output, packed weights and how the output is
/// divided into pieces.
template <class Plan>
class SlidingRun {
 public:
  /// Pieces of the output, which tasks share out.
  int64_t pieces() const {
    return plan_.geometry.batch * plan_.outer_outputs * row_pieces() * column_pieces() *
           (plan_.panels() / group_panels_) * panel_pieces_;
  }

 protected:
  using Bound = BoundSliding<Plan>;
  using Code = KernelCode<typename Bound::Spec>;

  /// Packs in the scratch at that offset what is not known before the call.
  SlidingRun(const Bound& bound, size_t scratch, const ConvolutionStep& step,
             const CallMemory& memory)
      : bound_(bound),
        plan_(bound.plan),
        partition_(bound.target.tuning().partition),
        operands_(operands_of(step, memory)),
        output_(plan_.geometry, step, memory),
        max_elements_(bound.applies_epilogue ? any_elements : output_.max_elements()),
        panel_lanes_(plan_.panel_lanes()),
        piece_rows_(plan_.rows.output),
        piece_columns_(column_parts(plan_)),
        group_panels_(plan_.panels()),
        products_(bound.products) {
    prepare(memory.scratch + scratch);
  }

  int64_t row_pieces() const { return ceil_div(plan_.rows.output, piece_rows_); }
  int64_t column_pieces() const { return ceil_div(column_parts(plan_), piece_columns_); }

  /// Pieces are numbered along columns, rows and outer positions; panels come first in NHWC, where
  /// they read the same pixels, else last.
  SlidingPiece piece_of(int64_t number) const {
    const auto next = [&number](int64_t extent) {
      if (extent == 1) return int64_t{0};
      const int64_t index = number % extent;
      number /= extent;
      return index;
    };
    SlidingPiece piece;
    const auto set_panels = [&] {
      const int64_t in_group = next(panel_pieces_);
      const int64_t group = next(plan_.panels() / group_panels_) * group_panels_;
      piece.panel = group + in_group * piece_panels_;
      const bool is_last = in_group + 1 == panel_pieces_;
      piece.panel_end = is_last ? group + group_panels_ : piece.panel + piece_panels_;
    };
    if (Bound::is_nhwc) set_panels();
    piece.column = next(column_pieces()) * piece_columns_;
    piece.column_end = std::min(piece.column + piece_columns_, column_parts(plan_));
    piece.row = next(row_pieces()) * piece_rows_;
    piece.row_end = std::min(piece.row + piece_rows_, plan_.rows.output);
    piece.outer = next(plan_.outer_outputs);
    if (!Bound::is_nhwc) set_panels();
    piece.image = number;
    return piece;
  }

  /// The byte that stands for the input's zero point.
  std::byte padding() const {
    const std::byte* zero = data_of(bound_.operands.x_zero_point, operands_);
    return zero == nullptr ? std::byte{0} : *zero;
  }

  /// Makes a piece: `set_output(of, column, to)` sets where kernels write, from an output column
  /// on, unless they apply the epilogue to the arguments' operands, and `call(outer, starts, code)`
  /// calls them for one slice of the filter, with the input's position along outer axes. Arguments
  /// are set where they are: a copy would have to wait for all stores before it.
  template <class Arguments, class SetOutput, class Call>
  void run_piece(const SlidingPiece& piece, std::byte* scratch, Arguments& arguments,
                 const SetOutput& set_output, const Call& call) const {
    const int64_t width = plan_.columns.output;
    const int64_t column = column_at(plan_, piece.column);
    const int64_t columns = column_at(plan_, piece.column_end) - column;
    const int64_t channel = channel_at(plan_, piece.panel);
    const OutputPiece of = {.image = piece.image,
                            .channel = channel,
                            .channels = channel_at(plan_, piece.panel_end) - channel,
                            .pixel = (piece.outer * plan_.rows.output + piece.row) * width + column,
                            .pixels = (piece.row_end - piece.row - 1) * width + columns};
    if (bound_.applies_epilogue) {
      const EpilogueOperands operands = output_.find_operands(of);
      arguments.epilogue = operands.data();
      set_output(of, column, PieceMemory{});
      run_slices(piece, arguments, call);
      return;
    }
    const PieceMemory to = output_.begin(of, scratch);
    set_output(of, column, to);
    if (!run_slices(piece, arguments, call)) clear(of, to);
    output_.end(of, scratch);
  }

  const Bound& bound_;
  const Plan& plan_;
  const jit::PartitionTuning& partition_;
  const CallOperands operands_;
  const ConvolutionOutput output_;
  const int64_t max_elements_;  ///< results of a piece
  const int64_t panel_lanes_;   ///< of packed weights
  int64_t piece_rows_;
  int64_t piece_columns_;  ///< column parts
  int64_t piece_panels_ = 1;
  int64_t group_panels_;      ///< that a piece may have any of
  int64_t panel_pieces_ = 1;  ///< of a group; the last one has the rest as well

 private:
  /// All slices of the filter, one after the other. False: all are in the padding.
  template <class Arguments, class Call>
  bool run_slices(const SlidingPiece& piece, Arguments& arguments, const Call& call) const {
    bool is_begun = false;
    for (int64_t slice = 0; slice < plan_.slices; ++slice) {
      const std::optional<int64_t> outer = jit::outer_position(plan_.geometry, piece.outer, slice);
      if (!outer) continue;
      const int64_t first = slice * plan_.panels() + piece.panel;
      arguments.weights = panels_ + first * panel_lanes_;
      call(*outer, starts_ + first,
           *bound_.codes[products_.signed_input][products_.subtracts_window_sums][is_begun]);
      is_begun = true;
    }
    return is_begun;
  }

  void prepare(std::byte* scratch) {
    const ConvolutionOperands& operands = bound_.operands;
    const int32_t* packed = bound_.packed.data();
    if (bound_.packed.empty()) {
      auto* to = reinterpret_cast<int32_t*>(scratch);
      const WeightData from = {operands_[1], data_of(operands.w_zero_point, operands_)};
      products_ = products_of(plan_.geometry, operands, plan_.spec.engine, from);
      pack_weights(bound_, products_, from, bound_.panels_at(to));
      packed = to;
      scratch += 4 * bound_.packed_lanes();
    }
    const PackedPanels<const int32_t> panels = bound_.panels_at(packed);
    panels_ = panels.panels;
    starts_ = bound_.starts.data();
    if (!bound_.starts.empty()) return;
    using Start = typename Bound::Start;
    const std::span<Start> made(at_next_line(reinterpret_cast<Start*>(scratch)),
                                bound_.panel_count());
    set_starts(bound_, products_, data_of(operands.x_zero_point, operands_), panels.sums, made);
    starts_ = made.data();
  }

  /// Where all slices are in the padding, results are 0.
  static void clear(const OutputPiece& piece, const PieceMemory& to) {
    for (int64_t channel = 0; channel < piece.channels; ++channel) {
      for (int64_t pixel = 0; pixel < piece.pixels; ++pixel) {
        to.data[channel * to.channel_step + pixel * to.pixel_step] = 0;
      }
    }
  }

  SlidingProducts products_;
  const int32_t* panels_ = nullptr;
  const typename Bound::Start* starts_ = nullptr;
};

/// Row ranges as depthwise kernels take them, and where they end: bytes from the image and from the
/// first row of outputs.
struct RangeList {
  std::array<jit::DepthwiseRanges, DepthwisePlan::max_runs> ranges;
  size_t count = 0;
  int64_t input_end = 0;
  int64_t output_end = 0;
};

/// How many of `count` numbers, beginning at `first` and `step` apart, are below `end`.
int64_t count_below(int64_t first, int64_t step, int64_t count, int64_t end) {
  return end <= first ? 0 : std::min(count, ceil_div(end - first, step));
}

/// A kernel walks over all channels of a piece, and in each over a list of row ranges.
class NchwRun : public SlidingRun<DepthwisePlan> {
 public:
  NchwRun(const Bound& bound, size_t scratch, const ConvolutionStep& step, const CallMemory& memory)
      : SlidingRun(bound, scratch, step, memory), output_bytes_(bound.applies_epilogue ? 1 : 4) {
    for (const ConvolutionAxis& axis : plan_.geometry.axes) pixels_ *= axis.input;
    choose_pieces();
    const SlidingPiece plane = {.row_end = plan_.rows.output, .column_end = column_parts(plan_)};
    list_ranges(plane_, plane);
  }

  /// The pieces from `begin` to `end`; `scratch` belongs to the task and is the output's.
  void run(int64_t begin, int64_t end, std::byte* scratch) const {
    std::optional<RangeList> own;  // of parts of planes
    for (int64_t number = begin; number < end;) {
      SlidingPiece piece = piece_of(number);
      number += join_pieces(piece, number, end);
      if (is_whole_row(piece) && piece.row_end - piece.row == plan_.rows.output) {
        run_ranges(piece, plane_, scratch);
        continue;
      }
      if (!own) own.emplace();
      list_ranges(*own, piece);
      run_ranges(piece, *own, scratch);
    }
  }

 private:
  /// With several output channels for one of x, each piece is of one of x.
  int64_t multiplier() const { return plan_.geometry.group_out_channels(); }
  bool is_whole_row(const SlidingPiece& piece) const {
    return piece.column_end - piece.column == column_parts(plan_);
  }

  /// Planes of several channels, or rows of one, or, where not even one may be had, a part of a
  /// row.
  void choose_pieces() {
    const int64_t plane = plan_.plane_outputs();
    const int64_t width = plan_.columns.output;
    const int64_t max = std::min(max_elements_, partition_.sliding_outputs);
    if (multiplier() > 1) group_panels_ = multiplier();
    if (plane <= max) {
      piece_panels_ = std::clamp<int64_t>(plan_.panels() / partition_.min_units, 1,
                                          std::min(group_panels_, max / plane));
    } else {
      const int64_t unit = plan_.unit_rows();
      const bool splits_rows = unit * width > max;
      piece_rows_ = splits_rows ? 1 : max / (unit * width) * unit;
      if (splits_rows) piece_columns_ = 1;
    }
    panel_pieces_ = ceil_div(group_panels_, piece_panels_);
  }

  /// Lets a piece have those that follow it as well, where they make up whole planes of adjacent
  /// channels. Returns how many it has then. Between two calls of a kernel stores come to a stop.
  int64_t join_pieces(SlidingPiece& piece, int64_t number, int64_t end) const {
    const int64_t in_plane = row_pieces() * column_pieces();
    const int64_t planes = (end - number) / in_plane;
    const bool joins = multiplier() == 1 && plan_.outer_outputs == 1 && plan_.slices == 1 &&
                       max_elements_ == any_elements;
    if (!joins || number % in_plane != 0 || planes == 0) return 1;
    const int64_t left = panel_pieces_ - number / in_plane % panel_pieces_;
    const int64_t joined = std::min(planes, left);
    piece.row_end = plan_.rows.output;
    piece.column_end = column_parts(plan_);
    piece.panel_end = std::min(piece.panel + joined * piece_panels_, plan_.panels());
    return joined * in_plane;
  }

  /// The row ranges of a piece, whose rows begin and end where ranges do.
  void list_ranges(RangeList& list, const SlidingPiece& piece) const {
    list.count = 0;
    list.input_end = 0;
    list.output_end = 0;
    for (const jit::DepthwiseRun& run : plan_.runs) add_run(list, run, piece);
  }

  void add_run(RangeList& list, const jit::DepthwiseRun& run, const SlidingPiece& piece) const {
    const jit::RowRange& range = plan_.spec.ranges[run.range];
    const int64_t rows = range.outputs * plan_.output_step();
    const int64_t begin = count_below(run.row, rows, run.count, piece.row);
    const int64_t end = count_below(run.row, rows, run.count, piece.row_end);
    if (begin >= end) return;
    const int64_t row = run.row + begin * rows;
    const int64_t input_row = plan_.columns.input;
    const int64_t output_row = output_bytes_ * plan_.columns.output;
    const int64_t input = (row * plan_.rows.stride - plan_.rows.pad_begin) * input_row;
    const int64_t output = (row - piece.row) * output_row;
    const jit::ColumnPositions* columns = plan_.columns_of_runs.data() + run.first_columns;
    const int64_t columns_end =
        is_whole_row(piece) ? static_cast<int64_t>(run.columns) : piece.column_end;
    jit::DepthwiseRanges& to = list.ranges[list.count++];
    to = {.range = static_cast<int64_t>(run.range),
          .count = end - begin,
          .input = input - list.input_end,
          .output = output - list.output_end,
          .input_range_step = rows * plan_.rows.stride * input_row,
          .output_range_step = rows * output_row,
          .input_column_step = plan_.lanes * plan_.columns.stride -
                               plan_.spec.input_rows(range) * plan_.row_step * input_row,
          .output_column_step = output_bytes_ * plan_.lanes - rows * output_row,
          .columns = columns + piece.column,
          .columns_end = columns + columns_end,
          .rows_loaded = plan_.rows_loaded.data() + run.first_rows_loaded};
    if (max_elements_ == any_elements) {
      const int max = bound_.target.tuning().depthwise.max_prefetched_outputs;
      to.prefetched = std::min(range.outputs, max) * plan_.output_step() * output_row;
    }
    list.input_end = input + to.count * to.input_range_step;
    list.output_end = output + to.count * to.output_range_step;
  }

  void run_ranges(const SlidingPiece& piece, const RangeList& list, std::byte* scratch) const {
    const int64_t channel = piece.image * plan_.geometry.channels + piece.panel / multiplier();
    jit::DepthwiseArguments arguments = arguments_for(list);
    // Columns are counted from the row's first one; with an epilogue from the piece's first output.
    const auto set_output = [&](const OutputPiece&, int64_t column, const PieceMemory& to) {
      arguments.output = number_of(to.data) - output_bytes_ * column;
      arguments.output_channel_step = 4 * to.channel_step - list.output_end;
    };
    const auto call = [&](int64_t outer, const int32_t* starts, const Code& code) {
      arguments.input = operands_[0] + outer * plan_.plane_inputs() + channel * pixels_;
      arguments.weights_end = arguments.weights + (piece.panel_end - piece.panel) * panel_lanes_;
      arguments.start = starts;
      code.call(&arguments);
    };
    run_piece(piece, scratch, arguments, set_output, call);
  }

  jit::DepthwiseArguments arguments_for(const RangeList& list) const {
    jit::DepthwiseArguments arguments;
    arguments.padding = std::to_integer<uint64_t>(padding()) * uint64_t{0x0101010101010101};
    arguments.input_row_step = plan_.row_step * plan_.columns.input;
    arguments.input_channel_step = (multiplier() == 1 ? pixels_ : 0) - list.input_end;
    arguments.output_row_step = output_bytes_ * plan_.output_step() * plan_.columns.output;
    arguments.ranges = list.ranges.data();
    arguments.ranges_end = arguments.ranges + list.count;
    return arguments;
  }

  const int64_t output_bytes_;  ///< 1: outputs are counted, for an epilogue
  int64_t pixels_ = 1;          ///< of a channel of x
  RangeList plane_;             ///< of a whole plane
};

/// A kernel walks over one row range, and in it over places and vectors of channels.
class NhwcRun : public SlidingRun<GroupedNhwcPlan> {
 public:
  NhwcRun(const Bound& bound, size_t scratch, const ConvolutionStep& step, const CallMemory& memory)
      : SlidingRun(bound, scratch, step, memory),
        in_single_rows_(plan_.rows_within(max_elements_) < plan_.unit_rows()) {
    padding_.fill(padding());
    const std::vector<ConvolutionAxis>& axes = plan_.geometry.axes;
    for (size_t axis = 0; axis + 2 < axes.size(); ++axis) images_ *= axes[axis].input;
    choose_pieces();
  }

  /// The pieces from `begin` to `end`; `scratch` belongs to the task and is the output's.
  void run(int64_t begin, int64_t end, std::byte* scratch) const {
    for (int64_t number = begin; number < end; ++number) run_rows(piece_of(number), scratch);
  }

 private:
  /// A unit of rows, or, where not even one may be had, a single row or a part of one.
  void choose_pieces() {
    const int64_t channels = std::min(plan_.geometry.out_channels, GroupedNhwcPlan::line_channels);
    piece_rows_ = plan_.rows_within(max_elements_);
    int64_t pixels = piece_rows_ * plan_.columns.output;
    const int64_t max = plan_.rows.output == 1 ? std::min(max_elements_, partition_.sliding_outputs)
                                               : max_elements_;
    if (pixels > max / channels) {
      piece_columns_ = std::max<int64_t>(max / channels / plan_.unit_columns(), 1);
      pixels = column_at(plan_, piece_columns_);
    }
    piece_panels_ = panels_of_piece(pixels);
    panel_pieces_ =
        std::max<int64_t>((plan_.panels() - (plan_.overlaps ? 1 : 0)) / piece_panels_, 1);
  }

  /// As many as may be had; the last piece may have nearly twice as many as the others.
  int64_t panels_of_piece(int64_t pixels) const {
    constexpr int64_t line_channels = GroupedNhwcPlan::line_channels;
    const int64_t channels = plan_.geometry.out_channels;
    const int64_t panel_bytes = 4 * panel_lanes_;
    const int64_t panels =
        std::clamp<int64_t>(partition_.max_panel_bytes / panel_bytes, 1, plan_.panels());
    if (channels > max_elements_ / pixels) {
      return std::clamp<int64_t>(max_elements_ / pixels / 2 / plan_.lanes, 1, panels);
    }
    const int64_t others =
        plan_.geometry.batch * plan_.outer_outputs * row_pieces() * column_pieces();
    if (others >= partition_.min_units || channels < 2 * line_channels) return panels;
    const int64_t lines = channels * others / partition_.min_units / line_channels;
    return std::min(std::max<int64_t>(lines, 1) * line_channels / plan_.lanes, panels);
  }

  void run_rows(const SlidingPiece& piece, std::byte* scratch) const {
    const int64_t image = plan_.rows.input * plan_.columns.input * plan_.geometry.channels;
    jit::GroupedNhwcArguments arguments = arguments_of(piece);
    // Columns are counted from the row's first one, channels from the first of all; with an
    // epilogue outputs are numbers of pixels.
    const auto set_output = [&](const OutputPiece& of, int64_t column, const PieceMemory& to) {
      const bool applies = bound_.applies_epilogue;
      arguments.first_channel = applies ? of.channel : 0;
      arguments.output_pixel_step = applies ? 1 : 4 * to.pixel_step;
      arguments.output = number_of(to.data) - column * arguments.output_pixel_step;
      if (!applies) arguments.output -= 4 * of.channel;
      // One place ahead, where results themselves are written.
      const bool prefetches = max_elements_ == any_elements;
      arguments.prefetched = prefetches ? plan_.unit_columns() * arguments.output_pixel_step : 0;
    };
    const auto call = [&](int64_t outer, const jit::NhwcVector* vectors, const Code& code) {
      arguments.input = operands_[0] + (piece.image * images_ + outer) * image;
      arguments.vectors = vectors;
      arguments.vectors_end = vectors + (piece.panel_end - piece.panel);
      run_ranges(piece, code, arguments);
    };
    run_piece(piece, scratch, arguments, set_output, call);
  }

  /// What is the same for all row ranges of a piece.
  jit::GroupedNhwcArguments arguments_of(const SlidingPiece& piece) const {
    const int64_t channels = plan_.geometry.channels;
    jit::GroupedNhwcArguments arguments;
    arguments.pixel_step = plan_.column_step * channels;
    arguments.row_step = plan_.row_step * plan_.columns.input * channels;
    const int64_t in_unit = plan_.column_phases;
    const auto places = static_cast<int64_t>(plan_.places.size());
    arguments.places = plan_.places.data() + piece.column * in_unit;
    arguments.places_end = plan_.places.data() + std::min(piece.column_end * in_unit, places);
    arguments.padding = padding_.data();
    return arguments;
  }

  /// The rows of a piece, those of a phase together. Arguments are set back.
  void run_ranges(const SlidingPiece& piece, const Code& code,
                  jit::GroupedNhwcArguments& arguments) const {
    const int64_t phases = in_single_rows_ ? 1 : plan_.row_phases;
    const int64_t row_bytes = plan_.columns.input * plan_.geometry.channels;
    const int64_t output_row = arguments.output_pixel_step * plan_.columns.output;
    arguments.output_step = arguments.output_pixel_step * plan_.column_phases;
    arguments.output_row_step = phases * output_row;
    for (int64_t row = piece.row; row < std::min(piece.row + phases, piece.row_end); ++row) {
      const jit::RowRange range = plan_.range_at(row, ceil_div(piece.row_end - row, phases));
      arguments.range = static_cast<int64_t>(plan_.number_of(range));
      const int64_t input = (row * plan_.rows.stride - plan_.rows.pad_begin) * row_bytes;
      const int64_t output = (row - piece.row) * output_row;
      arguments.input += input;
      arguments.output += output;
      code.call(&arguments);
      arguments.input -= input;
      arguments.output -= output;
    }
  }

  const bool in_single_rows_;
  std::array<std::byte, jit::GroupedNhwcSpec::pixel_bytes> padding_;
  int64_t images_ = 1;  ///< along the outer axes of x
};

}  // namespace

void run_depthwise(const BoundDepthwise& bound, size_t scratch, const ConvolutionStep& step,
                   const CallMemory& memory) {
  const NchwRun run(bound, scratch, step, memory);
  share_out(run, run.pieces(), max_tasks(memory, step.nanoseconds), memory, scratch);
}

void run_grouped_nhwc(const BoundGroupedNhwc& bound, size_t scratch, const ConvolutionStep& step,
                      const CallMemory& memory) {
  const NhwcRun run(bound, scratch, step, memory);
  share_out(run, run.pieces(), max_tasks(memory, step.nanoseconds), memory, scratch);
}

}  // namespace castor::detail
