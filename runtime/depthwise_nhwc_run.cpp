// SPDX-License-Identifier: Apache-2.0
// One call of a depthwise convolution whose channels lie side by side: piece by piece, block of
// rows by block of rows.
#include <algorithm>
#include <array>
#include <limits>

#include "ir/ceil_div.hpp"
#include "runtime/convolution_call.hpp"
#include "runtime/depthwise_nhwc.hpp"
#include "runtime/epilogue.hpp"

namespace castor::detail {

namespace {

using jit::DepthwiseNhwcPlan;

static_assert(most_piece_elements >= DepthwiseNhwcPlan::most_unit_outputs);

constexpr int64_t lanes = DepthwiseNhwcPlan::lanes;
constexpr int64_t line_channels = DepthwiseNhwcPlan::line_channels;
/// Outputs of a part of a row, where rows are parted for tasks to share.
constexpr int64_t part_outputs = 16384;
/// Pieces that channels are shared out to, where there are as many.
constexpr int64_t least_pieces = 16;

/// One call: the operands of the bound nest, and its scratch.
struct NhwcCall {
  CallOperands operands = {};
  std::byte* scratch = nullptr;
  const ConvolutionOutput* output = nullptr;
};

/// Runs calls piece by piece.
class NhwcRun {
 public:
  /// Packs what all tasks read.
  NhwcRun(const BoundDepthwiseNhwc& depthwise, const NhwcCall& call);

  /// Pieces of the output, which tasks share out.
  int64_t pieces() const;
  /// The pieces from `begin` to `end`; `scratch` belongs to the task and is the output's.
  void run(int64_t begin, int64_t end, std::byte* scratch) const;

 private:
  /// One piece: whole rows of an image, or a part of one, and some channels.
  struct Place {
    int64_t image = 0;
    int64_t row = 0;
    int64_t row_end = 0;
    int64_t unit = 0;  ///< of columns
    int64_t unit_end = 0;
    int64_t channel = 0;
    int64_t channels = 0;
  };

  void choose_pieces();
  void choose_channels(int64_t most, int64_t pixels);
  int64_t row_pieces() const { return ceil_div(plan_.rows.output, piece_rows_); }
  int64_t column_pieces() const { return ceil_div(plan_.column_units(), piece_units_); }
  int64_t channel_pieces() const {
    return std::max<int64_t>(plan_.geometry.channels / piece_channels_, 1);
  }
  Place place_of(int64_t piece) const;
  void run_place(const Place& place, std::byte* scratch) const;
  void apply_place(const Place& place, const OutputPiece& piece) const;
  void run_blocks(const Place& place, const jit::DepthwiseNhwcArguments& arguments) const;
  jit::DepthwiseNhwcArguments arguments_of(const Place& place) const;
  void run_block(const Place& place, int64_t row, int64_t phases,
                 jit::DepthwiseNhwcArguments arguments) const;

