// SPDX-License-Identifier: Apache-2.0
// One call of a depthwise convolution in NCHW: piece by piece, slice by slice of the filter. A
// kernel walks over all channels of a piece, and in each over a list of blocks of rows.
#include "runtime/conv/sliding_run.hpp"

namespace castor::detail {

namespace {

using jit::DepthwisePlan;

static_assert(max_piece_elements >= DepthwisePlan::max_block_outputs);

/// Outputs of one plane: rows, and entries of column positions as each band counts them.
struct PlanePart {
  int64_t row = 0;
  int64_t row_end = 0;
  size_t columns = 0;
  size_t columns_end = 0;
  bool is_whole_row = true;  ///< then all entries of each band are meant
};

/// How kernels write.
struct Writes {
  int64_t output_bytes = 4;  ///< 1: outputs are counted, for an epilogue
  bool prefetches = false;
};

/// Blocks as kernels take them, and where they end: bytes from the image and from the part's first
/// row of outputs.
struct BlockList {
  std::array<jit::DepthwiseBlocks, DepthwisePlan::max_bands> blocks;
  size_t count = 0;
  int64_t input_end = 0;
  int64_t output_end = 0;

  /// Lists the blocks of a part. Its rows begin and end where blocks do.
  void set(const DepthwisePlan& plan, const PlanePart& part, const Writes& writes) {
    count = 0;
    input_end = 0;
    output_end = 0;
    for (const jit::DepthwiseBand& band : plan.bands) add(plan, band, part, writes);
  }

 private:
  /// The blocks of a band that are in the part.
  void add(const DepthwisePlan& plan, const jit::DepthwiseBand& band, const PlanePart& part,
           const Writes& writes);
};

/// How many of `count` numbers, beginning at `first` and `step` apart, are below `end`.
int64_t count_below(int64_t first, int64_t step, int64_t count, int64_t end) {
  return end <= first ? 0 : std::min(count, ceil_div(end - first, step));
}

void BlockList::add(const DepthwisePlan& plan, const jit::DepthwiseBand& band,
                    const PlanePart& part, const Writes& writes) {
  const jit::SlidingBlock& block = plan.form.blocks[band.block];
  const int64_t rows = block.outputs * plan.output_step();
  const int64_t begin = count_below(band.row, rows, band.blocks, part.row);
  const int64_t end = count_below(band.row, rows, band.blocks, part.row_end);
  if (begin >= end) return;
  const int64_t row = band.row + begin * rows;
  const int64_t output_row = writes.output_bytes * plan.columns.output;
  const int64_t input = (row * plan.rows.stride - plan.rows.pad_begin) * plan.columns.input;
  const int64_t output = (row - part.row) * output_row;
  const jit::DepthwiseColumns* columns = plan.columns_of_bands.data() + band.first_columns;
  jit::DepthwiseBlocks& to = blocks[count++];
  to = {.block = static_cast<int64_t>(band.block),
        .count = end - begin,
        .input = input - input_end,
        .output = output - output_end,
        .input_block_step = rows * plan.rows.stride * plan.columns.input,
        .output_block_step = rows * output_row,
        .input_column_step =
            plan.lanes * plan.columns.stride - plan.form.input_rows(block) * plan.row_step,
        .output_column_step = writes.output_bytes * plan.lanes - rows * output_row,
        .columns = columns + part.columns,
        .columns_end = columns + (part.is_whole_row ? band.columns : part.columns_end),
        .rows_loaded = plan.rows_loaded.data() + band.first_rows_loaded};
  if (writes.prefetches) {
    const int outputs = std::min(block.outputs, DepthwisePlan::max_prefetched);
    to.prefetched = outputs * plan.output_step() * output_row;
  }
  input_end = input + to.count * to.input_block_step;
  output_end = output + to.count * to.output_block_step;
}

/// One piece, or several that are joined: output channels of an image, and a part of their planes,
/// or all.
struct PlanePiece {
  int64_t image = 0;
  int64_t channel = 0;
  int64_t channels = 0;
  int64_t outer = 0;  ///< output position along the outer spatial axes, row-major
  PlanePart part;
};

/// Runs calls piece by piece. Allocates nothing.
class NchwRun : SlidingRun<DepthwisePlan> {
 public:
  NchwRun(const Bound& bound, size_t scratch, const ConvolutionStep& step, const CallMemory& memory)
      : SlidingRun(bound, scratch, step, memory) {
    for (const ConvolutionAxis& axis : plan_.geometry.axes) pixels_ *= axis.input;
    choose_pieces();
    plane_.set(plan_, {.row_end = plan_.rows.output}, writes_);
  }

