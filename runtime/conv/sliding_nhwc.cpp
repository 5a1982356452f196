// SPDX-License-Identifier: Apache-2.0
// One call of a depthwise or grouped convolution in NHWC: piece by piece, slice by slice of the
// filter, block of rows by block of rows.
#include "runtime/conv/sliding_run.hpp"

namespace castor::detail {

namespace {

using jit::GroupedNhwcPlan;

static_assert(max_piece_elements >= GroupedNhwcPlan::max_unit_outputs);

constexpr int64_t line_channels = GroupedNhwcPlan::line_channels;
/// Bytes of a piece's panels at the most, if they are of several vectors: each place reads all.
constexpr int64_t max_panel_bytes = 24 << 10;

/// One piece: whole rows of an image, or a part of one, and some vectors of channels.
struct RowPiece {
  int64_t image = 0;
  int64_t outer = 0;  ///< output position along the outer spatial axes, row-major
  int64_t row = 0;
  int64_t row_end = 0;
  int64_t unit = 0;  ///< of columns
  int64_t unit_end = 0;
  int64_t vector = 0;
  int64_t vector_end = 0;
};

/// Runs calls piece by piece. Allocates nothing.
class NhwcRun : SlidingRun<GroupedNhwcPlan> {
 public:
  NhwcRun(const Bound& bound, size_t scratch, const ConvolutionStep& step, const CallMemory& memory)
      : SlidingRun(bound, scratch, step, memory) {
    padding_.fill(padding());
    const std::vector<ConvolutionAxis>& axes = plan_.geometry.axes;
    for (size_t axis = 0; axis + 2 < axes.size(); ++axis) images_ *= axes[axis].input;
    choose_pieces();
  }

  /// Pieces of the output, which tasks share out.
  int64_t pieces() const {
    return plan_.geometry.batch * plan_.outer_outputs * row_pieces() * column_pieces() *
           channel_pieces();
  }
  /// The pieces from `begin` to `end`; `scratch` belongs to the task and is the output's.
  void run(int64_t begin, int64_t end, std::byte* scratch) const {
    for (int64_t number = begin; number < end; ++number) run_rows(piece_of(number), scratch);
  }

 private:
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
  RowPiece piece_of(int64_t number) const;
  void run_rows(const RowPiece& piece, std::byte* scratch) const;
  jit::GroupedNhwcArguments arguments_of(const RowPiece& piece) const;
  void run_blocks(const RowPiece& piece, const Code& code,
                  jit::GroupedNhwcArguments& arguments) const;

