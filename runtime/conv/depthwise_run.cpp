// SPDX-License-Identifier: Apache-2.0
// One call of a depthwise convolution: piece by piece, slice by slice of the filter, block by
// block.
#include <algorithm>
#include <array>
#include <optional>

#include "ir/support/integer_math.hpp"
#include "runtime/conv/convolution.hpp"
#include "runtime/conv/convolution_call.hpp"
#include "runtime/conv/epilogue.hpp"

namespace castor::detail {

namespace {

static_assert(max_piece_elements >= jit::DepthwisePlan::max_block_outputs);

/// Outputs of a piece: many for what it costs to begin one, few enough for tasks to share.
constexpr int64_t piece_outputs = 16384;
/// Pieces that channels are shared out to, where there are that many.
constexpr int64_t min_pieces = 16;

/// One call: the operands of the step, and its scratch of `scratch_bytes`.
struct DepthwiseCall {
  CallOperands operands = {};
  std::byte* scratch = nullptr;
  const ConvolutionOutput* output = nullptr;
};

/// Runs calls piece by piece. Allocates nothing.
class DepthwiseRun {
 public:
  /// Packs what all tasks read.
  DepthwiseRun(const BoundDepthwise& depthwise, const DepthwiseCall& call);

  /// Pieces of the output, which tasks share out.
  int64_t pieces() const;
  /// The pieces from `begin` to `end`; `scratch` belongs to the task and is the output's.
  void run(int64_t begin, int64_t end, std::byte* scratch) const;

 private:
  /// One piece, or several that are joined: output channels of an image, and a part of their
  /// planes, or all.
  struct Place {
    int64_t image = 0;
    int64_t channel = 0;
    int64_t channels = 0;
    int64_t outer = 0;  ///< output position along the outer spatial axes, row-major
    DepthwisePart part;
  };

  int64_t max_elements() const;
  void choose_pieces();
  int64_t row_pieces() const;
  int64_t column_pieces() const;
  int64_t channel_pieces() const;
  int64_t plane_pieces() const { return row_pieces() * column_pieces(); }
  bool is_plane(const Place& place) const {
    return place.part.is_whole_row && place.part.row_end - place.part.row == plan_.rows.output;
  }
  Place place_of(int64_t piece) const;
  int64_t join_pieces(Place& place, int64_t piece, int64_t end) const;
  void run_place(const Place& place, const DepthwiseBlockList& blocks, std::byte* scratch) const;
  void run_blocks(const Place& place, const DepthwiseBlockList& blocks,
                  const PieceMemory& to) const;
  void apply_blocks(const Place& place, const DepthwiseBlockList& blocks,
                    const OutputPiece& piece) const;
  jit::DepthwiseArguments arguments_for(const DepthwiseBlockList& blocks) const;
  void clear(const Place& place, const PieceMemory& to) const;
  bool run_slice(const Place& place, int64_t slice, bool adds,
                 jit::DepthwiseArguments& arguments) const;
  int64_t first_column(size_t columns) const;

