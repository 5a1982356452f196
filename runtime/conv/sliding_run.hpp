// SPDX-License-Identifier: Apache-2.0
// What calls of sliding convolutions of both layouts share: inside runtime/conv only.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "ir/support/integer_math.hpp"
#include "runtime/conv/convolution_step.hpp"
#include "runtime/conv/epilogue.hpp"
#include "runtime/conv/sliding_weights.hpp"

namespace castor::detail {

/// Outputs of a piece, or of a part of a row, where tasks are to share: many for what it costs to
/// begin one.
inline constexpr int64_t shared_outputs = 16384;
/// Pieces that channels are shared out to, where there are as many.
inline constexpr int64_t min_pieces = 16;
inline constexpr int64_t any_elements = std::numeric_limits<int64_t>::max();

/// A number of a piece as indices, the fastest one first.
class PieceIndex {
 public:
  explicit PieceIndex(int64_t piece) : rest_(piece) {}
  int64_t next(int64_t extent) {
    if (extent == 1) return 0;
    const int64_t index = rest_ % extent;
    rest_ /= extent;
    return index;
  }
  int64_t rest() const { return rest_; }

 private:
  int64_t rest_;
};

/// One call, which has what all tasks read: operands, output, and packed weights.
template <class Plan>
class SlidingRun {
 protected:
  using Bound = BoundSliding<Plan>;
  using Code = KernelCode<typename Bound::Form>;

  /// Packs in the scratch at that offset what is not known before the call.
  SlidingRun(const Bound& bound, size_t scratch, const ConvolutionStep& step,
             const CallMemory& memory)
      : bound_(bound),
        plan_(bound.plan),
        operands_(operands_of(step, memory)),
        output_(plan_.geometry, step, memory),
        products_(bound.products) {
    prepare(memory.scratch + scratch);
  }

  /// Results of a piece at the most.
  int64_t max_elements() const {
    return bound_.applies_epilogue ? any_elements : output_.max_elements();
  }
  /// The byte that stands for the input's zero point.
  std::byte padding() const {
    const std::byte* zero = data_of(bound_.operands.x_zero_point, operands_);
    return zero == nullptr ? std::byte{0} : *zero;
  }

  /// Makes a piece: `write(to, operands)` calls kernels. They write `to`, or, where `operands` is
  /// not null, apply the epilogue to these; it returns false where there was nothing to add up.
  template <class Write>
  void run_piece(const OutputPiece& piece, std::byte* scratch, const Write& write) const {
    if (bound_.applies_epilogue) {
      std::array<jit::EpilogueOperand, jit::max_tile_operands + 1> operands;
      output_.find_operands(piece, operands.data());
      write(PieceMemory{}, operands.data());
      return;
    }
    const PieceMemory to = output_.begin(piece, scratch);
    const jit::EpilogueOperand* none = nullptr;
    if (!write(to, none)) clear(piece, to);
    output_.end(piece, scratch);
  }

  /// All slices of the filter, one after the other: sets what depends on the slice, for panels
  /// from that number on, and calls `run(outer, code)` with the input's position along outer axes.
  /// Returns false where all slices are in the padding. Arguments are set where they are: a copy
  /// would have to wait for all stores before it.
  template <class Arguments, class Run>
  bool run_slices(int64_t outer_output, int64_t panel, Arguments& arguments, const Run& run) const {
    bool is_begun = false;
    for (int64_t slice = 0; slice < plan_.slices; ++slice) {
      const std::optional<int64_t> outer = jit::outer_position(plan_.geometry, outer_output, slice);
      if (!outer) continue;
      const int64_t first = slice * static_cast<int64_t>(panels_of_slice(plan_)) + panel;
      arguments.weights = panels_.data() + first * panel_dwords_;
      run(*outer, starts_.data() + first,
          *bound_.codes[products_.signed_input][products_.subtracts_window_sums][is_begun]);
      is_begun = true;
    }
    return is_begun;
  }

  const Bound& bound_;
  const Plan& plan_;
  const CallOperands operands_;
  const ConvolutionOutput output_;
  int64_t panel_dwords_ = 0;

 private:
  void prepare(std::byte* scratch) {
    const ConvolutionOperands& operands = bound_.operands;
    const int32_t* packed = bound_.packed.data();
    if (bound_.packed.empty()) {
      auto* to = reinterpret_cast<int32_t*>(scratch);
      const WeightData from = {operands_[1], data_of(operands.w_zero_point, operands_)};
      products_ = products_of(plan_.geometry, operands, plan_.form.engine, from);
      pack_weights(bound_, products_, from, packed_panels(bound_, to));
      packed = to;
      scratch += 4 * packed_dwords(bound_);
    }
    const PackedPanels<const int32_t> panels = packed_panels(bound_, packed);
    panels_ = panels.panels;
    panel_dwords_ = static_cast<int64_t>(panel_dwords(plan_));
    starts_ = bound_.starts;
    if (!starts_.empty()) return;
    auto* to = reinterpret_cast<typename Bound::Start*>(at_next_line(scratch));
    const std::span<typename Bound::Start> made(to, panel_count(plan_));
    set_starts(bound_, products_, data_of(operands.x_zero_point, operands_), panels.sums, made);
    starts_ = made;
  }

  /// Where all slices are in the padding, results are 0.
  static void clear(const OutputPiece& piece, const PieceMemory& to) {
    const bool by_channel = to.pixel_step == 1;
    const int64_t step = by_channel ? to.channel_step : to.pixel_step;
    for (int64_t i = 0; i < (by_channel ? piece.channels : piece.pixels); ++i) {
      std::fill_n(to.data + i * step, by_channel ? piece.pixels : piece.channels, 0);
    }
  }

  SlidingProducts products_;
  std::span<const int32_t> panels_;
  std::span<const typename Bound::Start> starts_;
};

}  // namespace castor::detail
