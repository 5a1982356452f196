// SPDX-License-Identifier: Apache-2.0
// One call of a grouped convolution whose channels lie side by side: piece by piece, slice by slice
// of the filter, block of rows by block of rows.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "ir/support/integer_math.hpp"
#include "runtime/conv/convolution.hpp"
#include "runtime/conv/convolution_call.hpp"
#include "runtime/conv/epilogue.hpp"

namespace castor::detail {

namespace {

using jit::GroupedNhwcPlan;

static_assert(max_piece_elements >= GroupedNhwcPlan::max_unit_outputs);

constexpr int64_t line_channels = GroupedNhwcPlan::line_channels;
/// Outputs of a part of a row, where rows are parted for tasks to share.
constexpr int64_t part_outputs = 16384;
/// Bytes of a piece's records at the most, if they are of several vectors: each place reads all.
constexpr int64_t max_record_bytes = 24 << 10;
/// Pieces that channels are shared out to, where there are as many.
constexpr int64_t min_pieces = 16;

/// One call: the operands of the step, and its scratch.
struct NhwcCall {
  CallOperands operands = {};
  std::byte* scratch = nullptr;
  const ConvolutionOutput* output = nullptr;
};

/// Runs calls piece by piece.
class NhwcRun {
 public:
  /// Packs what all tasks read.
  NhwcRun(const BoundGroupedNhwc& grouped, const NhwcCall& call);

  /// Pieces of the output, which tasks share out.
  int64_t pieces() const;
  /// The pieces from `begin` to `end`; `scratch` belongs to the task and is the output's.
  void run(int64_t begin, int64_t end, std::byte* scratch) const;

 private:
  /// One piece: whole rows of an image, or a part of one, and some vectors of channels.
  struct Place {
    int64_t image = 0;
    int64_t outer = 0;  ///< output position along the outer spatial axes, row-major
    int64_t row = 0;
    int64_t row_end = 0;
    int64_t unit = 0;  ///< of columns
    int64_t unit_end = 0;
    int64_t vector = 0;
    int64_t vector_end = 0;
  };

  void prepare();
  void choose_pieces();
  void choose_channels(int64_t max, int64_t pixels);
  int64_t vectors() const { return static_cast<int64_t>(plan_.vectors.size()); }
  int64_t row_pieces() const { return ceil_div(plan_.rows.output, piece_rows_); }
  int64_t column_pieces() const { return ceil_div(plan_.column_units(), piece_units_); }
  int64_t channel_pieces() const {
    return std::max<int64_t>((vectors() - (plan_.overlaps ? 1 : 0)) / piece_vectors_, 1);
  }
  /// The first channel of a piece that begins with that vector.
  int64_t channel_of(int64_t vector) const {
    return vector == vectors() ? plan_.geometry.out_channels
                               : plan_.vectors[static_cast<size_t>(vector)].channel;
  }
  Place place_of(int64_t piece) const;
  void run_place(const Place& place, std::byte* scratch) const;
  void apply_place(const Place& place, const OutputPiece& piece) const;
  jit::GroupedNhwcArguments arguments_of(const Place& place) const;
  bool run_slices(const Place& place, jit::GroupedNhwcArguments& arguments) const;
  void run_blocks(const Place& place, const KernelCode<jit::GroupedNhwcForm>& code,
                  jit::GroupedNhwcArguments& arguments) const;
  void run_block(const Place& place, int64_t row, const KernelCode<jit::GroupedNhwcForm>& code,
                 jit::GroupedNhwcArguments& arguments) const;

