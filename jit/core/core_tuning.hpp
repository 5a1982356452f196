// SPDX-License-Identifier: Apache-2.0
// The tuning table: what planners, cost models and the division into tasks know about a core.
//
// Planners read it, emitters never do: a number that shapes code is a field of the kernel's spec,
// which the planner sets. Numbers that bound what is possible or how much memory is used are no
// tuning: they stay where the code is. The values here are the generic row's; another row
// (core_tuning.cpp) names only what differs. "Measure" names the filter of castor-bench
// (--benchmark_filter='FILTER') that shows the effect of a number; what has none follows from the
// sizes of caches and registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "jit/core/core.hpp"
#include "jit/core/cost_events.hpp"

namespace castor::jit {

/// Microarchitectures that the port model (jit/listing/port_model.hpp) has figures for.
enum class PortModel : uint8_t { zen4, zen5, golden_cove, redwood_cove };
inline constexpr size_t port_model_count = 4;
/// "zen4"; "unknown" of a number that is none.
std::string_view name_of(PortModel model);

/// Sizes of cache blocks of dense convolutions. Shares of a cache are in eighths. Measure:
/// ConvInteger/.*, with CASTOR_ISA for each tier.
struct BlockTuning {
  /// Bounds of the L2 bytes that blocks count on, whatever the core has: the upper one keeps all
  /// scratch below 1 MiB.
  int64_t min_l2_bytes = int64_t{128} << 10;
  int64_t max_l2_bytes = int64_t{1} << 20;
  int64_t packed_l2_eighths = 3;        ///< packed input or copied rows, next to weights
  int64_t output_l2_eighths = 2;        ///< outputs that are transposed after the kernels
  int64_t channel_tile_l2_eighths = 4;  ///< NHWC outputs that several channel tiles write in turn
  int64_t phase_l2_eighths = 6;         ///< planes of all stride phases, before these cost more
  int64_t packed_l1_eighths = 5;        ///< packed input of few channels, between channel tiles
  /// Weights that tile registers, or slabs of an epilogue, go through often.
  int64_t near_weights_l2_eighths = 5;
  int64_t im2col_l1_eighths = 16;  ///< im2col rows, next to the outputs that pass through L1
  /// Output pixels of a block that stays in L1, so that each channel tile has enough to do.
  int64_t min_l1_pixels = 1024;
  int64_t min_l1_shifts = 3;  ///< its rows, in units of the rows that neighbouring blocks share
  int64_t min_im2col_pixels = 1536;  ///< output pixels of a block of im2col rows
  int64_t min_columns = 16;          ///< output columns of a part of a row: a vector
  int64_t min_plane_vectors = 4;     ///< planes of fewer vectors are not padded to whole vectors
};

/// Choices among plans and tiles of dense convolutions. Measure: ConvInteger/.*.
struct DenseTuning {
  int max_channel_vectors = 6;  ///< vectors of output channels in a register tile
  /// K steps begin at units of the input's pixels where a unit has at least this many bytes.
  int64_t min_aligned_bytes = 16;
  /// The only tile of channels reads the input once up to that many channels, by rows of at least
  /// that many pixels.
  int64_t max_input_once_channels = 16;
  int min_input_once_pixels = 32;
  double max_run_growth = 1.25;  ///< k groups of runs along input rows, relative to packed planes
  int64_t max_prefetched_k_steps = 8;  ///< outputs are prefetched by kernels of at most this number
  double min_split_gain = 0.5;     ///< a plane per tap must fill less than this part of the others
  double oversized_factor = 1000;  ///< weight of packed values in planes larger than their L2 share
  double l1_planes_share = 0.75;   ///< planes of this part of L1 stay there between k steps
  int64_t max_dead_lanes =
      16;  ///< rows are padded to whole vectors if 1 lane of this number is dead
  /// Vectors of a row group that is stored before the next one's peeled k steps. A core takes up
  /// about a dozen stores whose data are still to be computed (Golden Cove).
  int stored_group_vectors = 8;
  /// Peeled k steps: as many as keep products going until a group's stores have been taken up.
  /// Golden Cove: 8 cycles instead of 40 after the last k step of two dozen accumulators.
  int max_peeled_k_steps = 4;
  /// Transposed tiles are shuffled in registers, where a core shuffles beside two products a cycle;
  /// else parts of their rows are loaded from memory.
  bool transposes_registers = false;
  /// Rows up to which matrices of a batch are multiplied by a transposed b as it is stored, by dot
  /// kernels: beyond these dense ones repay its copy.
  int64_t max_rows_by_image = 256;
  /// Window sums of few channels: what a vector of a window's row costs, where an element that is
  /// added by itself costs 1. Between the stems of ResNet-50, which take as long either way, and of
  /// MobileNet, which gain half (channels last, Zen 5).
  double summed_run_vector = 0.7;
};

/// Depthwise NCHW kernels, whose rows are straight-line code. Measure:
/// ConvInteger/.*depthwise.*.
struct DepthwiseTuning {
  int64_t max_range_products = 448;       ///< products of a row range, which all stand in the code
  int64_t max_range_outputs = 32;         ///< output rows of a row range
  int64_t max_input_rows = 64;            ///< input rows of a row range
  size_t max_ranges = 12;                 ///< row ranges of a kernel
  size_t max_epilogue_operations = 1500;  ///< lane operations of all stores of a kernel
  size_t max_epilogue_bytes = size_t{16} << 10;  ///< code of a kernel with an epilogue
  int prefetch_bytes = 4096;  ///< how far ahead input is prefetched where a row has few products
  int max_prefetched_outputs = 16;  ///< vectors of a range below stores that are prefetched
};

/// Grouped and depthwise NHWC kernels. Measure: ConvInteger/grouped.* and
/// ConvInteger/.*depthwise.*/nhwc.
struct GroupedNhwcTuning {
  int max_row_products = 256;        ///< products of an output row, which all stand in the code
  int64_t max_range_products = 224;  ///< products of a row range
  int64_t max_masked_range_products = 300;  ///< the same where all of its loads are masked
  int64_t max_range_outputs = 8;            ///< output rows of a row range
  int64_t max_input_rows = 64;              ///< input rows of a row range
  size_t max_ranges = 16;                   ///< row ranges of a kernel
  /// A place makes fewer outputs if it costs less than this part: short row ranges need many.
  double max_fewer_outputs_cost = 0.95;
  /// Products of few accumulators: this part of the latency (ConvolutionCosts) shows.
  double shown_latency = 0.8;
};

/// Forms of conversions.
struct ConversionTuning {
  /// A permutation of words or bytes of two vectors occupies the shuffle port for two cycles
  /// (Golden Cove; one on Zen 4). So 16-bit lanes are parted into bytes by shifts and merges,
  /// vectors are narrowed by packs, bf16 becomes f8e5m2 by way of f16, and f4e2m1 by tables of
  /// bytes.
  /// Measure: Elementwise/quantize_.*bf16.
  bool avoids_two_source_permutes = false;
  /// An extreme of 64-bit integers takes two operations in one pipe (Golden Cove; one in one of two
  /// on Zen 4), where f64 has them in one. Measure: Convert/f64/i.*.
  bool avoids_wide_extremes = false;
};

/// What loops over tensors beyond L1 prefetch. Measure:
/// (Convert|Elementwise|Reduce)/.*256KiB. (In L1 a loop in C took 1.17 of the time.)
struct PrefetchTuning {
  int input_bytes = 0;   ///< how far ahead inputs are read; 0: they are not
  int output_bytes = 0;  ///< and outputs, for writing
};

/// Forms of reductions.
struct ReductionTuning {
  /// Extremes of floats are found by instructions for floats, and NaNs by another: three in two
  /// pipes, where integers are compared in one (Golden Cove; in two on Zen 4). Measure:
  /// Reduce/min_max.*.
  bool compares_floats = false;
};

/// How convolutions are divided into tasks and calls of kernels. Measure:
/// ConvIntegerThreads/.*.
struct PartitionTuning {
  int64_t max_epilogue_elements = 4096;  ///< results that a called epilogue takes: half of L1
  /// Rows of channels that a called epilogue takes are multiples: an iteration of its code with
  /// 8-bit results, or two. Measure: ConvInteger/.*/nhwc/requantize.
  int64_t epilogue_row = 64;
  int64_t sliding_outputs = 16384;              ///< outputs of a sliding kernel's unit of work
  int64_t min_units = 16;                       ///< units of a call, so that tasks end together
  int64_t max_panel_bytes = int64_t{24} << 10;  ///< grouped NHWC weights of a unit: half of L1
};

/// What one thread does in a nanosecond with tensors in L2, to decide whether splitting work pays;
/// rather too fast than too slow. Measured on Emerald Rapids.
struct WorkRates {
  // (Convert|Elementwise|Requantize)/.*256KiB
  double bytes = 64;             ///< read and written by a nest
  double instructions = 8;       ///< lane operations, a vector each
  double strided_elements = 2;   ///< elements of strided operands, which are copied first
  double bitwise_elements = 4;   ///< sub-byte elements from any bit on, unpacked first
  double table_bytes = 32;       ///< looked up in tables of bytes by requantizations
  double gathered_elements = 4;  ///< entries of tables that are read one by one (LookUp/.*)
  // ConvInteger/.*
  double products = 400;          ///< one input by one weight of a convolution
  double convolution_bytes = 16;  ///< inputs and outputs of a convolution
};

/// Cycles of the instructions of tile registers (AMX), fitted to tables of castor-sweep --tiles
/// --isa amx on Granite Rapids, whose clock is lower with AMX than with other code: hence 20 cycles
/// for a product that takes 16 of its own.
struct TileCosts {
  double product_row = 1.24;       ///< a product, for each of its rows
  double min_product_rows = 9.25;  ///< it takes as long as one of that many rows at least
  double load = 4.5;               ///< a tile that a k step loads
  double l2_load = 20.6;           ///< what it takes longer from L2
  double far_load = 136;           ///< or from beyond L2
  double split_load = 31;          ///< or where all rows cross cache lines
  /// Fraction of loads from L2 that shows beside products.
  double shown_share = 0.25;
  double step = 1.5;           ///< a k step
  double tile = 20;            ///< a register tile
  double hidden_share = 0.38;  ///< fraction of products' cycles, beside which results are free
  // Results, by row of a tile of sums:
  double stored_vector = 5.3;   ///< a vector of channels
  double stored_pixel = 1.5;    ///< a pixel, for all vectors
  double spread_pixel = 1.2;    ///< the same where the next tile of channels comes after all pixels
  double far_spread_pixel = 9;  ///< and if output channels are at least as many as the next value
  int64_t far_spread_channels = 256;
  double transposed_vector = 7;  ///< a vector of channels that is transposed
  double applied_vector = 4.5;   ///< the same, what it takes longer with an epilogue
  double spread_vector = 2.5;    ///< a vector of pixels beside rows of weights
  double split_vector = 9;       ///< the same across two cache lines
  double partial_vector = 25;    ///< the last vector of a row that an epilogue makes, not whole
  /// A channel's pixels, where the next tile of channels follows: each goes to another page.
  double spread_channel = 2.8;
  double summed_vector = 9.8;  ///< a vector of channels from which a window sum is subtracted
  /// Part of L1 for a register tile's pixels, beside which weights are fetched to L1.
  double fetched_l1_share = 0.375;
  /// Part of L1 in which weights of a filter's window and the window stay.
  double window_l1_share = 0.85;
  /// K steps from which on products without floats of vectors beside them are slow.
  double min_idle_k_steps = 12;
  /// Pixels of a block at least, beside which reading all weights once takes little.
  int64_t min_block_pixels = 256;
  /// Packed pixels of a block beside rows of weights, and bounds of their number, 768 at
  /// most.
  int64_t block_column_bytes = int64_t{64} << 10;
  int64_t min_block_columns = 64;
  int64_t max_block_columns = 256;
  double calls = 3;  ///< a block's calls of kernels, which configure tiles, in others' calls
  /// Interleaving pixels and adding them up, which zero points of weights want, in the time of
  /// interleaving alone.
  double summed_interleaving = 1.3;
};

/// What bounds K loops of convolutions on the core, and how many cycles everything else takes that
/// a candidate's cost counts. Measure: castor-sweep.
struct ConvolutionCosts {
  double product_512 = 1;    ///< cycles from one product of 512 bits to the next
  double product_256 = 0.5;  ///< or one of 256 bits
  double load = 0.5;         ///< cycles from one vector load to the next
  double instruction = 0;    ///< or one instruction of a K loop; 0: they are never the bound
  double latency = 10;       ///< cycles from one product to the next of one accumulator
  double add_latency = 1;    ///< the same where products of i16 pairs are added to it apart
  TileCosts tiles{};
  EventCycles cycles = {};
};

/// A row.
struct CoreTuning {
  Core core = Core::generic;
  PortModel port_model = PortModel::zen4;
  BlockTuning block{};
  DenseTuning dense{};
  DepthwiseTuning depthwise{};
  GroupedNhwcTuning grouped_nhwc{};
  ConversionTuning conversion{};
  PrefetchTuning prefetch{};
  ReductionTuning reduction{};
  PartitionTuning partition{};
  WorkRates rates{};
  ConvolutionCosts convolution{};
};

/// The row of the core; the generic one of a number that is none.
const CoreTuning& tuning_of(Core core);

}  // namespace castor::jit
