// SPDX-License-Identifier: Apache-2.0
// Kernels of depthwise convolutions in NCHW, whose lanes are output pixels.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tools/prove/kernel/sliding_call.hpp"

namespace castor::prove {

namespace {

using jit::DepthwiseSpec;

/// One call: two channels, all row ranges, three column positions.
class DepthwiseCall : SlidingCall<DepthwiseSpec> {
 public:
  DepthwiseCall(const KernelSubject<DepthwiseSpec>& kernel, ResultProver& prover)
      : SlidingCall(kernel, prover) {}

  void lay_out(KernelCall& call) {
    x_ = call.add_inputs("x", channels * channel_rows() * row_bytes(), 8);
    panel_ = call.add_inputs(
        "the panels", int64_t{channels} * panel_size(spec_) * 32 / element_bits(), element_bits());
    start_ = call.add_inputs("start", channels, 32);
    fill_columns();
    fill_ranges();
    const uint64_t ranges = call.add_numbers<jit::DepthwiseRange>("the ranges", ranges_);
    const uint64_t end = ranges + sizeof(jit::DepthwiseRange) * ranges_.size();
    arguments_ = {.input = pointer_to<const std::byte>(x_.address),
                  .input_row_step = row_bytes(),
                  .input_channel_step = channel_rows() * row_bytes(),
                  .output_row_step = row_outputs * output_unit(),
                  .prefetched = 256,
                  .ranges = pointer_to<const jit::DepthwiseRange>(ranges),
                  .ranges_end = pointer_to<const jit::DepthwiseRange>(end),
                  .columns = pointer_to<const jit::ColumnPositions>(
                      call.add_numbers<jit::ColumnPositions>("the columns", columns_)),
                  .column_count = std::ssize(columns_),
                  .rows_loaded = pointer_to<const uint64_t>(
                      call.add_numbers<uint64_t>("the border rows", rows_loaded_)),
                  .weights = pointer_to<const int32_t>(panel_.address),
                  .weights_end = pointer_to<const int32_t>(
                      panel_.address + static_cast<uint64_t>(4 * channels * panel_size(spec_))),
                  .start = pointer_to<const int32_t>(start_.address),
                  .padding = padding_byte * uint64_t{0x0101010101010101}};
    lay_out_results(call);
  }

  const jit::DepthwiseArguments& arguments() const { return arguments_; }

  Status compare(KernelCall& call) {
    ++prover_.proof().calls;
    for (int channel = 0; channel < channels; ++channel) {
      for (size_t range = 0; range < ranges_.size(); ++range) {
        for (int position = 0; position < positions; ++position) {
          const int stored = position + 1 == positions ? last_outputs : lanes;
          for (int output = 0; output < spec_.ranges[range].outputs; ++output) {
            for (int lane = 0; lane < stored; ++lane) {
              Status status = compare_result(call, channel, range, position, output, lane);
              if (!status) return status;
            }
          }
        }
      }
    }
    return {};
  }

 private:
  static constexpr int channels = 2;
  static constexpr int lanes = 16;
  static constexpr int positions = 3;      ///< in a row; the last one has an entry of its own
  static constexpr int last_outputs = 11;  ///< that are stored there
  static constexpr int pad = 1;            ///< columns before the image
  static constexpr int row_outputs = (positions - 1) * lanes + last_outputs;

  bool has_vbmi() const { return target_.supports(jit::Feature::avx512_vbmi); }
  int64_t row_bytes() const { return (positions - 1) * lanes + spec_.source_bytes; }
  int64_t channel_rows() const {
    int64_t rows = 0;
    for (const jit::RowRange& range : spec_.ranges) rows += spec_.input_rows(range);
    return rows;
  }
  int64_t output_rows() const {
    int64_t rows = 0;
    for (const jit::RowRange& range : spec_.ranges) rows += range.outputs;
    return rows;
  }
  int64_t plane_outputs() const { return output_rows() * row_outputs; }
  /// Bytes of an output, or, with an epilogue, elements.
  int64_t output_unit() const { return prover_.epilogue() != nullptr ? 1 : 4; }