  /// Pieces of the output, which tasks share out.
  int64_t pieces() const {
    return plan_.geometry.batch * channel_pieces() * plan_.outer_outputs * plane_pieces();
  }
  /// The pieces from `begin` to `end`; `scratch` belongs to the task and is the output's.
  void run(int64_t begin, int64_t end, std::byte* scratch) const;

 private:
  void choose_pieces();
  int64_t row_pieces() const { return ceil_div(plan_.rows.output, piece_rows_); }
  int64_t column_pieces() const {
    return splits_rows_ ? static_cast<int64_t>(plan_.bands[0].columns) : 1;
  }
  int64_t plane_pieces() const { return row_pieces() * column_pieces(); }
  /// With several output channels for one of x, each piece is of one of x.
  int64_t multiplier() const { return plan_.geometry.group_out_channels(); }
  /// Channels that a piece may have any of.
  int64_t joined_channels() const {
    return multiplier() == 1 ? plan_.geometry.out_channels : multiplier();
  }
  int64_t channel_pieces() const {
    return plan_.geometry.out_channels / joined_channels() *
           ceil_div(joined_channels(), piece_channels_);
  }
  PlanePiece piece_of(int64_t number) const;
  int64_t join_pieces(PlanePiece& piece, int64_t number, int64_t end) const;
  /// Of the outputs at an entry of columns; after all entries, the width.
  int64_t first_column(size_t columns) const {
    const bool is_end = columns == plan_.bands[0].columns;
    return is_end ? plan_.columns.output : plan_.columns_of_bands[columns].output / 4;
  }
  void run_blocks(const PlanePiece& piece, const BlockList& blocks, std::byte* scratch) const;
  jit::DepthwiseArguments arguments_for(const BlockList& blocks) const;

