// SPDX-License-Identifier: Apache-2.0
// One call of a depthwise or grouped convolution: piece by piece, slice by slice of the filter.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>

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
  int64_t column = 0;  ///< of the plan's column parts
  int64_t column_end = 0;
  int64_t panel = 0;
  int64_t panel_end = 0;
};

/// The row ranges of a piece, which begins and ends where ranges do.
template <class Range>
std::span<const Range> ranges_of(const SlidingPiece& piece, const std::vector<Range>& all) {
  return {std::ranges::lower_bound(all, piece.row, {}, &Range::row),
          std::ranges::lower_bound(all, piece.row_end, {}, &Range::row)};
}

/// Where all slices are in the padding, results are 0.
void clear(const OutputPiece& piece, const PieceMemory& to) {
  for (int64_t channel = 0; channel < piece.channels; ++channel) {
    for (int64_t pixel = 0; pixel < piece.pixels; ++pixel) {
      to.data[channel * to.channel_step + pixel * to.pixel_step] = 0;
    }
  }
}

/// One call, which has what all tasks read: operands, output, packed weights and how the output is
/// divided into pieces.
template <class Plan>
class SlidingRun {
 public:
  using Bound = BoundSliding<Plan>;

  /// Packs in the scratch at that offset what is not known before the call.
  SlidingRun(const Bound& bound, size_t scratch, const ConvolutionStep& step,
             const CallMemory& memory, int64_t tasks)
      : bound_(bound),
        plan_(bound.plan),
        partition_(bound.target.tuning().partition),
        operands_(operands_of(step, memory)),
        output_(plan_.geometry, step, memory),
        max_elements_(bound.applies_epilogue ? any_elements : output_.max_elements()),
        panel_lanes_(plan_.panel_lanes()),
        profile_(memory.profile),
        nest_(step.nest),
        piece_rows_(plan_.rows.output),
        piece_columns_(plan_.column_parts()),
        products_(bound.products) {
    const std::byte* zero = data_of(bound.operands.x_zero_point, operands_);
    if (zero != nullptr) padding_.fill(*zero);
    for (size_t i = 0; i + 2 < plan_.geometry.axes.size(); ++i) {
      outer_inputs_ *= plan_.geometry.axes[i].input;
    }
    const WorkTimer timer(profile_, nest_, Work::pack_weights);
    prepare(memory.scratch + scratch);
    if (bound.packed.empty()) {
      timer.done([&] {
        return packing_amount(plan_.geometry, static_cast<int64_t>(bound.packed_lanes()));
      });
    }
    choose_pieces(tasks);
  }

  /// Pieces of the output, which tasks share out.
  int64_t pieces() const {
    return plan_.geometry.batch * plan_.outer_outputs * row_pieces() * column_pieces() *
           panel_pieces_;
  }

  /// The pieces from `begin` to `end`; `scratch` belongs to the task and is the output's.
  void run(int64_t begin, int64_t end, std::byte* scratch) const {
    for (int64_t number = begin; number < end; ++number) {
      const SlidingPiece piece = piece_of(number);
      const WorkTimer timer(profile_, nest_, Work::block);
      run_piece(piece, scratch);
      timer.done([&] { return amount_of(piece); });
    }
  }

 private:
  using Arguments = std::remove_const_t<typename Bound::Spec::Arguments>;
  using Code = KernelCode<typename Bound::Spec>;

  /// The rows, column parts and panels of a piece.
  void choose_pieces(int64_t tasks);
  /// What all slices of a piece have in common.
  Arguments arguments_of(const SlidingPiece& piece, const OutputPiece& of, int64_t column,
                         const PieceMemory& to) const;
  /// Runs a slice, of which arguments have the weights and starts, at the input's position along
  /// outer axes.
  void run_slice(const SlidingPiece& piece, const Code& code, int64_t outer,
                 Arguments& arguments) const;

  // For profiles:
  /// Input, padding left out as far as an axis has it all, and weights; and results.
  WorkAmount amount_of(const SlidingPiece& piece) const {
    const ConvolutionGeometry& geometry = plan_.geometry;
    const int64_t channels = plan_.channel_at(piece.panel_end) - plan_.channel_at(piece.panel);
    const int64_t rows = piece.row_end - piece.row;
    const int64_t columns = plan_.column_at(piece.column_end) - plan_.column_at(piece.column);
    const int64_t inputs =
        plan_.slices *
        ceil_div(channels * geometry.group_channels(), geometry.group_out_channels()) *
        std::min(jit::input_extent(rows, plan_.rows), plan_.rows.input) *
        std::min(jit::input_extent(columns, plan_.columns), plan_.columns.input);
    const int64_t outputs = channels * rows * columns;
    return {
        .bytes_read = inputs + 4 * plan_.slices * (piece.panel_end - piece.panel) * panel_lanes_,
        .bytes_written = outputs * output_.kernel_result_bits(bound_.applies_epilogue) / 8,
        .products = outputs * jit::products_of_output(geometry)};
  }

