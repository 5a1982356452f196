// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

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

// clang-format off
constexpr ConvolutionCosts generic = {
    .cycles = cycles_of({
//GENERIC
        {cache_block, 200},
        {kernel_call, 100},
        {register_tile, 5},
        {k_loop, 1},
        {unaligned_load, 0.25},
        {weight_broadcast, 0.1},
        {l2_vector, 0.4},
        {l2_panel_line, 0.4},
        {operand_load, 0.05},
        {stored_vector, 2},
        {split_stored_vector, 3},
        {stalled_tile, 20},
        {nhwc_stored_vector, 4},
        {staged_vector, 2},
        {transposed_channel, 4},
        {transposed_output, 0.8},
        {packed_row, 6},
        {packed_nhwc, 1.5},
        {packed_nchw4c, 0.6},
        {packed_by_kernel, 0.4},
        {packed_columns4, 0.5},
        {packed_im2col, 0.4},
        {packed_by_loops, 1},
        {packed_one_by_one, 3},
        {copied_row, 15},
        {copied_byte, 0.05},
        {converted_byte, 0.1},
        {copied_column, 5},
        {packed_weight, 0.6},
        {listed_weight, 3.5},
        {summed_byte, 0.3},
        {slide_load, 0.4},
        {slide_shuffle, 1},
        {slide_product, 0.5},
        {slide_store, 2.3},
        {slide_position, 3},
        {slide_band, 30},
        {gather_load, 0.7},
        {gather_shuffle, 0.6},
        {gather_product, 0.9},
        {gather_store, 2},
        {gather_place, 7},
        {gathered_weight, 3.5},
        {piecewise_output, 0.3},
//GENERIC_END
    }),
};

constexpr ConvolutionCosts golden_cove = {
    .product_512 = 0.5, .product_256 = 0.5, .load = 0.5, .latency = 5,
    .cycles = cycles_of({
//BEGIN
        {cache_block, 421},
        {kernel_call, 159},
        {register_tile, 2.69},
        {k_loop, 1},
        {unaligned_load, 0.118},
        {weight_broadcast, 0.0775},
        {l2_vector, 0.178},
        {l2_panel_line, 0.707},
        {operand_load, 0.124},
        {stored_vector, 4.02},
        {split_stored_vector, 4.02},
        {stalled_tile, 50.5},
        {nhwc_stored_vector, 5.46},
        {staged_vector, 1},
        {transposed_channel, 4},
        {transposed_output, 0.62},
        {packed_row, 1.64},
        {packed_nhwc, 3.34},
        {packed_nchw4c, 0.59},
        {packed_by_kernel, 0.565},
        {packed_columns4, 0.358},
        {packed_im2col, 0.372},
        {packed_by_loops, 0.697},
        {packed_one_by_one, 2.14},
        {copied_row, 2.87},
        {copied_byte, 0.093},
        {converted_byte, 0.428},
        {copied_column, 4.38},
        {packed_weight, 1.05},
        {listed_weight, 2.63},
        {summed_byte, 0.394},
        {slide_load, 0.337},
        {slide_shuffle, 1.02},
        {slide_product, 0.35},
        {slide_store, 2.3},
        {slide_position, 2.84},
        {slide_band, 38.6},
        {gather_load, 0.553},
        {gather_shuffle, 0.314},
        {gather_product, 1.21},
        {gather_store, 1.52},
        {gather_place, 11.4},
        {gathered_weight, 8.2},
        {piecewise_output, 0.3},
//END
    }),
};
// clang-format on

}  // namespace

const ConvolutionCosts& costs_on(const Target&) {
  static const bool is_golden_cove = std::getenv("CASTOR_CORE_TMP") != nullptr;
  return is_golden_cove ? golden_cove : generic;
}

}  // namespace castor::jit