  const BoundDepthwise& depthwise_;
  const jit::DepthwisePlan& plan_;
  const DepthwiseCall& call_;
  DepthwiseProducts products_;
  DepthwiseWeights<const int32_t> weights_;
  std::span<const int32_t> starts_;
  int64_t pixels_ = 1;  ///< of a channel of x
  int64_t piece_channels_ = 1;
  int64_t piece_rows_ = 1;
  bool splits_rows_ = false;   ///< whether a piece is a part of a row: one entry of columns
  bool joins_pieces_ = false;  ///< whether planes that follow each other are done in one call
  DepthwiseWrites writes_;
  DepthwiseBlockList plane_;  ///< of a whole plane
};

DepthwiseRun::DepthwiseRun(const BoundDepthwise& depthwise, const DepthwiseCall& call)
    : depthwise_(depthwise), plan_(depthwise.plan), call_(call), products_(depthwise.products) {
  auto* scratch = reinterpret_cast<int32_t*>(call.scratch);
  const int32_t* packed = depthwise.packed.data();
  if (depthwise.packed.empty()) {
    const std::byte* zero_points = data_of(depthwise.operands.w_zero_point, call_.operands);
    products_ = products_of(depthwise, call_.operands[1], zero_points);
    pack_weights(depthwise, products_, call_.operands[1], zero_points,
                 depthwise_weights(depthwise, scratch));
    packed = scratch;
    scratch += packed_dwords(depthwise);
  }
  weights_ = depthwise_weights(depthwise, packed);
  starts_ = depthwise.starts;
  if (starts_.empty()) {
    const std::span<int32_t> starts(scratch, weights_.sums.size());
    set_starts(depthwise, products_, data_of(depthwise.operands.x_zero_point, call_.operands),
               weights_.sums, starts);
    starts_ = starts;
  }
  for (const ConvolutionAxis& axis : plan_.geometry.axes) pixels_ *= axis.input;
  choose_pieces();
  list_blocks(plan_, {.row_end = plan_.rows.output}, writes_, plane_);
}

int64_t DepthwiseRun::max_elements() const {
  return depthwise_.applies_epilogue ? std::numeric_limits<int64_t>::max()
                                     : call_.output->max_elements();
}

/// Planes of several channels, or rows of one, or, where not even one may be had, a part of a row.
void DepthwiseRun::choose_pieces() {
  const ConvolutionGeometry& geometry = plan_.geometry;
  const int64_t max = max_elements();
  const int64_t plane = plan_.plane_outputs();
  const int64_t width = plan_.columns.output;
  const int64_t multiplier = geometry.group_out_channels();
  const int64_t wished = std::min(max, piece_outputs);
  writes_ = {.output_bytes = depthwise_.applies_epilogue ? 1 : 4,
             .prefetches = max == std::numeric_limits<int64_t>::max()};
  joins_pieces_ = multiplier == 1 && plan_.outer_outputs == 1 && plan_.slices == 1 &&
                  max == std::numeric_limits<int64_t>::max();
  piece_rows_ = plan_.rows.output;
  if (plane <= wished) {
    const int64_t channels = multiplier == 1 ? geometry.channels : multiplier;
    piece_channels_ = std::clamp<int64_t>(geometry.out_channels / min_pieces, 1,
                                          std::min(channels, wished / plane));
  } else {
    const int64_t unit = plan_.unit_rows();
    splits_rows_ = unit * width > wished;
    piece_rows_ = splits_rows_ ? 1 : wished / (unit * width) * unit;
  }
}

int64_t DepthwiseRun::row_pieces() const { return ceil_div(plan_.rows.output, piece_rows_); }

int64_t DepthwiseRun::column_pieces() const {
  return splits_rows_ ? static_cast<int64_t>(plan_.bands[0].columns) : 1;
}

/// With several output channels for one of x, each piece is of one of x.
int64_t DepthwiseRun::channel_pieces() const {
  const int64_t multiplier = plan_.geometry.group_out_channels();
  if (multiplier == 1) return ceil_div(plan_.geometry.channels, piece_channels_);
  return plan_.geometry.groups * ceil_div(multiplier, piece_channels_);
}

int64_t DepthwiseRun::pieces() const {
  return plan_.geometry.batch * channel_pieces() * plan_.outer_outputs * row_pieces() *
         column_pieces();
}

/// Pieces are numbered along columns first, then rows, outer positions, channels and images.
DepthwiseRun::Place DepthwiseRun::place_of(int64_t piece) const {
  const auto next = [&](int64_t extent) {
    const int64_t index = extent == 1 ? 0 : piece % extent;
    piece = extent == 1 ? piece : piece / extent;
    return index;
  };
  Place place;
  DepthwisePart& part = place.part;
  part.is_whole_row = !splits_rows_;
  part.columns = static_cast<size_t>(next(column_pieces()));
  part.columns_end = splits_rows_ ? part.columns + 1 : plan_.bands[0].columns;
  part.row = next(row_pieces()) * piece_rows_;
  part.row_end = std::min(part.row + piece_rows_, plan_.rows.output);
  place.outer = next(plan_.outer_outputs);
  const int64_t multiplier = plan_.geometry.group_out_channels();
  const int64_t channels = multiplier == 1 ? plan_.geometry.channels : multiplier;
  const int64_t first = next(ceil_div(channels, piece_channels_)) * piece_channels_;
  place.channel = next(plan_.geometry.out_channels / channels) * channels + first;
  place.channels = std::min(piece_channels_, channels - first);
  place.image = piece;
  return place;
}

void DepthwiseRun::run(int64_t begin, int64_t end, std::byte* scratch) const {
  std::optional<DepthwiseBlockList> own;  // of parts of planes
  for (int64_t piece = begin; piece < end;) {
    Place place = place_of(piece);
    piece += join_pieces(place, piece, end);
    if (is_plane(place)) {
      run_place(place, plane_, scratch);
      continue;
    }
    if (!own) own.emplace();
    list_blocks(plan_, place.part, writes_, *own);
    run_place(place, *own, scratch);
  }
}

/// Lets the place of a piece have those that follow it as well, where they make up whole planes of
/// channels side by side. Returns how many pieces it has then. Between two calls of a kernel stores
/// come to a stop.
int64_t DepthwiseRun::join_pieces(Place& place, int64_t piece, int64_t end) const {
  const int64_t in_plane = plane_pieces();
  const int64_t planes = (end - piece) / in_plane;
  if (!joins_pieces_ || piece % in_plane != 0 || planes == 0) return 1;
  const int64_t pieces = std::min(planes, channel_pieces() - piece / in_plane % channel_pieces());
  place.part = {.row_end = plan_.rows.output, .columns_end = plan_.bands[0].columns};
  const int64_t left = plan_.geometry.out_channels - place.channel;
  place.channels = std::min(pieces * piece_channels_, left);
  return pieces * in_plane;
}

/// Of the outputs at an entry of columns; behind all entries, the width.
int64_t DepthwiseRun::first_column(size_t columns) const {
  const bool is_behind = columns == plan_.bands[0].columns;
  return is_behind ? plan_.columns.output : plan_.columns_of_bands[columns].output / 4;
}

void DepthwiseRun::run_place(const Place& place, const DepthwiseBlockList& blocks,
                             std::byte* scratch) const {
  const DepthwisePart& part = place.part;
  const int64_t width = plan_.columns.output;
  const int64_t column = first_column(part.columns);
  const int64_t column_end = first_column(part.columns_end);
  OutputPiece piece = {.image = place.image,
                       .channel = place.channel,
                       .channels = place.channels,
                       .pixel = place.outer * plan_.plane_outputs() + part.row * width + column,
                       .pixels = (part.row_end - part.row - 1) * width + column_end - column};
  // Columns are counted from the row's first one.
  if (depthwise_.applies_epilogue) {
    piece.pixel -= column;
    return apply_blocks(place, blocks, piece);
  }
  PieceMemory to = call_.output->begin(piece, scratch);
  to.data -= column;
  run_blocks(place, blocks, to);
  call_.output->end(piece, scratch);
}

jit::DepthwiseArguments DepthwiseRun::arguments_for(const DepthwiseBlockList& blocks) const {
  jit::DepthwiseArguments arguments;
  const std::byte* zero = data_of(depthwise_.operands.x_zero_point, call_.operands);
  arguments.padding =
      zero == nullptr ? 0 : static_cast<uint8_t>(*zero) * uint64_t{0x0101010101010101};
  arguments.input_row_step = plan_.row_step;
  const bool one_to_one = plan_.geometry.group_out_channels() == 1;
  arguments.input_channel_step = (one_to_one ? pixels_ : 0) - blocks.input_end;
  arguments.output_row_step = writes_.output_bytes * plan_.output_step() * plan_.columns.output;
  arguments.blocks = blocks.blocks.data();
  arguments.blocks_end = arguments.blocks + blocks.count;
  return arguments;
}

/// All slices of the filter, one after the other. Where all lie in padding, results are 0.
void DepthwiseRun::run_blocks(const Place& place, const DepthwiseBlockList& blocks,
                              const PieceMemory& to) const {
  jit::DepthwiseArguments arguments = arguments_for(blocks);
  arguments.output = to.data;
  arguments.output_channel_step = 4 * to.channel_step - blocks.output_end;
  bool is_begun = false;
  for (int64_t slice = 0; slice < plan_.slices; ++slice) {
    is_begun |= run_slice(place, slice, is_begun, arguments);
  }
  if (!is_begun) clear(place, to);
}

/// By kernels that apply the epilogue; the filter has one slice.
void DepthwiseRun::apply_blocks(const Place& place, const DepthwiseBlockList& blocks,
                                const OutputPiece& piece) const {
  std::array<jit::EpilogueOperand, jit::max_tile_operands + 1> operands;
  call_.output->find_operands(piece, operands.data());
  jit::DepthwiseArguments arguments = arguments_for(blocks);
  arguments.epilogue = operands.data();
  arguments.output_channel_step = -blocks.output_end;
  run_slice(place, 0, false, arguments);
}

void DepthwiseRun::clear(const Place& place, const PieceMemory& to) const {
  const DepthwisePart& part = place.part;
  const int64_t width = plan_.columns.output;
  const int64_t column = first_column(part.columns);
  const int64_t column_end = first_column(part.columns_end);
  for (int64_t m = 0; m < place.channels; ++m) {
    for (int64_t row = 0; row < part.row_end - part.row; ++row) {
      int32_t* outputs = to.data + m * to.channel_step + row * width;
      std::fill(outputs + column, outputs + column_end, 0);
    }
  }
}

/// Returns false where the slice lies in padding. Sets what depends on it; a copy would have to
/// wait for all stores in front of it.
bool DepthwiseRun::run_slice(const Place& place, int64_t slice, bool adds,
                             jit::DepthwiseArguments& arguments) const {
  const ConvolutionGeometry& geometry = plan_.geometry;
  const std::optional<int64_t> outer = outer_position(geometry, place.outer, slice);
  if (!outer) return false;
  const int64_t channel = place.channel / geometry.group_out_channels();
  const int64_t first = slice * geometry.out_channels + place.channel;
  const int record = jit::weight_dwords(plan_.form, depthwise_.target);
  arguments.input = call_.operands[0] + *outer * plan_.plane_inputs() +
                    (place.image * geometry.channels + channel) * pixels_;
  arguments.weights = weights_.dwords.data() + first * record;
  arguments.weights_end = arguments.weights + place.channels * record;
  arguments.start = starts_.data() + first;
  const KernelCode<jit::DepthwiseForm>& code =
      *depthwise_.codes[products_.signed_input][products_.subtracts_window_sums][adds];
  code.call(&arguments);
  return true;
}

}  // namespace

void run_depthwise(const BoundDepthwise& depthwise, size_t scratch, const ConvolutionStep& step,
                   const CallMemory& memory) {
  const ConvolutionOutput output(depthwise.plan.geometry, step, memory);
  const DepthwiseCall call = {operands_of(step, memory), memory.scratch + scratch, &output};
  const DepthwiseRun run(depthwise, call);
  share_out(run, run.pieces(), max_tasks(memory, step.nanoseconds), memory, scratch);
}

}  // namespace castor::detail