  const BoundDepthwiseNhwc& depthwise_;
  const DepthwiseNhwcPlan& plan_;
  const NhwcCall& call_;
  DepthwiseProducts products_;
  std::span<const int32_t> weights_;
  std::span<const int32_t> starts_;
  int64_t piece_rows_ = 1;
  int64_t piece_units_ = 1;
  int64_t piece_channels_ = 1;  ///< a multiple of the lanes, or all; the last piece has the rest
  bool in_single_rows_ = false;
};

NhwcRun::NhwcRun(const BoundDepthwiseNhwc& depthwise, const NhwcCall& call)
    : depthwise_(depthwise), plan_(depthwise.plan), call_(call), products_(depthwise.products) {
  const ConvolutionOperands& operands = depthwise.filter.operands;
  auto* scratch = reinterpret_cast<int32_t*>(call.scratch);
  const int32_t* packed = depthwise.packed.data();
  if (depthwise.packed.empty()) {
    const std::byte* zero_points = data_of(operands.w_zero_point, call_.operands);
    products_ = products_of(depthwise.filter, call_.operands[1], zero_points);
    pack_weights(depthwise, products_, call_.operands[1], zero_points,
                 packed_nhwc(depthwise, scratch));
    packed = scratch;
    scratch += packed_dwords(depthwise);
  }
  weights_ = packed_nhwc(depthwise, packed).weights;
  starts_ = depthwise.starts;
  if (starts_.empty()) {
    const std::span<int32_t> starts(scratch, start_dwords(depthwise));
    set_starts(depthwise, products_, data_of(operands.x_zero_point, call_.operands),
               packed_nhwc(depthwise, packed).sums, starts);
    starts_ = starts;
  }
  choose_pieces();
}

/// A unit of rows, or, where not even one may be had, a single row or a part of one.
void NhwcRun::choose_pieces() {
  const int64_t most = depthwise_.applies_epilogue ? std::numeric_limits<int64_t>::max()
                                                   : call_.output->most_elements();
  const int64_t channels = std::min(plan_.geometry.channels, line_channels);
  const int64_t width = plan_.columns.output;
  in_single_rows_ = plan_.unit_rows() * width > most / channels;
  piece_rows_ = in_single_rows_ ? 1 : plan_.unit_rows();
  piece_units_ = plan_.column_units();
  int64_t pixels = piece_rows_ * width;
  const int64_t wished = plan_.rows.output == 1 ? std::min(most, part_outputs) : most;
  if (pixels > wished / channels) {
    piece_units_ = std::max<int64_t>(wished / channels / plan_.unit_columns(), 1);
    pixels = std::min(piece_units_ * plan_.unit_columns(), width);
  }
  choose_channels(most, pixels);
}

/// All of them where they may be had; the last piece may have nearly twice as many as the others.
void NhwcRun::choose_channels(int64_t most, int64_t pixels) {
  const int64_t channels = plan_.geometry.channels;
  piece_channels_ = channels;
  if (channels > most / pixels) {
    piece_channels_ = std::max(most / pixels / 2 / lanes * lanes, lanes);
    return;
  }
  const int64_t others = plan_.geometry.batch * row_pieces() * column_pieces();
  if (others >= least_pieces || channels < 2 * line_channels) return;
  const int64_t lines = channels * others / least_pieces / line_channels;
  piece_channels_ = std::min(std::max<int64_t>(lines, 1) * line_channels, channels);
}

int64_t NhwcRun::pieces() const {
  return plan_.geometry.batch * row_pieces() * column_pieces() * channel_pieces();
}

/// Pieces are numbered along channels first, then columns, rows and images.
NhwcRun::Place NhwcRun::place_of(int64_t piece) const {
  const auto next = [&](int64_t extent) {
    const int64_t index = extent == 1 ? 0 : piece % extent;
    piece = extent == 1 ? piece : piece / extent;
    return index;
  };
  Place place;
  const int64_t of_channels = next(channel_pieces());
  const bool is_last = of_channels + 1 == channel_pieces();
  place.channel = of_channels * piece_channels_;
  place.channels = is_last ? plan_.geometry.channels - place.channel : piece_channels_;
  place.unit = next(column_pieces()) * piece_units_;
  place.unit_end = std::min(place.unit + piece_units_, plan_.column_units());
  place.row = next(row_pieces()) * piece_rows_;
  place.row_end = std::min(place.row + piece_rows_, plan_.rows.output);
  place.image = piece;
  return place;
}

void NhwcRun::run(int64_t begin, int64_t end, std::byte* scratch) const {
  for (int64_t piece = begin; piece < end; ++piece) run_place(place_of(piece), scratch);
}

void NhwcRun::run_place(const Place& place, std::byte* scratch) const {
  const int64_t width = plan_.columns.output;
  const int64_t column = place.unit * plan_.unit_columns();
  const int64_t column_end = std::min(place.unit_end * plan_.unit_columns(), width);
  const OutputPiece piece = {
      .image = place.image,
      .channel = place.channel,
      .channels = place.channels,
      .pixel = place.row * width + column,
      .pixels = (place.row_end - place.row - 1) * width + column_end - column};
  if (depthwise_.applies_epilogue) return apply_place(place, piece);
  const PieceMemory to = call_.output->begin(piece, scratch);
  jit::DepthwiseNhwcArguments arguments = arguments_of(place);
  arguments.output_pixel_step = 4 * to.pixel_step;
  arguments.output_vector_step = 4 * lanes;
  arguments.output_last_step = 4 * arguments.input_last_step;
  // One place ahead, where y itself is written.
  const bool is_result = call_.output->most_elements() == std::numeric_limits<int64_t>::max();
  arguments.prefetched = is_result ? plan_.unit_columns() * arguments.output_pixel_step : 0;
  // Columns are counted from the row's first one.
  arguments.output = number_of(to.data) - column * arguments.output_pixel_step;
  run_blocks(place, arguments);
  call_.output->end(piece, scratch);
}

/// By kernels that apply the epilogue: outputs are numbers of pixels.
void NhwcRun::apply_place(const Place& place, const OutputPiece& piece) const {
  std::array<jit::EpilogueOperand, jit::most_tile_operands + 1> operands;
  call_.output->find_operands(piece, operands.data());
  jit::DepthwiseNhwcArguments arguments = arguments_of(place);
  arguments.epilogue = operands.data();
  arguments.output_pixel_step = 1;
  arguments.output = -place.unit * plan_.unit_columns();
  const auto past = static_cast<int>(-arguments.input_last_step);
  arguments.last_lanes = uint32_t{0xffff} << past & 0xffff;
  if (place.channels < lanes) arguments.lanes = (1u << place.channels) - 1;
  run_blocks(place, arguments);
}

void NhwcRun::run_blocks(const Place& place, const jit::DepthwiseNhwcArguments& arguments) const {
  const int64_t phases = in_single_rows_ ? 1 : plan_.row_phases;
  for (int64_t row = place.row; row < std::min(place.row + phases, place.row_end); ++row) {
    run_block(place, row, phases, arguments);
  }
}

/// What is the same for all blocks of a piece.
jit::DepthwiseNhwcArguments NhwcRun::arguments_of(const Place& place) const {
  const int64_t channels = plan_.geometry.channels;
  const ConvolutionOperands& operands = depthwise_.filter.operands;
  jit::DepthwiseNhwcArguments arguments;
  arguments.input = call_.operands[0] + place.channel +
                    place.image * plan_.rows.input * plan_.columns.input * channels;
  arguments.pixel_step = plan_.column_step * channels;
  arguments.row_step = plan_.row_step * plan_.columns.input * channels;
  const int64_t past = place.channels % lanes;
  arguments.input_last_step = past == 0 || place.channels < lanes ? 0 : past - lanes;
  const int64_t units = plan_.column_phases;
  const auto places = static_cast<int64_t>(plan_.places.size());
  arguments.places = plan_.places.data() + place.unit * units;
  arguments.places_end = plan_.places.data() + std::min(place.unit_end * units, places);
  const int64_t vector = place.channel / lanes;
  const int64_t last = vector + ceil_div(place.channels, lanes) - 1;
  arguments.weights =
      weights_.data() + vector * lanes * jit::weight_vectors(plan_.form, depthwise_.target);
  arguments.start = starts_.data() + vector * lanes;
  arguments.last_start = starts_.data() + last * lanes;
  const std::byte* zero = data_of(operands.x_zero_point, call_.operands);
  arguments.padding =
      zero == nullptr ? 0 : static_cast<uint8_t>(*zero) * uint64_t{0x0101010101010101};
  return arguments;
}

/// The rows of a piece from one on that are `phases` apart.
void NhwcRun::run_block(const Place& place, int64_t row, int64_t phases,
                        jit::DepthwiseNhwcArguments arguments) const {
  const jit::DepthwiseNhwcBlock block = plan_.block_at(row, ceil_div(place.row_end - row, phases));
  const int64_t row_bytes = plan_.columns.input * plan_.geometry.channels;
  const int64_t output_row = arguments.output_pixel_step * plan_.columns.output;
  arguments.block = static_cast<int64_t>(plan_.number_of(block));
  arguments.input += (row * plan_.rows.stride - plan_.rows.pad_begin) * row_bytes;
  arguments.input_vector_step = lanes - plan_.form.input_rows(block) * arguments.row_step;
  arguments.output += (row - place.row) * output_row;
  arguments.output_step = arguments.output_pixel_step * plan_.column_phases;
  arguments.output_row_step = phases * output_row;
  arguments.output_vector_step -= block.outputs * arguments.output_row_step;
  const NestCode& code = *depthwise_.codes[products_.signed_input][products_.subtracts_window_sums];
  code.entry_as<jit::DepthwiseNhwcFunction>()(&arguments);
}

}  // namespace

void run_depthwise_nhwc(const BoundDepthwiseNhwc& depthwise, size_t scratch, const BoundNest& nest,
                        const CallMemory& memory) {
  const ConvolutionOutput output(depthwise.plan.geometry, nest, memory);
  const NhwcCall call = {operands_of(nest, memory), memory.scratch + scratch, &output};
  const NhwcRun run(depthwise, call);
  share_out(run, run.pieces(), memory, scratch);
}

}  // namespace castor::detail