  int64_t row_pieces() const { return ceil_div(plan_.rows.output, piece_rows_); }
  int64_t column_pieces() const { return ceil_div(plan_.column_parts(), piece_columns_); }
  int64_t plane_inputs() const { return plan_.rows.input * plan_.columns.input; }
  /// Whether results themselves are written: then memory is prefetched for them.
  bool writes_results() const { return max_elements_ == any_elements; }

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
      const int64_t index = next(panel_pieces_);
      piece.panel = index * piece_panels_;
      const bool is_last = index + 1 == panel_pieces_;
      piece.panel_end = is_last ? plan_.panels() : piece.panel + piece_panels_;
    };
    if (Bound::is_nhwc) set_panels();
    piece.column = next(column_pieces()) * piece_columns_;
    piece.column_end = std::min(piece.column + piece_columns_, plan_.column_parts());
    piece.row = next(row_pieces()) * piece_rows_;
    piece.row_end = std::min(piece.row + piece_rows_, plan_.rows.output);
    piece.outer = next(plan_.outer_outputs);
    if (!Bound::is_nhwc) set_panels();
    piece.image = number;
    return piece;
  }

  /// Arguments are made where they stay: a copy would have to wait for all stores before it.
  void run_piece(const SlidingPiece& piece, std::byte* scratch) const {
    const int64_t width = plan_.columns.output;
    const int64_t column = plan_.column_at(piece.column);
    const int64_t columns = plan_.column_at(piece.column_end) - column;
    const int64_t channel = plan_.channel_at(piece.panel);
    const OutputPiece of = {.image = piece.image,
                            .channel = channel,
                            .channels = plan_.channel_at(piece.panel_end) - channel,
                            .pixel = (piece.outer * plan_.rows.output + piece.row) * width + column,
                            .pixels = (piece.row_end - piece.row - 1) * width + columns};
    if (bound_.applies_epilogue) {
      output_.apply_in_kernel(of, [&](const jit::EpilogueOperand* operands) {
        Arguments arguments = arguments_of(piece, of, column, {});
        arguments.epilogue = operands;
        run_slices(piece, arguments);
      });
      return;
    }
    const PieceMemory to = output_.begin(of, scratch);
    Arguments arguments = arguments_of(piece, of, column, to);
    if (!run_slices(piece, arguments)) clear(of, to);
    output_.end(of, scratch);
  }

  /// All slices of the filter, one after the other. False: all are in the padding.
  bool run_slices(const SlidingPiece& piece, Arguments& arguments) const {
    bool is_begun = false;
    for (int64_t slice = 0; slice < plan_.slices; ++slice) {
      const std::optional<int64_t> outer = jit::outer_position(plan_.geometry, piece.outer, slice);
      if (!outer) continue;
      const int64_t first = slice * plan_.panels() + piece.panel;
      arguments.weights = panels_ + first * panel_lanes_;
      arguments.start = starts_ + slice * plan_.geometry.out_channels;
      run_slice(piece,
                *bound_.codes[products_.signed_input][products_.subtracts_window_sums][is_begun],
                *outer, arguments);
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
    if (!bound_.starts.empty()) {
      starts_ = at_next_line(bound_.starts.data());
      return;
    }
    auto* starts = at_next_line(reinterpret_cast<int32_t*>(scratch));
    set_starts(operands, products_, data_of(operands.x_zero_point, operands_),
               {panels.sums, bound_.sums()}, starts);
    starts_ = starts;
  }

  const Bound& bound_;
  const Plan& plan_;
  const jit::PartitionTuning& partition_;
  const CallOperands operands_;
  const ConvolutionOutput output_;
  const int64_t max_elements_;  ///< results of a piece
  const int64_t panel_lanes_;   ///< of packed weights
  CallProfile* const profile_;  ///< null: nobody asks
  const size_t nest_;
  int64_t piece_rows_;
  int64_t piece_columns_;  ///< column parts
  int64_t piece_panels_ = 1;
  int64_t panel_pieces_ = 1;  ///< the last one has the rest as well
  int64_t outer_inputs_ = 1;  ///< positions of x along its outer axes
  std::array<std::byte, jit::GroupedNhwcSpec::pixel_bytes> padding_ = {};
  SlidingProducts products_;
  const int32_t* panels_ = nullptr;
  const int32_t* starts_ = nullptr;
};