  void lay_out_results(KernelCall& call) {
    if (prover_.epilogue() != nullptr) {
      operands_.emplace(call, *prover_.epilogue(), ResultShape{channels, plane_outputs(), 0});
      arguments_.epilogue = pointer_to<const jit::EpilogueOperand>(operands_->table());
      return;
    }
    output_ = call.add_inputs("the output", channels * plane_outputs(), 32, true);
    arguments_.output = static_cast<int64_t>(output_.address);
    arguments_.output_channel_step = 4 * plane_outputs();
  }

  /// Outputs have the columns from their own on, less `pad`: those of the first position and the
  /// last one are masked.
  void fill_columns() {
    columns_.resize(2);
    columns_[0].count = positions - 1;
    columns_[0].stored = 0xffff;
    columns_[1].count = 1;
    columns_[1].input = (positions - 1) * lanes;
    columns_[1].output = (positions - 1) * lanes * output_unit();
    columns_[1].stored = (1u << last_outputs) - 1;
    for (jit::ColumnPositions& of : columns_) {
      const bool is_last = &of == &columns_.back();
      of.loaded = is_last ? (uint64_t{1} << (last_outputs + 1)) - 1 : ~uint64_t{2};
      for (int k_group = 0; k_group < spec_.k_groups; ++k_group) {
        for (int i = 0; i < bytes_of_k_group * lanes; ++i) fill_byte(of, k_group, i, is_last);
      }
    }
  }

  /// A byte of a shuffle: one of the source's.
  void fill_byte(jit::ColumnPositions& of, int k_group, int i, bool is_last) {
    const auto k = static_cast<size_t>(k_group);
    const auto at = static_cast<size_t>(i);
    const int first_lane = i / 16 * 4;  // in 128 bits
    const int column = i / 4 + bytes_of_k_group * k_group + i % 4 - pad;
    const bool is_inside = column >= 0 && (!is_last || column <= last_outputs);
    if (is_inside) of.taken[k] |= uint64_t{1} << i;
    const int from = std::max(column, 0);
    if (has_vbmi()) {
      of.shuffle[k][at] = static_cast<uint8_t>(from);
      return;
    }
    const int first_index = std::max((first_lane + bytes_of_k_group * k_group - pad) / 4, 0);
    of.pieces[k][at / 4] = first_index + i / 4 % 4;
    of.shuffle[k][at] = static_cast<uint8_t>(from - 4 * first_index);
  }

  /// The byte of the source that a shuffle's byte is.
  int source_of(const jit::ColumnPositions& of, int k_group, int i) const {
    const auto k = static_cast<size_t>(k_group);
    const int byte = of.shuffle[k][static_cast<size_t>(i)];
    if (has_vbmi()) return byte;
    return 4 * of.pieces[k][static_cast<size_t>(i / 16 * 4 + byte / 4)] + byte % 4;
  }

  void fill_ranges() {
    int64_t input_row = 0;
    int64_t output_row = 0;
    for (const jit::RowRange& range : spec_.ranges) {
      const int64_t rows = spec_.input_rows(range);
      jit::DepthwiseRange& at = ranges_.emplace_back();
      at.range = std::ssize(ranges_) - 1;
      at.row = output_row;
      at.input = input_row * row_bytes();
      at.output = output_row * row_outputs * output_unit();
      at.input_column_step = lanes - rows * row_bytes();
      at.output_column_step = (lanes - int64_t{range.outputs} * row_outputs) * output_unit();
      at.rows_loaded = static_cast<int64_t>(sizeof(uint64_t) * rows_loaded_.size());
      for (int i = 0; i < range.border_above + range.border_below; ++i) {
        rows_loaded_.push_back(i % 2 == 0 ? 0x00ff'00ff'ff0f'f0ffu : 0xffff'0fff'0f00'ff00u);
      }
      input_row += rows;
      output_row += range.outputs;
    }
    if (rows_loaded_.empty()) rows_loaded_.push_back(0);
  }

