// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/cost/costs.hpp"

namespace castor::jit {

namespace {

using enum CostEvent;

struct EventRow {
  CostEvent event;
  double cycles;
};

constexpr EventCycles cycles_of(std::initializer_list<EventRow> rows) {
  EventCycles cycles = {};
  for (const EventRow& row : rows) cycles[static_cast<size_t>(row.event)] = row.cycles;
  return cycles;
}

constexpr ConvolutionCosts generic = {
    .cycles = cycles_of({
        {k_loop, 1},
        {unaligned_load, 0.25},
        {weight_broadcast, 0.1},
        {l2_vector, 0.4},
        {operand_load, 0.05},
        {stored_vector, 2},
        {split_stored_vector, 3},
        {stalled_tile, 12},
        {nhwc_stored_vector, 3},
        {staged_vector, 3},
        {transposed_channel, 9},
        {transposed_output, 0.8},
        {packed_nhwc, 2},
        {packed_nchw4c, 0.6},
        {packed_by_kernel, 0.3},
        {packed_columns4, 0.2},
        {packed_im2col, 0.25},
        {copied_row, 15},
        {copied_byte, 1.0 / 24},
        {packed_weight, 0.3},
        {listed_weight, 3},
        {summed_byte, 0.3},
        {slide_load, 0.5},
        {slide_shuffle, 1},
        {slide_product, 1},
        {slide_store, 2},
        {slide_position, 3},
        {slide_band, 20},
        {gather_load, 0.5},
        {gather_shuffle, 1},
        {gather_product, 1},
        {gather_store, 1.5},
        {gather_place, 5},
        {gathered_weight, 3},
        {piecewise_output, 0.3},
    }),
};

}  // namespace

const ConvolutionCosts& costs_on(const Target&) { return generic; }

}  // namespace castor::jit
