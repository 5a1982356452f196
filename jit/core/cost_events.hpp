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

// clang-format off
/// The events: name, and what happens.
#define CASTOR_COST_EVENTS(EVENT) \
  EVENT(cache_block, "cache block of a group: its packing is set up")         \
  EVENT(kernel_call, "call of a dense microkernel")                           \
  EVENT(k_loop, "cycle of a K loop at its bound: products, latency or loads") \
  EVENT(unaligned_load, "vector of pixels that crosses cache lines")          \
  EVENT(weight_broadcast, "weight of a pixel-vectorised k step")              \
  EVENT(l2_vector, "vector of packed input that comes from L2")               \
  EVENT(operand_load, "operand of a channel-vectorised k step")               \
  EVENT(l2_operand_vector, "vector of its operands that comes from L2")       \
  EVENT(sign_flipped_operand, "operand of a pixel that gets a sign flip")     \
  EVENT(stored_vector, "accumulator begun, and stored to a cache line")       \
  EVENT(split_stored_vector, "the same across two cache lines")               \
  EVENT(compressed_vector, "accumulator some lanes of which are not stored")  \
  EVENT(stalled_tile, "register tile all of whose stores come at once")       \
  EVENT(nhwc_stored_vector, "channel-vectorised accumulator, stored")         \
  EVENT(staged_vector, "the same, by way of the staging buffer")              \
  EVENT(transposed_channel, "channel of a tile that is transposed")           \
  EVENT(transposed_output, "i32 result that is transposed to NHWC")           \
  EVENT(tile_results, "cycle of storing sums of tile registers, beyond products") \
  EVENT(packed_row, "row of packed input")                                    \
  EVENT(packed_columns_row, "row of k groups of columns, packed by loops")    \
  EVENT(packed_nhwc_row, "row of k groups packed from NHWC")                  \
  EVENT(packed_nhwc, "k group packed from NHWC")                              \
  EVENT(packed_nhwc_pixel, "pixel whose k groups these are")                  \
  EVENT(packed_nchw4c, "k group of an nchw4c plane")                          \
  EVENT(packed_by_kernel, "the same, by the first tile of channels")          \
  EVENT(packed_by_narrow_kernel, "the same in vectors of 256 bits")           \
  EVENT(packed_columns4, "k group of four columns")                           \
  EVENT(packed_im2col, "k group of four positions of a receptive field")      \
  EVENT(packed_by_loops, "k group of a plane packed by loops of SSE2")        \
  EVENT(packed_one_by_one, "the same one pixel at a time")                    \
  EVENT(copied_row, "input row that is copied with its padding")              \
  EVENT(copied_byte, "byte of such a row")                                    \
  EVENT(sign_flipped_byte, "the same with a sign flip")                       \
  EVENT(widened_byte, "the same widened to i16")                              \
  EVENT(copied_column, "pixel that is copied by itself")                      \
  EVENT(gathered_block, "16 NCHW pixels whose 64 channels are brought together") \
  EVENT(gathered_tail, "the same of fewer channels")                          \
  EVENT(interleaved_pixels, "64 NCHW pixels of four channels, made k groups beside rows of weights") \
  EVENT(packed_weight, "k group of run-time weights in order, packed")         \
  EVENT(listed_weight, "the same in another order")                           \
  EVENT(far_weights, "64 bytes of packed weights from beyond L2, for a block") \
  EVENT(dot_pixel, "pixel that is packed for dot products")                   \
  EVENT(dot_weight, "weight that a dot kernel reads as it is stored")         \
  EVENT(dot_result, "four results of it, whose lanes are added up")           \
  EVENT(summed_pixel, "pixel of window sums that loops add up")               \
  EVENT(summed_byte, "byte of its channels")                                  \
  EVENT(summed_lane, "sum of a packed lane, added to that of a window")       \
  EVENT(sliding_call, "call of a sliding plan: its tasks are set up")         \
  EVENT(slide_load, "depthwise NCHW: source of a row")                        \
  EVENT(slide_shuffle, "its pixels brought to their taps")                    \
  EVENT(slide_product, "product of four taps")                                \
  EVENT(slide_store, "vector of results")                                     \
  EVENT(slide_position, "column position of a block of rows")                 \
  EVENT(slide_row_range, "row range of a channel")                            \
  EVENT(gather_load, "grouped NHWC: pixel of a row")                          \
  EVENT(gather_shuffle, "its channels brought to their lanes")                \
  EVENT(gather_product, "product of a k group")                               \
  EVENT(gather_store, "vector of results")                                    \
  EVENT(gather_position, "some neighbouring outputs of a block of rows")      \
  EVENT(gathered_weight, "run-time weight of a sliding kernel, packed")       \
  EVENT(piecewise_output, "i32 result that an epilogue reads again")
// clang-format on

#define CASTOR_NAME_OF(name, meaning) name,
enum class CostEvent : uint8_t { CASTOR_COST_EVENTS(CASTOR_NAME_OF) };
#undef CASTOR_NAME_OF

/// One row of the table of events.
struct CostEventInfo {
  CostEvent event;
  std::string_view name;
  std::string_view meaning;
};

/// The events in the order of `CostEvent`.
#define CASTOR_ROW_OF(name, meaning) CostEventInfo{CostEvent::name, #name, meaning},
inline constexpr auto cost_event_table = std::to_array({CASTOR_COST_EVENTS(CASTOR_ROW_OF)});
#undef CASTOR_ROW_OF
inline constexpr int cost_event_count = static_cast<int>(cost_event_table.size());

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