  int64_t pixels_ = 1;  ///< of a channel of x
  int64_t piece_channels_ = 1;
  int64_t piece_rows_ = 1;
  bool splits_rows_ = false;   ///< whether a piece is a part of a row: one entry of columns
  bool joins_pieces_ = false;  ///< whether planes that follow each other are done in one call
  Writes writes_;
  BlockList plane_;  ///< of a whole plane
};

/// Planes of several channels, or rows of one, or, where not even one may be had, a part of a row.
void NchwRun::choose_pieces() {
  const int64_t max = max_elements();
  const int64_t plane = plan_.plane_outputs();
  const int64_t width = plan_.columns.output;
  const int64_t wished = std::min(max, shared_outputs);
  writes_ = {.output_bytes = bound_.applies_epilogue ? 1 : 4, .prefetches = max == any_elements};
  joins_pieces_ =
      multiplier() == 1 && plan_.outer_outputs == 1 && plan_.slices == 1 && max == any_elements;
  piece_rows_ = plan_.rows.output;
  if (plane <= wished) {
    piece_channels_ = std::clamp<int64_t>(plan_.geometry.out_channels / min_pieces, 1,
                                          std::min(joined_channels(), wished / plane));
  } else {
    const int64_t unit = plan_.unit_rows();
    splits_rows_ = unit * width > wished;
    piece_rows_ = splits_rows_ ? 1 : wished / (unit * width) * unit;
  }
}

/// Pieces are numbered along columns first, then rows, outer positions, channels and images.
PlanePiece NchwRun::piece_of(int64_t number) const {
  PieceIndex index(number);
  PlanePiece piece;
  PlanePart& part = piece.part;
  part.is_whole_row = !splits_rows_;
  part.columns = static_cast<size_t>(index.next(column_pieces()));
  part.columns_end = splits_rows_ ? part.columns + 1 : plan_.bands[0].columns;
  part.row = index.next(row_pieces()) * piece_rows_;
  part.row_end = std::min(part.row + piece_rows_, plan_.rows.output);
  piece.outer = index.next(plan_.outer_outputs);
  const int64_t channels = joined_channels();
  const int64_t first = index.next(ceil_div(channels, piece_channels_)) * piece_channels_;
  piece.channel = index.next(plan_.geometry.out_channels / channels) * channels + first;
  piece.channels = std::min(piece_channels_, channels - first);
  piece.image = index.rest();
  return piece;
}

void NchwRun::run(int64_t begin, int64_t end, std::byte* scratch) const {
  std::optional<BlockList> own;  // of parts of planes
  for (int64_t number = begin; number < end;) {
    PlanePiece piece = piece_of(number);
    number += join_pieces(piece, number, end);
    if (piece.part.is_whole_row && piece.part.row_end - piece.part.row == plan_.rows.output) {
      run_blocks(piece, plane_, scratch);
      continue;
    }
    if (!own) own.emplace();
    own->set(plan_, piece.part, writes_);
    run_blocks(piece, *own, scratch);
  }
}

/// Lets a piece have those that follow it as well, where they make up whole planes of channels side
/// by side. Returns how many it has then. Between two calls of a kernel stores come to a stop.
int64_t NchwRun::join_pieces(PlanePiece& piece, int64_t number, int64_t end) const {
  const int64_t in_plane = plane_pieces();
  const int64_t planes = (end - number) / in_plane;
  if (!joins_pieces_ || number % in_plane != 0 || planes == 0) return 1;
  const int64_t left = channel_pieces() - number / in_plane % channel_pieces();
  const int64_t pieces = std::min(planes, left);
  piece.part = {.row_end = plan_.rows.output, .columns_end = plan_.bands[0].columns};
  piece.channels = std::min(pieces * piece_channels_, plan_.geometry.out_channels - piece.channel);
  return pieces * in_plane;
}

void NchwRun::run_blocks(const PlanePiece& piece, const BlockList& blocks,
                         std::byte* scratch) const {
  const ConvolutionGeometry& geometry = plan_.geometry;
  const PlanePart& part = piece.part;
  const int64_t width = plan_.columns.output;
  const int64_t column = first_column(part.columns);
  const int64_t column_end = first_column(part.columns_end);
  const OutputPiece of = {.image = piece.image,
                          .channel = piece.channel,
                          .channels = piece.channels,
                          .pixel = piece.outer * plan_.plane_outputs() + part.row * width + column,
                          .pixels = (part.row_end - part.row - 1) * width + column_end - column};
  const int64_t channel = piece.image * geometry.channels + piece.channel / multiplier();
  jit::DepthwiseArguments arguments = arguments_for(blocks);
  run_piece(of, scratch, [&](const PieceMemory& to, const jit::EpilogueOperand* operands) {
    // Columns are counted from the row's first one; with an epilogue from the piece's first output.
    arguments.epilogue = operands;
    arguments.output = number_of(to.data) - writes_.output_bytes * column;
    arguments.output_channel_step =
        (operands == nullptr ? 4 * to.channel_step : 0) - blocks.output_end;
    const auto run = [&](int64_t outer, const int32_t* starts, const Code& code) {
      arguments.input = operands_[0] + outer * plan_.plane_inputs() + channel * pixels_;
      arguments.weights_end = arguments.weights + piece.channels * panel_dwords_;
      arguments.start = starts;
      code.call(&arguments);
    };
    return run_slices(piece.outer, piece.channel, arguments, run);
  });
}

jit::DepthwiseArguments NchwRun::arguments_for(const BlockList& blocks) const {
  jit::DepthwiseArguments arguments;
  arguments.padding = std::to_integer<uint64_t>(padding()) * uint64_t{0x0101010101010101};
  arguments.input_row_step = plan_.row_step;
  arguments.input_channel_step = (multiplier() == 1 ? pixels_ : 0) - blocks.input_end;
  arguments.output_row_step = writes_.output_bytes * plan_.output_step() * plan_.columns.output;
  arguments.blocks = blocks.blocks.data();
  arguments.blocks_end = arguments.blocks + blocks.count;
  return arguments;
}

}  // namespace

void run_depthwise(const BoundDepthwise& bound, size_t scratch, const ConvolutionStep& step,
                   const CallMemory& memory) {
  const NchwRun run(bound, scratch, step, memory);
  share_out(run, run.pieces(), max_tasks(memory, step.nanoseconds), memory, scratch);
}

}  // namespace castor::detail