/// Planes of several channels, a piece of each image for every task: between two calls of a kernel
/// stores come to a stop. Where planes are too few or too large, row ranges of one plane; where not
/// even one row range fits, a part of a row.
template <>
void SlidingRun<DepthwisePlan>::choose_pieces(int64_t tasks) {
  const int64_t unit = plan_.unit_rows() * plan_.columns.output;
  const int64_t plane = plan_.rows.output * plan_.columns.output;
  const bool has_few_planes = plan_.panels() < tasks;
  const int64_t max = has_few_planes || plan_.slices > 1  // whose sums stay in the cache
                          ? std::min(max_elements_, partition_.sliding_outputs)
                          : max_elements_;
  if (plane > max) {
    piece_rows_ = std::max<int64_t>(max / unit * plan_.unit_rows(), 1);
    if (unit > max) piece_columns_ = 1;
  } else if (const int64_t of_one_image = plan_.geometry.group_out_channels(); of_one_image == 1) {
    piece_panels_ = std::min(ceil_div(plan_.panels(), tasks), max / plane);
  } else if (of_one_image <= max / plane) {
    piece_panels_ = of_one_image;
  }
  panel_pieces_ = ceil_div(plan_.panels(), piece_panels_);
}

/// Columns are counted from the row's first one; with an epilogue from the piece's first output.
template <>
jit::DepthwiseArguments SlidingRun<DepthwisePlan>::arguments_of(const SlidingPiece& piece,
                                                                const OutputPiece&, int64_t column,
                                                                const PieceMemory& to) const {
  const int64_t input_row = plan_.columns.input;
  const int64_t output_row = plan_.output_bytes * plan_.columns.output;
  const int max_prefetched = bound_.target.tuning().depthwise.max_prefetched_outputs;
  const int prefetched = writes_results() ? std::min(plan_.range_outputs, max_prefetched) : 0;
  const bool has_own_image = plan_.geometry.group_out_channels() == 1;
  const std::span<const jit::DepthwiseRange> ranges = ranges_of(piece, plan_.ranges);
  return {.input_row_step = plan_.row_step * input_row,
          .input_channel_step = has_own_image ? outer_inputs_ * plane_inputs() : 0,
          .output = number_of(to.data) - piece.row * output_row - plan_.output_bytes * column,
          .output_row_step = plan_.output_step() * output_row,
          .output_channel_step = 4 * to.channel_step,
          .prefetched = prefetched * plan_.output_step() * output_row,
          .ranges = ranges.data(),
          .ranges_end = ranges.data() + ranges.size(),
          .columns = plan_.positions.data() + piece.column,
          .column_count = piece.column_end - piece.column,
          .rows_loaded = plan_.rows_loaded.data(),
          .padding = std::to_integer<uint64_t>(padding_[0]) * uint64_t{0x0101010101010101}};
}

template <>
void SlidingRun<DepthwisePlan>::run_slice(const SlidingPiece& piece, const Code& code,
                                          int64_t outer, jit::DepthwiseArguments& arguments) const {
  const int64_t channel =
      piece.image * plan_.geometry.channels + piece.panel / plan_.geometry.group_out_channels();
  arguments.input = operands_[0] + (channel * outer_inputs_ + outer) * plane_inputs();
  arguments.weights_end = arguments.weights + (piece.panel_end - piece.panel) * panel_lanes_;
  arguments.start += piece.panel;
  code.call(&arguments);
}