  const BoundGroupedNhwc& grouped_;
  const GroupedNhwcPlan& plan_;
  const NhwcCall& call_;
  DepthwiseProducts products_;
  std::span<const int32_t> records_;
  std::span<const jit::NhwcVector> vectors_;
  std::array<std::byte, jit::GroupedNhwcForm::pixel_bytes> padding_;
  int64_t images_ = 1;  ///< along the outer axes of x
  int64_t piece_rows_ = 1;
  int64_t piece_units_ = 1;
  int64_t piece_vectors_ = 1;  ///< the last piece has the rest as well
  bool in_single_rows_ = false;
};

NhwcRun::NhwcRun(const BoundGroupedNhwc& grouped, const NhwcCall& call)
    : grouped_(grouped), plan_(grouped.plan), call_(call), products_(grouped.products) {
  prepare();
  const std::byte* zero = data_of(grouped.operands.x_zero_point, call_.operands);
  padding_.fill(zero == nullptr ? std::byte{0} : *zero);
  const std::vector<ConvolutionAxis>& axes = plan_.geometry.axes;
  for (size_t axis = 0; axis + 2 < axes.size(); ++axis) images_ *= axes[axis].input;
  choose_pieces();
}

/// What is not known before the call.
void NhwcRun::prepare() {
  const ConvolutionOperands& operands = grouped_.operands;
  const int32_t* packed = grouped_.packed.data();
  std::byte* scratch = call_.scratch;
  if (grouped_.packed.empty()) {
    auto* to = reinterpret_cast<int32_t*>(scratch);
    const std::byte* zero_points = data_of(operands.w_zero_point, call_.operands);
    products_ = products_of(grouped_, call_.operands[1], zero_points);
    pack_weights(grouped_, products_, call_.operands[1], zero_points, packed_nhwc(grouped_, to));
    packed = to;
    scratch += 4 * packed_dwords(grouped_);
  }
  records_ = packed_nhwc(grouped_, packed).records;
  vectors_ = grouped_.vectors;
  if (!vectors_.empty()) return;
  auto* to = reinterpret_cast<jit::NhwcVector*>(at_next_line(scratch));
  const std::span<jit::NhwcVector> made(to, vector_count(grouped_));
  set_vectors(grouped_, products_, data_of(operands.x_zero_point, call_.operands),
              packed_nhwc(grouped_, packed).sums, made);
  vectors_ = made;
}

/// A unit of rows, or, where not even one may be had, a single row or a part of one.
void NhwcRun::choose_pieces() {
  const int64_t max = grouped_.applies_epilogue ? std::numeric_limits<int64_t>::max()
                                                : call_.output->max_elements();
  const int64_t channels = std::min(plan_.geometry.out_channels, line_channels);
  const int64_t width = plan_.columns.output;
  in_single_rows_ = plan_.unit_rows() * width > max / channels;
  piece_rows_ = in_single_rows_ ? 1 : plan_.unit_rows();
  piece_units_ = plan_.column_units();
  int64_t pixels = piece_rows_ * width;
  const int64_t wished = plan_.rows.output == 1 ? std::min(max, part_outputs) : max;
  if (pixels > wished / channels) {
    piece_units_ = std::max<int64_t>(wished / channels / plan_.unit_columns(), 1);
    pixels = std::min(piece_units_ * plan_.unit_columns(), width);
  }
  choose_channels(max, pixels);
}

/// As many as may be had; the last piece may have nearly twice as many as the others.
void NhwcRun::choose_channels(int64_t max, int64_t pixels) {
  const int64_t channels = plan_.geometry.out_channels;
  const int64_t lanes = plan_.lanes;
  const auto record_bytes = 4 * static_cast<int64_t>(record_dwords(grouped_));
  piece_vectors_ = std::clamp<int64_t>(max_record_bytes / record_bytes, 1, vectors());
  if (channels > max / pixels) {
    piece_vectors_ = std::clamp<int64_t>(max / pixels / 2 / lanes, 1, piece_vectors_);
    return;
  }
  const int64_t others =
      plan_.geometry.batch * plan_.outer_outputs * row_pieces() * column_pieces();
  if (others >= min_pieces || channels < 2 * line_channels) return;
  const int64_t lines = channels * others / min_pieces / line_channels;
  piece_vectors_ = std::min(std::max<int64_t>(lines, 1) * line_channels / lanes, piece_vectors_);
}

int64_t NhwcRun::pieces() const {
  return plan_.geometry.batch * plan_.outer_outputs * row_pieces() * column_pieces() *
         channel_pieces();
}

/// Pieces are numbered along channels first, then columns, rows, outer positions and images.
NhwcRun::Place NhwcRun::place_of(int64_t piece) const {
  const auto next = [&](int64_t extent) {
    const int64_t index = extent == 1 ? 0 : piece % extent;
    piece = extent == 1 ? piece : piece / extent;
    return index;
  };
  Place place;
  const int64_t of_channels = next(channel_pieces());
  const bool is_last = of_channels + 1 == channel_pieces();
  place.vector = of_channels * piece_vectors_;
  place.vector_end = is_last ? vectors() : place.vector + piece_vectors_;
  place.unit = next(column_pieces()) * piece_units_;
  place.unit_end = std::min(place.unit + piece_units_, plan_.column_units());
  place.row = next(row_pieces()) * piece_rows_;
  place.row_end = std::min(place.row + piece_rows_, plan_.rows.output);
  place.outer = next(plan_.outer_outputs);
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
  const int64_t channel = channel_of(place.vector);
  const OutputPiece piece = {
      .image = place.image,
      .channel = channel,
      .channels = channel_of(place.vector_end) - channel,
      .pixel = (place.outer * plan_.rows.output + place.row) * width + column,
      .pixels = (place.row_end - place.row - 1) * width + column_end - column};
  if (grouped_.applies_epilogue) return apply_place(place, piece);
  const PieceMemory to = call_.output->begin(piece, scratch);
  jit::GroupedNhwcArguments arguments = arguments_of(place);
  arguments.output_pixel_step = 4 * to.pixel_step;
  // One place ahead, where y itself is written.
  const bool is_result = call_.output->max_elements() == std::numeric_limits<int64_t>::max();
  arguments.prefetched = is_result ? plan_.unit_columns() * arguments.output_pixel_step : 0;
  // Columns are counted from the row's first one, channels from the first of all.
  arguments.output = number_of(to.data) - column * arguments.output_pixel_step - 4 * channel;
  if (!run_slices(place, arguments)) {
    for (int64_t pixel = 0; pixel < piece.pixels; ++pixel) {
      std::fill_n(to.data + pixel * to.pixel_step, piece.channels, 0);
    }
  }
  call_.output->end(piece, scratch);
}

/// By kernels that apply the epilogue: outputs are numbers of pixels.
void NhwcRun::apply_place(const Place& place, const OutputPiece& piece) const {
  std::array<jit::EpilogueOperand, jit::max_tile_operands + 1> operands;
  call_.output->find_operands(piece, operands.data());
  jit::GroupedNhwcArguments arguments = arguments_of(place);
  arguments.epilogue = operands.data();
  arguments.first_channel = piece.channel;
  arguments.output_pixel_step = 1;
  arguments.prefetched = plan_.unit_columns();
  arguments.output = -place.unit * plan_.unit_columns();
  run_slices(place, arguments);
}

/// What is the same for all blocks of a piece.
jit::GroupedNhwcArguments NhwcRun::arguments_of(const Place& place) const {
  const int64_t channels = plan_.geometry.channels;
  jit::GroupedNhwcArguments arguments;
  arguments.pixel_step = plan_.column_step * channels;
  arguments.row_step = plan_.row_step * plan_.columns.input * channels;
  const int64_t units = plan_.column_phases;
  const auto places = static_cast<int64_t>(plan_.places.size());
  arguments.places = plan_.places.data() + place.unit * units;
  arguments.places_end = plan_.places.data() + std::min(place.unit_end * units, places);
  arguments.padding = padding_.data();
  return arguments;
}

/// All slices of the filter, one after the other; false where all lie in padding. Arguments are set
/// where they are, and set back: a copy would have to wait for all stores in front of it.
bool NhwcRun::run_slices(const Place& place, jit::GroupedNhwcArguments& arguments) const {
  const ConvolutionGeometry& geometry = plan_.geometry;
  const int64_t image = plan_.rows.input * plan_.columns.input * geometry.channels;
  const auto record = static_cast<int64_t>(record_dwords(grouped_));
  bool is_begun = false;
  for (int64_t slice = 0; slice < plan_.slices; ++slice) {
    const std::optional<int64_t> outer = outer_position(geometry, place.outer, slice);
    if (!outer) continue;
    const int64_t vector = slice * vectors() + place.vector;
    arguments.input = call_.operands[0] + (place.image * images_ + *outer) * image;
    arguments.weights = records_.data() + vector * record;
    arguments.vectors = vectors_.data() + vector;
    arguments.vectors_end = arguments.vectors + (place.vector_end - place.vector);
    run_blocks(place,
               *grouped_.codes[products_.signed_input][products_.subtracts_window_sums][is_begun],
               arguments);
    is_begun = true;
  }
  return is_begun;
}

void NhwcRun::run_blocks(const Place& place, const KernelCode<jit::GroupedNhwcForm>& code,
                         jit::GroupedNhwcArguments& arguments) const {
  const int64_t phases = in_single_rows_ ? 1 : plan_.row_phases;
  for (int64_t row = place.row; row < std::min(place.row + phases, place.row_end); ++row) {
    run_block(place, row, code, arguments);
  }
}

/// The rows of a piece from one on that belong together.
void NhwcRun::run_block(const Place& place, int64_t row,
                        const KernelCode<jit::GroupedNhwcForm>& code,
                        jit::GroupedNhwcArguments& arguments) const {
  const int64_t phases = in_single_rows_ ? 1 : plan_.row_phases;
  const jit::GroupedNhwcBlock block = plan_.block_at(row, ceil_div(place.row_end - row, phases));
  const int64_t row_bytes = plan_.columns.input * plan_.geometry.channels;
  const int64_t output_row = arguments.output_pixel_step * plan_.columns.output;
  arguments.block = static_cast<int64_t>(plan_.number_of(block));
  const int64_t input = (row * plan_.rows.stride - plan_.rows.pad_begin) * row_bytes;
  const int64_t output = (row - place.row) * output_row;
  arguments.input += input;
  arguments.output += output;
  arguments.output_step = arguments.output_pixel_step * plan_.column_phases;
  arguments.output_row_step = phases * output_row;
  code.call(&arguments);
  arguments.input -= input;
  arguments.output -= output;
}

}  // namespace

void run_grouped_nhwc(const BoundGroupedNhwc& grouped, size_t scratch, const ConvolutionStep& step,
                      const CallMemory& memory) {
  const ConvolutionOutput output(grouped.plan.geometry, step, memory);
  const NhwcCall call = {operands_of(step, memory), memory.scratch + scratch, &output};
  const NhwcRun run(grouped, call);
  share_out(run, run.pieces(), max_tasks(memory, step.nanoseconds), memory, scratch);
}

}  // namespace castor::detail
