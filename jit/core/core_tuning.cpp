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

constexpr EventCycles cycles_of(std::initializer_list<EventRow> rows) {
  EventCycles cycles = {};
  for (const EventRow& row : rows) cycles[static_cast<size_t>(row.event)] = row.cycles;
  return cycles;
}

// clang-format off
/// A core with one product of 512 bits a cycle, as Zen 4. Events other than products have the cycles
/// that were fitted for Golden Cove: no sweep of another core is there yet.
constexpr ConvolutionCosts generic_costs = {
    .cycles = cycles_of({
        {cache_block, 420},
        {kernel_call, 177},
        {register_tile, 1.72},
        {k_loop, 1},
        {unaligned_load, 0.139},
        {weight_broadcast, 0.052},
        {l2_vector, 0.747},
        {l2_panel_line, 0.363},
        {operand_load, 0.126},
        {stored_vector, 2.66},
        {split_stored_vector, 3.49},
        {stalled_tile, 26.8},
        {nhwc_stored_vector, 5.46},
        {staged_vector, 0.686},
        {transposed_channel, 3.84},
        {transposed_output, 0.851},
        {packed_row, 1.81},
        {packed_nhwc, 4.58},
        {packed_nchw4c, 0.578},
        {packed_by_kernel, 0.485},
        {packed_columns4, 0.326},
        {packed_im2col, 0.377},
        {packed_by_loops, 0.648},
        {packed_one_by_one, 2.19},
        {copied_row, 1.59},
        {copied_byte, 0.0948},
        {converted_byte, 0.458},
        {copied_column, 5.2},
        {packed_weight, 1.71},
        {listed_weight, 3.7},
        {summed_byte, 0.784},
        {slide_load, 0.37},
        {slide_shuffle, 1.11},
        {slide_product, 0.375},
        {slide_store, 1.99},
        {slide_position, 2.58},
        {slide_band, 19.3},
        {gather_load, 0.553},
        {gather_shuffle, 0.296},
        {gather_product, 1.21},
        {gather_store, 1.52},
        {gather_place, 12.1},
        {gathered_weight, 7.85},
        {piecewise_output, 0.3},
    }),
};

/// Fitted by tools/fit-convolution-costs to bench/data/sweep-granite-rapids*.csv.
constexpr ConvolutionCosts golden_cove_costs = {
    .product_512 = 0.5,
    .product_256 = 0.5,
    .load = 0.5,
    .latency = 5,
    .cycles = cycles_of({
//BEGIN
        {cache_block, 420},
        {kernel_call, 177},
        {register_tile, 1.72},
        {k_loop, 1},
        {unaligned_load, 0.139},
        {weight_broadcast, 0.052},
        {l2_vector, 0.747},
        {l2_panel_line, 0.363},
        {operand_load, 0.126},
        {stored_vector, 2.66},
        {split_stored_vector, 3.49},
        {stalled_tile, 26.8},
        {nhwc_stored_vector, 5.46},
        {staged_vector, 0.686},
        {transposed_channel, 3.84},
        {transposed_output, 0.851},
        {packed_row, 1.81},
        {packed_nhwc, 4.58},
        {packed_nchw4c, 0.578},
        {packed_by_kernel, 0.485},
        {packed_columns4, 0.326},
        {packed_im2col, 0.377},
        {packed_by_loops, 0.648},
        {packed_one_by_one, 2.19},
        {copied_row, 1.59},
        {copied_byte, 0.0948},
        {converted_byte, 0.458},
        {copied_column, 5.2},
        {packed_weight, 1.71},
        {listed_weight, 3.7},
        {summed_byte, 0.784},
        {slide_load, 0.37},
        {slide_shuffle, 1.11},
        {slide_product, 0.375},
        {slide_store, 1.99},
        {slide_position, 2.58},
        {slide_band, 19.3},
        {gather_load, 0.553},
        {gather_shuffle, 0.296},
        {gather_product, 1.21},
        {gather_store, 1.52},
        {gather_place, 12.1},
        {gathered_weight, 7.85},
        {piecewise_output, 0.3},
//END
    }),
};
// clang-format on

/// In the order of `Core`.
constexpr std::array<CoreTuning, core_count> table = {{
    {.core = Core::generic, .convolution = generic_costs},
    {.core = Core::zen4, .convolution = generic_costs},
    {.core = Core::zen5, .convolution = generic_costs},
    {.core = Core::golden_cove, .convolution = golden_cove_costs},
}};

constexpr bool is_sorted_by_core() {
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].core != static_cast<Core>(i)) return false;
  }
  return true;
}
static_assert(is_sorted_by_core());

constexpr std::array<std::string_view, 1> port_models = {"zen4"};

}  // namespace

std::string_view name_of(PortModel model) { return name_in(port_models, model); }

const CoreTuning& tuning_of(Core core) {
  const auto number = static_cast<size_t>(core);
  return table[number < table.size() ? number : 0];
}

const CoreTuning& Target::tuning() const { return tuning_of(core); }

}  // namespace castor::jit