  Status compare_result(KernelCall& call, int channel, size_t range, int position, int output,
                        int lane) {
    const Term sum = sum_of(call.terms(), channel, range, position, output, lane);
    const int64_t element = (ranges_[range].row + output) * row_outputs + position * lanes + lane;
    if (operands_) return prover_.compare_results(call, *operands_, channel, element, sum);
    const int64_t number = channel * plane_outputs() + element;
    const Term before = output_.elements[static_cast<size_t>(number)];
    return prover_.compare_sum(call, output_.address + static_cast<uint64_t>(4 * number),
                               spec_.adds ? sum + before : sum,
                               fmt::format("output {} of channel {}", element, channel));
  }

  std::span<const Term> weights_at(int channel, int index) const {
    const int held = 32 / element_bits();
    const int first = (channel * panel_size(spec_) + index) * held;
    return std::span(panel_.elements)
        .subspan(static_cast<size_t>(first), static_cast<size_t>(held));
  }

  Term sum_of(Terms& terms, int channel, size_t range, int position, int output, int lane) const {
    Term sum = start_.elements[static_cast<size_t>(channel)];
    Term window_sum = terms.constant(32, 0);
    const auto weights = [&](int index) { return weights_at(channel, index); };
    for (int tap_row = 0; tap_row < spec_.rows; ++tap_row) {
      const int row = output * spec_.row_stride + tap_row;
      for (int k_group = 0; k_group < spec_.k_groups; ++k_group) {
        std::array<Term, bytes_of_k_group> bytes;
        for (int i = 0; i < bytes_of_k_group; ++i) {
          bytes[static_cast<size_t>(i)] =
              tap(terms, channel, range, position, row, k_group, bytes_of_k_group * lane + i);
        }
        sum = added(sum, bytes, weights, tap_row * spec_.row_weights() + k_group);
        if (!spec_.sums_window_of(k_group)) continue;
        window_sum = added(window_sum, bytes, weights, spec_.rows * spec_.row_weights() + k_group);
      }
    }
    return sum - window_sum;
  }

  /// A byte of a k group as it is multiplied.
  Term tap(Terms& terms, int channel, size_t range, int position, int row, int k_group,
           int i) const {
    const jit::RowRange& of = spec_.ranges[range];
    const int rows = spec_.input_rows(of);
    const jit::ColumnPositions& columns = columns_[position + 1 == positions ? 1 : 0];
    const bool is_outside = row < of.above || row >= rows - of.below;
    const bool is_taken = (columns.taken[static_cast<size_t>(k_group)] >> i & 1) != 0;
    if (is_outside || !is_taken) return padding(terms);
    const int byte = source_of(columns, k_group, i);
    if (!is_loaded(range, columns, row, byte)) return padding(terms);
    const int64_t at = (channel * channel_rows() + row) * row_bytes() + ranges_[range].input +
                       position * lanes + byte;
    return signed_as_multiplied(x_.elements[static_cast<size_t>(at)]);
  }

  /// Whether a byte of the source is in the image, where the row is a border row.
  bool is_loaded(size_t range, const jit::ColumnPositions& columns, int row, int byte) const {
    const jit::RowRange& of = spec_.ranges[range];
    const int first_below = spec_.input_rows(of) - of.below - of.border_below;
    int border = -1;
    if (row < of.above + of.border_above) border = row - of.above;
    if (row >= first_below) border = row - first_below + of.border_above;
    if (border < 0) return true;
    uint64_t loaded = columns.loaded;
    if (of.masks_rows) {
      const auto first = static_cast<size_t>(ranges_[range].rows_loaded) / sizeof(uint64_t);
      loaded &= rows_loaded_[first + static_cast<size_t>(border)];
    }
    return (loaded >> byte & 1) != 0;
  }

  CallOperand x_, panel_, start_, output_;
  std::vector<jit::ColumnPositions> columns_;
  std::vector<jit::DepthwiseRange> ranges_;
  std::vector<uint64_t> rows_loaded_;
  std::optional<EpilogueCall> operands_;
  jit::DepthwiseArguments arguments_;
};

}  // namespace

Result<ConvProof> prove_kernel(const KernelSubject<DepthwiseSpec>& kernel, const Decide& decide) {
  ResultProver prover(kernel.epilogue, decide);
  if (Status status = prover.check_provable(); !status) return status.error();
  Status status = prove_call(kernel.code, DepthwiseCall(kernel, prover));
  if (!status) return status.error();
  return prover.proof();
}

}  // namespace castor::prove