  std::array<std::byte, jit::GroupedNhwcForm::pixel_bytes> padding_;
  int64_t images_ = 1;  ///< along the outer axes of x
  int64_t piece_rows_ = 1;
  int64_t piece_units_ = 1;
  int64_t piece_vectors_ = 1;  ///< the last piece has the rest as well
  bool in_single_rows_ = false;
};

/// A unit of rows, or, where not even one may be had, a single row or a part of one.
void NhwcRun::choose_pieces() {
  const int64_t max = max_elements();
  const int64_t channels = std::min(plan_.geometry.out_channels, line_channels);
  const int64_t width = plan_.columns.output;
  in_single_rows_ = plan_.unit_rows() * width > max / channels;
  piece_rows_ = in_single_rows_ ? 1 : plan_.unit_rows();
  piece_units_ = plan_.column_units();
  int64_t pixels = piece_rows_ * width;
  const int64_t wished = plan_.rows.output == 1 ? std::min(max, shared_outputs) : max;
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
  const int64_t panel_bytes = 4 * panel_dwords_;
  piece_vectors_ = std::clamp<int64_t>(max_panel_bytes / panel_bytes, 1, vectors());
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

/// Pieces are numbered along channels first, then columns, rows, outer positions and images.
RowPiece NhwcRun::piece_of(int64_t number) const {
  PieceIndex index(number);
  RowPiece piece;
  const int64_t of_channels = index.next(channel_pieces());
  const bool is_last = of_channels + 1 == channel_pieces();
  piece.vector = of_channels * piece_vectors_;
  piece.vector_end = is_last ? vectors() : piece.vector + piece_vectors_;
  piece.unit = index.next(column_pieces()) * piece_units_;
  piece.unit_end = std::min(piece.unit + piece_units_, plan_.column_units());
  piece.row = index.next(row_pieces()) * piece_rows_;
  piece.row_end = std::min(piece.row + piece_rows_, plan_.rows.output);
  piece.outer = index.next(plan_.outer_outputs);
  piece.image = index.rest();
  return piece;
}

void NhwcRun::run_rows(const RowPiece& piece, std::byte* scratch) const {
  const int64_t width = plan_.columns.output;
  const int64_t column = piece.unit * plan_.unit_columns();
  const int64_t column_end = std::min(piece.unit_end * plan_.unit_columns(), width);
  const int64_t channel = channel_of(piece.vector);
  const int64_t image = plan_.rows.input * plan_.columns.input * plan_.geometry.channels;
  const OutputPiece of = {.image = piece.image,
                          .channel = channel,
                          .channels = channel_of(piece.vector_end) - channel,
                          .pixel = (piece.outer * plan_.rows.output + piece.row) * width + column,
                          .pixels = (piece.row_end - piece.row - 1) * width + column_end - column};
  jit::GroupedNhwcArguments arguments = arguments_of(piece);
  run_piece(of, scratch, [&](const PieceMemory& to, const jit::EpilogueOperand* operands) {
    // Columns are counted from the row's first one, channels from the first of all; with an
    // epilogue outputs are numbers of pixels.
    const bool applies = operands != nullptr;
    arguments.epilogue = operands;
    arguments.first_channel = applies ? channel : 0;
    arguments.output_pixel_step = applies ? 1 : 4 * to.pixel_step;
    arguments.output = number_of(to.data) - column * arguments.output_pixel_step;
    if (!applies) arguments.output -= 4 * channel;
    // One place ahead, where results themselves are written.
    arguments.prefetched =
        max_elements() == any_elements ? plan_.unit_columns() * arguments.output_pixel_step : 0;
    const auto run = [&](int64_t outer, const jit::NhwcVector* vectors, const Code& code) {
      arguments.input = operands_[0] + (piece.image * images_ + outer) * image;
      arguments.vectors = vectors;
      arguments.vectors_end = vectors + (piece.vector_end - piece.vector);
      run_blocks(piece, code, arguments);
    };
    return run_slices(piece.outer, piece.vector, arguments, run);
  });
}

/// What is the same for all blocks of a piece.
jit::GroupedNhwcArguments NhwcRun::arguments_of(const RowPiece& piece) const {
  const int64_t channels = plan_.geometry.channels;
  jit::GroupedNhwcArguments arguments;
  arguments.pixel_step = plan_.column_step * channels;
  arguments.row_step = plan_.row_step * plan_.columns.input * channels;
  const int64_t units = plan_.column_phases;
  const auto places = static_cast<int64_t>(plan_.places.size());
  arguments.places = plan_.places.data() + piece.unit * units;
  arguments.places_end = plan_.places.data() + std::min(piece.unit_end * units, places);
  arguments.padding = padding_.data();
  return arguments;
}

/// The rows of a piece, those of a phase together. Arguments are set back.
void NhwcRun::run_blocks(const RowPiece& piece, const Code& code,
                         jit::GroupedNhwcArguments& arguments) const {
  const int64_t phases = in_single_rows_ ? 1 : plan_.row_phases;
  const int64_t row_bytes = plan_.columns.input * plan_.geometry.channels;
  const int64_t output_row = arguments.output_pixel_step * plan_.columns.output;
  arguments.output_step = arguments.output_pixel_step * plan_.column_phases;
  arguments.output_row_step = phases * output_row;
  for (int64_t row = piece.row; row < std::min(piece.row + phases, piece.row_end); ++row) {
    const int64_t outputs = ceil_div(piece.row_end - row, phases);
    const jit::SlidingBlock block = plan_.block_at(row, outputs);
    arguments.block = static_cast<int64_t>(plan_.number_of(block));
    const int64_t input = (row * plan_.rows.stride - plan_.rows.pad_begin) * row_bytes;
    const int64_t output = (row - piece.row) * output_row;
    arguments.input += input;
    arguments.output += output;
    code.call(&arguments);
    arguments.input -= input;
    arguments.output -= output;
  }
}

}  // namespace

void run_grouped_nhwc(const BoundGroupedNhwc& bound, size_t scratch, const ConvolutionStep& step,
                      const CallMemory& memory) {
  const NhwcRun run(bound, scratch, step, memory);
  share_out(run, run.pieces(), max_tasks(memory, step.nanoseconds), memory, scratch);
}

}  // namespace castor::detail
