// SPDX-License-Identifier: Apache-2.0
#include "jit/core/core_tuning.hpp"

#include <initializer_list>

#include "ir/support/enumeration.hpp"
#include "jit/target.hpp"

namespace castor::jit {

namespace {

using enum CostEvent;

struct EventRow {
  CostEvent event;
  double cycles;
};

/// The cycles of the rows, and for all other events those of `base`.
constexpr EventCycles cycles_of(std::initializer_list<EventRow> rows, EventCycles base = {}) {
  EventCycles cycles = base;
  for (const EventRow& row : rows) cycles[static_cast<size_t>(row.event)] = row.cycles;
  return cycles;
}

// clang-format off
/// The costs on cores that were not swept, and what others begin with. Fitted by
/// tools/fit-convolution-costs to an early sweep of a Granite Rapids and to other tiers, but
/// for what decides register tiles, which measurements of single layers decided, and for
/// packed_by_narrow_kernel (of i16 pairs on Zen 3: castor-sweep --layers --matching 1x1; --random
/// 500 --seed 91; not measured: of bytes).
constexpr ConvolutionCosts fitted_costs = {
    .cycles = cycles_of({
        {cache_block, 326},
        {kernel_call, 162},
        {k_loop, 1},
        {unaligned_load, 0.25},
        {weight_broadcast, 0.1},
        {l2_vector, 0.4},
        {operand_load, 0.05},
        {sign_flipped_operand, 2},  // not measured: copies are flipped instead
        {stored_vector, 2},
        {split_stored_vector, 3},
        {stalled_tile, 12},
        {nhwc_stored_vector, 3},
        {staged_vector, 3},
        {transposed_channel, 9},
        {transposed_output, 0.8},
        {tile_results, 1},
        {packed_row, 3.55},
        {packed_columns_row, 3.55},  // not measured: packed_row's
        {packed_nhwc_row, 3.55},
        {packed_nhwc, 4.9},
        {packed_nchw4c, 0.286},
        {packed_by_kernel, 0.416},
        {packed_by_narrow_kernel, 0.25},
        {packed_columns4, 0.358},
        {packed_im2col, 0.292},
        {packed_by_loops, 0.318},
        {packed_one_by_one, 2.36},
        {copied_row, 1.09},
        {copied_byte, 0.08},
        {sign_flipped_byte, 0.641},
        {widened_byte, 0.641},
        {copied_column, 14.6},
        {gathered_block, 282},
        {gathered_tail, 400},
        {interleaved_pixels, 35},
        {packed_weight, 0.855},
        {listed_weight, 3.63},
        {far_weights, 8},  // measured on Zen 3 alone, and so are the next three, rounded
        {dot_pixel, 100},
        {dot_weight, 0.03},
        {dot_result, 8},
        {summed_pixel, 0},
        {summed_byte, 0.648},
        {summed_lane, 0.12},  // not measured: Zen 4's (ConvInteger/grouped_3x3/u8u8)
        {sliding_call, 0},
        {slide_load, 0.345},
        {slide_shuffle, 0.971},
        {slide_product, 0.581},
        {slide_store, 1.51},
        {slide_position, 2.14},
        {slide_row_range, 44.5},
        {gather_load, 0.208},
        {gather_shuffle, 0.271},
        {gather_product, 0.772},
        {gather_store, 1.36},
        {gather_position, 7.13},
        {gathered_weight, 5.84},
        {piecewise_output, 0.3},
    }),
};

/// Fitted to bench/data/sweep-granite-rapids-fit.csv, -amx-fit.csv and -amx-fit-more.csv; names
/// what differs.
constexpr ConvolutionCosts golden_cove_costs = {
    .cycles = cycles_of({
        {cache_block, 296},
        {kernel_call, 159},
        {packed_row, 5.24},
        {packed_nhwc_row, 3.24},
        {packed_nhwc, 2.19},
        {packed_nchw4c, 0.268},
        {packed_by_kernel, 0.208},
        {packed_columns4, 0.214},
        {packed_im2col, 0.383},
        {packed_one_by_one, 2.3},
        {copied_row, 9.27},
        {copied_byte, 0.169},
        {sign_flipped_byte, 0.124},
        {copied_column, 9.37},
        {gathered_block, 220},
        {gathered_tail, 144},
        {interleaved_pixels, 37.1},
        {packed_weight, 0.346},
        {listed_weight, 12.7},
        {far_weights, 0.969},
        {dot_pixel, 96},
        {dot_weight, 0.00455},
        {dot_result, 2.94},
        {summed_pixel, 5.4},
        {summed_byte, 0.265},
        {sliding_call, 266},
        {slide_load, 0.704},
        {slide_shuffle, 0.728},
        {slide_product, 0.407},
        {slide_store, 1.62},
        {slide_position, 2.37},
        {slide_row_range, 21.1},
        {gather_load, 0.463},
        {gather_shuffle, 0.326},
        {gather_product, 0.61},
        {gather_store, 1.46},
        {gather_position, 10.2},
        {gathered_weight, 9.77},
    }, fitted_costs.cycles),
};

/// Fitted to bench/data/sweep-zen4-fit.csv and -fit-more.csv; names what differs.
constexpr ConvolutionCosts zen4_costs = {
    .cycles = cycles_of({
        {cache_block, 318},
        {kernel_call, 268},
        {sign_flipped_operand, 0.08},
        {packed_row, 4.8},
        {packed_columns_row, 4.8},  // not measured: packed_row's
        {packed_nhwc_row, 6.07},
        {packed_nhwc, 2.52},
        {packed_nchw4c, 0.476},
        {packed_by_kernel, 0.34},
        {packed_columns4, 0.353},
        {packed_im2col, 0.42},
        {packed_one_by_one, 2.02},
        {copied_row, 13.5},
        {copied_byte, 0.0302},
        {sign_flipped_byte, 0.066},
        {copied_column, 10.3},
        {packed_weight, 1.49},
        {listed_weight, 6.39},
        {summed_pixel, 2.85},
        {summed_byte, 0.539},
        {sliding_call, 544},
        {gathered_weight, 2.86},
    }, fitted_costs.cycles),
};

/// Fitted to bench/data/sweep-zen5-fit.csv and -fit-more.csv: two products of 512 bits a cycle.
constexpr ConvolutionCosts zen5_costs = {
    .product_512 = 0.5,
    .load = 0.61,
    .latency = 4,
    .cycles = cycles_of({
        {cache_block, 220},
        {kernel_call, 272},
        {unaligned_load, 0.254},
        {weight_broadcast, 0.0159},
        {l2_vector, 0.462},
        {sign_flipped_operand, 0.02},
        {stored_vector, 3.37},
        {split_stored_vector, 3.87},
        {stalled_tile, 4.1},
        {nhwc_stored_vector, 2.17},
        {staged_vector, 0.472},
        {transposed_channel, 4.1},
        {transposed_output, 0.239},
        {packed_row, 4.63},
        {packed_columns_row, 4.63},  // not measured: packed_row's
        {packed_nhwc_row, 5.12},
        {packed_nhwc, 1.45},
        {packed_nhwc_pixel, 2.17},
        {packed_nchw4c, 0.259},
        {packed_by_kernel, 0.21},
        {packed_columns4, 0.161},
        {packed_im2col, 0.183},
        {packed_one_by_one, 1.92},
        {copied_row, 29.5},
        {copied_byte, 0.0281},
        {sign_flipped_byte, 0.0609},
        {copied_column, 7.09},
        {packed_weight, 0.431},
        {listed_weight, 8.84},
        {summed_pixel, 4.34},
        {summed_byte, 0.275},
        {summed_lane, 0.12},  // not measured since sums are of AVX2: Zen 4's
        {sliding_call, 285},
        {slide_load, 0.165},
        {slide_shuffle, 1.17},
        {slide_product, 0.302},
        {slide_store, 1.32},
        {slide_position, 1.05},
        {slide_row_range, 19.5},
        {gather_product, 1.49},
        {gathered_weight, 3.11},
    }, fitted_costs.cycles),
};

/// Fitted to bench/data/sweep-zen3-fit.csv and -fit-more.csv, of tier avx2. A pair of vpmaddwd and
/// vpaddd takes 0.62 cycles (peak_GMACps of castor-bench); 0.27 cycles an instruction are what K
/// loops take on a core whose other thread is not ours (castor-sweep --layers --matching 6_3x3).
/// Events of dot kernels are fitted to castor-sweep --random 40000 --seed 77
/// --matching 'g1 k1 s1 d1 p0 u8i8 runtime' and the other signs; far_weights and dot_weight were
/// set by MatMulInteger/(1|8)x.* of castor-bench.
constexpr ConvolutionCosts zen3_costs = {
    .product_256 = 0.31,
    .instruction = 0.27,
    .cycles = cycles_of({
        {cache_block, 878},
        {kernel_call, 195},
        {unaligned_load, 0.238},
        {weight_broadcast, 0.00305},
        {l2_vector, 0.273},
        {operand_load, 0.0726},
        {l2_operand_vector, 0.471},
        {stored_vector, 1.67},
        {split_stored_vector, 2.87},
        {compressed_vector, 11.6},
        {nhwc_stored_vector, 1.57},
        {staged_vector, 0.0227},
        {transposed_channel, 3.52},
        {transposed_output, 1.74},
        {packed_row, 16.9},
        {packed_columns_row, 34.3},
        {packed_nhwc_row, 22.6},
        {packed_nhwc, 0.886},
        {packed_nhwc_pixel, 4.4},
        {packed_by_loops, 0.774},
        {packed_one_by_one, 2.13},
        {copied_row, 43.3},
        {widened_byte, 0.133},
        {copied_column, 8.98},
        {packed_weight, 3.32},
        {listed_weight, 9.1},
        {dot_pixel, 119},
        {dot_weight, 0.02},  // MatMulInteger/1x.*/transposed_b
        {dot_result, 5.1},
        {summed_pixel, 1},
        {sliding_call, 850},
        {gathered_weight, 33.8},
    }, fitted_costs.cycles),
};
// clang-format on

/// In the order of `Core`.
constexpr std::array<CoreTuning, core_count> table = {{
    {.core = Core::generic, .convolution = fitted_costs},
    {.core = Core::zen4, .convolution = zen4_costs},
    {.core = Core::zen5,
     .port_model = PortModel::zen5,
     .dense = {.transposes_registers = true},
     .convolution = zen5_costs},
    {.core = Core::golden_cove,
     .port_model = PortModel::golden_cove,
     .conversion = {.avoids_two_source_permutes = true, .avoids_wide_extremes = true},
     .prefetch = {.input_bytes = 4096, .output_bytes = 1024},
     .reduction = {.compares_floats = true},
     .convolution = golden_cove_costs},
    {.core = Core::zen3, .convolution = zen3_costs},
}};

constexpr bool is_sorted_by_core() {
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].core != static_cast<Core>(i)) return false;
  }
  return true;
}
static_assert(is_sorted_by_core());

constexpr std::array<std::string_view, port_model_count> port_models = {
    "zen4", "zen5", "golden_cove", "redwood_cove"};

}  // namespace

std::string_view name_of(PortModel model) { return name_in(port_models, model); }

const CoreTuning& tuning_of(Core core) {
  const auto number = static_cast<size_t>(core);
  return table[number < table.size() ? number : 0];
}

const CoreTuning& Target::tuning() const { return tuning_of(core); }

}  // namespace castor::jit