/// A unit of rows; where no unit fits, a single row or a part of one. All panels where there are
/// enough pieces without dividing them; the last piece may have nearly twice as many as the others.
template <>
void SlidingRun<GroupedNhwcPlan>::choose_pieces(int64_t) {
  constexpr int64_t line_channels = GroupedNhwcPlan::line_channels;
  const int64_t channels = plan_.geometry.out_channels;
  piece_rows_ = plan_.rows_within(max_elements_);
  int64_t pixels = piece_rows_ * plan_.columns.output;
  const int64_t max =
      plan_.rows.output == 1 ? std::min(max_elements_, partition_.sliding_outputs) : max_elements_;
  const int64_t max_pixels = max / std::min(channels, line_channels);
  if (pixels > max_pixels) {
    piece_columns_ = std::max<int64_t>(max_pixels / plan_.unit_columns(), 1);
    pixels = plan_.column_at(piece_columns_);
  }
  const int64_t others =
      plan_.geometry.batch * plan_.outer_outputs * row_pieces() * column_pieces();
  const int64_t lines = channels * others / partition_.min_units / line_channels;
  int64_t piece_channels = std::max<int64_t>(lines, 1) * line_channels;
  if (channels > max_elements_ / pixels) {
    piece_channels = std::min(piece_channels, max_elements_ / pixels / 2);
  }
  const int64_t max_panels = partition_.max_panel_bytes / (4 * panel_lanes_);
  piece_panels_ =
      std::max<int64_t>(std::min({piece_channels / plan_.lanes, max_panels, plan_.panels()}), 1);
  panel_pieces_ = std::max<int64_t>((plan_.panels() - (plan_.overlaps ? 1 : 0)) / piece_panels_, 1);
}

/// Columns are counted from the row's first one, channels from the first of all; with an epilogue
/// outputs are numbers of pixels.
template <>
jit::GroupedNhwcArguments SlidingRun<GroupedNhwcPlan>::arguments_of(const SlidingPiece& piece,
                                                                    const OutputPiece& of,
                                                                    int64_t column,
                                                                    const PieceMemory& to) const {
  const bool applies = bound_.applies_epilogue;
  const int64_t channels = plan_.geometry.channels;
  const int64_t output_pixel = applies ? 1 : 4 * to.pixel_step;
  const int64_t pixel = piece.row * plan_.columns.output + column;
  const int64_t phases = plan_.column_phases;
  const int64_t places_end = std::min(piece.column_end * phases, std::ssize(plan_.places));
  return {.pixel_step = plan_.column_step * channels,
          .row_step = plan_.row_step * plan_.columns.input * channels,
          .output = number_of(to.data) - pixel * output_pixel - (applies ? 0 : 4 * of.channel),
          .output_pixel_step = output_pixel,
          .output_step = output_pixel * phases,
          // One place ahead.
          .prefetched = writes_results() ? plan_.unit_columns() * output_pixel : 0,
          .places = plan_.places.data() + piece.column * phases,
          .places_end = plan_.places.data() + places_end,
          .vectors = plan_.vectors.data() + piece.panel,
          .vectors_end = plan_.vectors.data() + piece.panel_end,
          .padding = padding_.data(),
          .first_channel = applies ? of.channel : 0};
}

/// Row range by row range; arguments are set back.
template <>
void SlidingRun<GroupedNhwcPlan>::run_slice(const SlidingPiece& piece, const Code& code,
                                            int64_t outer,
                                            jit::GroupedNhwcArguments& arguments) const {
  const int64_t channels = plan_.geometry.channels;
  const int64_t output_row = arguments.output_pixel_step * plan_.columns.output;
  const bool is_unit = piece_rows_ == plan_.unit_rows();
  const std::byte* x =
      operands_[0] + (piece.image * outer_inputs_ + outer) * plane_inputs() * channels;
  arguments.output_row_step = (is_unit ? plan_.row_phases : 1) * output_row;
  for (const jit::NhwcRange& each : ranges_of(piece, is_unit ? plan_.ranges : plan_.rows_alone)) {
    const int64_t input_row = each.row * plan_.rows.stride - plan_.rows.pad_begin;
    arguments.range = each.range;
    arguments.input = x + input_row * plan_.columns.input * channels;
    arguments.output += each.row * output_row;
    code.call(&arguments);
    arguments.output -= each.row * output_row;
  }
}

template <class Plan>
void run_sliding(const BoundSliding<Plan>& bound, size_t scratch, const ConvolutionStep& step,
                 const CallMemory& memory) {
  const int64_t tasks = max_tasks(memory, step.nanoseconds);
  const SlidingRun<Plan> run(bound, scratch, step, memory, tasks);
  share_out(run, run.pieces(), tasks, memory, scratch);
}

}  // namespace

void run_plan(const BoundDepthwise& bound, size_t scratch, const ConvolutionStep& step,
              const CallMemory& memory) {
  run_sliding(bound, scratch, step, memory);
}

void run_plan(const BoundGroupedNhwc& bound, size_t scratch, const ConvolutionStep& step,
              const CallMemory& memory) {
  run_sliding(bound, scratch, step, memory);
}

}  // namespace castor::detail
