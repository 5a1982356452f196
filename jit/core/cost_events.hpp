// SPDX-License-Identifier: Apache-2.0
// What a candidate's cost is made of: events that are counted from its plan, and how many cycles of
// a core each takes. Counts depend on the plan, cycles on the core (jit/core/core_tuning.hpp), so
// that `tools/fit-convolution-costs` can fit the cycles to measured times.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace castor::jit {

enum class CostEvent : uint8_t {
  cache_block,
  kernel_call,
  k_loop,
  unaligned_load,
  weight_broadcast,
  l2_vector,
  operand_load,
  sign_flipped_operand,
  stored_vector,
  split_stored_vector,
  compressed_vector,
  stalled_tile,
  nhwc_stored_vector,
  staged_vector,
  transposed_channel,
  transposed_output,
  packed_row,
  packed_columns_row,
  packed_nhwc_row,
  packed_nhwc,
  packed_nhwc_pixel,
  packed_nchw4c,
  packed_by_kernel,
  packed_columns4,
  packed_im2col,
  packed_by_loops,
  packed_one_by_one,
  copied_row,
  copied_byte,
  sign_flipped_byte,
  widened_byte,
  copied_column,
  packed_weight,
  listed_weight,
  summed_pixel,
  summed_byte,
  summed_lane,
  sliding_call,
  slide_load,
  slide_shuffle,
  slide_product,
  slide_store,
  slide_position,
  slide_row_range,
  gather_load,
  gather_shuffle,
  gather_product,
  gather_store,
  gather_position,
  gathered_weight,
  piecewise_output,
};
inline constexpr int cost_event_count = 51;

/// One row of the table of events.
struct CostEventInfo {
  CostEvent event;
  std::string_view name;
  std::string_view meaning;
};

/// The events in the order of `CostEvent`.
inline constexpr std::array<CostEventInfo, cost_event_count> cost_event_table = {{
    {CostEvent::cache_block, "cache_block", "cache block of a group: its packing is set up"},
    {CostEvent::kernel_call, "kernel_call", "call of a dense microkernel"},
    {CostEvent::k_loop, "k_loop", "cycle of a K loop at its bound: products, latency or loads"},
    {CostEvent::unaligned_load, "unaligned_load", "vector of pixels that crosses cache lines"},
    {CostEvent::weight_broadcast, "weight_broadcast", "weight of a pixel-vectorised k step"},
    {CostEvent::l2_vector, "l2_vector", "vector of packed input that comes from L2"},
    {CostEvent::operand_load, "operand_load", "operand of a channel-vectorised k step"},
    {CostEvent::sign_flipped_operand, "sign_flipped_operand",
     "operand of a pixel that gets a sign flip"},
    {CostEvent::stored_vector, "stored_vector", "accumulator begun, and stored to a cache line"},
    {CostEvent::split_stored_vector, "split_stored_vector", "the same across two cache lines"},
    {CostEvent::compressed_vector, "compressed_vector",
     "accumulator some lanes of which are not stored"},
    {CostEvent::stalled_tile, "stalled_tile", "register tile all of whose stores come at once"},
    {CostEvent::nhwc_stored_vector, "nhwc_stored_vector", "channel-vectorised accumulator, stored"},
    {CostEvent::staged_vector, "staged_vector", "the same, by way of the staging buffer"},
    {CostEvent::transposed_channel, "transposed_channel", "channel of a tile that is transposed"},
    {CostEvent::transposed_output, "transposed_output", "i32 result that is transposed to NHWC"},
    {CostEvent::packed_row, "packed_row", "row of packed input"},
    {CostEvent::packed_columns_row, "packed_columns_row",
     "row of k groups of columns, packed by loops"},
    {CostEvent::packed_nhwc_row, "packed_nhwc_row", "row of k groups packed from NHWC"},
    {CostEvent::packed_nhwc, "packed_nhwc", "k group of u8 packed from NHWC"},
    {CostEvent::packed_nhwc_pixel, "packed_nhwc_pixel", "pixel whose k groups these are"},
    {CostEvent::packed_nchw4c, "packed_nchw4c", "k group of an nchw4c plane"},
    {CostEvent::packed_by_kernel, "packed_by_kernel", "the same, by the first tile of channels"},
    {CostEvent::packed_columns4, "packed_columns4", "k group of four columns"},
    {CostEvent::packed_im2col, "packed_im2col", "k group of four positions of a receptive field"},
    {CostEvent::packed_by_loops, "packed_by_loops", "k group of a plane packed by loops of SSE2"},
    {CostEvent::packed_one_by_one, "packed_one_by_one", "the same one pixel at a time"},
    {CostEvent::copied_row, "copied_row", "input row that is copied with its padding"},
    {CostEvent::copied_byte, "copied_byte", "byte of such a row"},
    {CostEvent::sign_flipped_byte, "sign_flipped_byte", "the same with a sign flip"},
    {CostEvent::widened_byte, "widened_byte", "the same widened to i16"},
    {CostEvent::copied_column, "copied_column", "pixel that is copied by itself"},
    {CostEvent::packed_weight, "packed_weight", "k group of run-time weights, packed by code"},
    {CostEvent::listed_weight, "listed_weight", "the same by loops"},
    {CostEvent::summed_pixel, "summed_pixel", "pixel of window sums that loops add up"},
    {CostEvent::summed_byte, "summed_byte", "byte of its channels"},
    {CostEvent::summed_lane, "summed_lane", "sum of a packed lane, added to that of a window"},
    {CostEvent::sliding_call, "sliding_call", "call of a sliding plan: its tasks are set up"},
    {CostEvent::slide_load, "slide_load", "depthwise NCHW: source of a row"},
    {CostEvent::slide_shuffle, "slide_shuffle", "its pixels brought to their taps"},
    {CostEvent::slide_product, "slide_product", "product of four taps"},
    {CostEvent::slide_store, "slide_store", "vector of results"},
    {CostEvent::slide_position, "slide_position", "column position of a block of rows"},
    {CostEvent::slide_row_range, "slide_row_range", "row range of a channel"},
    {CostEvent::gather_load, "gather_load", "grouped NHWC: pixel of a row"},
    {CostEvent::gather_shuffle, "gather_shuffle", "its channels brought to their lanes"},
    {CostEvent::gather_product, "gather_product", "product of a k group"},
    {CostEvent::gather_store, "gather_store", "vector of results"},
    {CostEvent::gather_position, "gather_position", "some neighbouring outputs of a block of rows"},
    {CostEvent::gathered_weight, "gathered_weight", "run-time weight of a sliding kernel, packed"},
    {CostEvent::piecewise_output, "piecewise_output", "i32 result that an epilogue reads again"},
}};

/// Cycles by event.
using EventCycles = std::array<double, cost_event_count>;

/// How often each event happens in one call for one image.
class EventCounts {
 public:
  double& operator[](CostEvent event) { return counts_[static_cast<size_t>(event)]; }
  double operator[](CostEvent event) const { return counts_[static_cast<size_t>(event)]; }
  EventCounts& operator+=(const EventCounts& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    return *this;
  }
  friend EventCounts operator*(EventCounts cost, double times) {
    for (double& count : cost.counts_) count *= times;
    return cost;
  }
  double cycles(const EventCycles& of) const {
    double sum = 0;
    for (size_t i = 0; i < counts_.size(); ++i) sum += counts_[i] * of[i];
    return sum;
  }

 private:
  std::array<double, cost_event_count> counts_ = {};
};

}  // namespace castor::jit
