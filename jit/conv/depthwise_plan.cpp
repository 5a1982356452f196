// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/depthwise_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/support/integer_math.hpp"
#include "jit/conv/depthwise_tables.hpp"
#include "jit/conv/epilogue/epilogue.hpp"

namespace castor::jit {

namespace {

constexpr int taps_of_dword = 4;
constexpr int64_t max_source_bytes = 64;

void set_source_bytes(DepthwisePlan& plan, int64_t span) {
  plan.form.source_bytes = span <= 32 ? 32 : 64;
}

/// Fewer lanes where half as many bytes are read for them, since these are more often in a single
/// cache line, and a row gets no more vectors.
void narrow_sources(DepthwisePlan& plan, int64_t window) {
  const ConvolutionAxis& axis = plan.columns;
  if (window > max_source_bytes / 2) return;
  const int64_t lanes = (max_source_bytes / 2 - window) / axis.stride + 1;
  if (lanes >= plan.lanes) return;
  if (ceil_div(axis.output, lanes) > ceil_div(axis.output, int64_t{plan.lanes})) return;
  plan.lanes = static_cast<int>(lanes);
}

/// One source for all taps of a row where it can hold them, else one for each dword. False: none.
bool choose_sources(DepthwisePlan& plan) {
  const ConvolutionAxis& axis = plan.columns;
  DepthwiseForm& form = plan.form;
  constexpr int64_t max_taps = int64_t{DepthwiseColumns::max_dwords} * taps_of_dword;
  if (axis.kernel > max_taps || std::max(axis.dilation, axis.stride) > max_source_bytes) {
    return false;
  }
  form.dwords = static_cast<int>(ceil_div(axis.kernel, taps_of_dword));
  form.repeats_last_tap = axis.kernel % taps_of_dword == 1 && !form.has_words();
  const int64_t lanes = std::min<int64_t>(DepthwiseColumns::max_lanes, axis.output);
  int64_t window = axis.window();
  if ((lanes - 1) * axis.stride + window > max_source_bytes && form.dwords > 1) {
    window = (taps_of_dword - 1) * axis.dilation + 1;
    form.dword_step = static_cast<int>(taps_of_dword * axis.dilation);
  }
  if (window > max_source_bytes) return false;
  plan.lanes =
      static_cast<int>(std::min<int64_t>(lanes, (max_source_bytes - window) / axis.stride + 1));
  narrow_sources(plan, window);
  set_source_bytes(plan, (plan.lanes - 1) * axis.stride + window);
  return true;
}

/// Cycles of a plane with so many output rows in a vector: rows are shuffled and multiplied.
double cycles_of(const DepthwisePlan& plan, int64_t rows_of_vector) {
  constexpr double store = 2;
  constexpr double other_columns = 25;  // where the last vector has fewer rows
  const int64_t kernel = plan.rows.kernel;
  const auto taken = static_cast<double>(std::min(kernel, rows_of_vector * plan.rows.stride));
  const double products = static_cast<double>(kernel * plan.form.dwords);
  return static_cast<double>(ceil_div(plan.rows.output, rows_of_vector)) *
             (taken * (1 + plan.form.dwords) + products + store) +
         (plan.rows.output % rows_of_vector == 0 ? 0 : other_columns);
}

/// Output rows that share a vector: as cheap as may be.
int64_t best_rows(DepthwisePlan& plan) {
  const ConvolutionAxis& columns = plan.columns;
  const bool in_order = plan.rows.dilation == 1 || plan.rows.kernel == 1;
  if (columns.output > plan.lanes || !in_order || plan.form.dword_step != 0) return 1;
  const int64_t window = columns.window() + (columns.output - 1) * columns.stride;
  const auto span = [&](int64_t rows) {
    return (rows - 1) * plan.rows.stride * columns.input + window;
  };
  const int64_t max = std::min(DepthwiseColumns::max_lanes / columns.output, plan.rows.output);
  int64_t best = 1;
  for (int64_t rows = 2; rows <= max && span(rows) <= max_source_bytes; ++rows) {
    if (cycles_of(plan, rows) < cycles_of(plan, best)) best = rows;
  }
  set_source_bytes(plan, span(best));
  return best;
}

/// The rows that blocks take. False: too many.
bool choose_rows(DepthwisePlan& plan) {
  constexpr int64_t max = 64;
  const ConvolutionAxis& axis = plan.rows;
  plan.rows_of_vector = static_cast<int>(best_rows(plan));
  const AxisPhases phases = phases_of(axis);
  if (axis.kernel > max || phases.stride > max) return false;
  const bool one = axis.kernel == 1;
  plan.phases = phases.count;
  plan.row_step = phases.step * (one ? plan.rows_of_vector : 1) * plan.columns.input;
  plan.form.rows = static_cast<int>(axis.kernel);
  plan.form.row_stride = one ? 1 : static_cast<int>(phases.stride) * plan.rows_of_vector;
  return true;
}

/// Rows of a block: as many as code of a good length does, all blocks of about a size. False: there
/// are too many blocks.
bool choose_blocks(DepthwisePlan& plan, const BlockRows& rows) {
  constexpr int64_t max_products = 448;
  constexpr int64_t max_input_rows = 64;
  constexpr int64_t max_blocks = 4096;  // beyond which a plan is not worth its memory
  const DepthwiseForm& form = plan.form;
  const int64_t outputs = ceil_div(plan.rows.output / plan.rows_of_vector, plan.phases);
  const int64_t max_of_memory =
      DepthwisePlan::max_block_outputs / (plan.output_step() * plan.columns.output);
  int64_t max = std::min(rows.max, max_products / (form.rows * form.dwords));
  max = std::min({max, max_of_memory, (max_input_rows - form.rows) / form.row_stride + 1});
  max = std::clamp<int64_t>(max, 1, outputs);
  const int64_t even = ceil_div(outputs, ceil_div(outputs, max));
  const int64_t stepped = ceil_div(even, rows.step) * rows.step;
  plan.block_outputs = static_cast<int>(stepped > max ? even : stepped);
  return ceil_div(outputs, plan.block_outputs) <= max_blocks;
}

/// Weights may need window sums.
bool fits_with_window_sums(const DepthwiseForm& form, const Target& target) {
  DepthwiseForm with = form;
  with.subtracts_window_sums = !form.has_words();
  if (with.subtracts_window_sums) with.signed_input = std::exchange(with.flips_input, false);
  return fits(with, target) && fits(form, target);
}

/// Column positions and blocks of rows. Vectors at the lower border may have fewer rows. False: a
/// shuffle cannot make one of them, or there are too many.
bool make_tables(DepthwisePlan& plan, const Target& target) {
  DepthwiseTables tables(plan, target);
  const int rows_of_vector = plan.rows_of_vector;
  const int64_t whole = plan.rows.output / rows_of_vector;
  if (!tables.add_columns(rows_of_vector)) return false;
  for (int64_t phase = 0; phase < std::min(plan.phases, whole); ++phase) {
    const int64_t outputs = ceil_div(whole - phase, plan.phases);
    if (!tables.add_blocks(phase, outputs, rows_of_vector)) return false;
  }
  const int64_t rest = plan.rows.output % rows_of_vector;
  if (rest == 0) return fits_with_window_sums(plan.form, target);
  return tables.add_columns(rest) && tables.add_blocks(whole * rows_of_vector, 1, rest) &&
         fits_with_window_sums(plan.form, target);
}

}  // namespace

std::optional<DepthwisePlan> plan_depthwise(const ConvolutionGeometry& geometry, bool x_is_signed,
                                            const Target& target, const BlockRows& rows) {
  if (geometry.layout != ConvolutionLayout::nchw || geometry.group_channels() != 1 ||
      !target.has_avx512()) {
    return std::nullopt;
  }
  DepthwisePlan plan;
  plan.geometry = geometry;
  set_plane_axes(plan);
  if (!has_near_positions(plan.rows, plan.columns, 1)) return std::nullopt;
  plan.form.flips_input = x_is_signed;
  plan.form.engine = product_engine_of(target);
  if (!choose_sources(plan) || !choose_rows(plan) || !choose_blocks(plan, rows)) {
    return std::nullopt;
  }
  if (!fits_with_window_sums(plan.form, target) || !make_tables(plan, target)) return std::nullopt;
  return plan;
}

std::optional<DepthwisePlan> plan_depthwise_with(
    const TileEpilogue& epilogue, const ConvolutionGeometry& geometry, bool x_is_signed,
    const Target& target, const std::function<bool(const DepthwisePlan&)>& serves) {
  constexpr int64_t min_rows = 4;  // and what is packed at a time
  if (epilogue.rows_of_channels) return std::nullopt;
  BlockRows rows = {.step = vectors_of_packs(epilogue) > 0 ? min_rows : 1};
  for (; rows.max >= min_rows; rows.max /= 2) {
    auto plan = plan_depthwise(geometry, x_is_signed, target, rows);
    if (!plan || !plan->is_one_pass()) break;
    if (serves(*plan)) return plan;
  }
  return std::nullopt;
}

std::string print(const DepthwisePlan& plan, const Target&) {
  const DepthwiseForm& form = plan.form;
  const ConvolutionGeometry& geometry = plan.geometry;
  std::string text =
      fmt::format("  depthwise {} channels to {}, {} {} of the filter\n", geometry.channels,
                  geometry.out_channels, plan.slices, plan.slices == 1 ? "slice" : "slices");
  text += fmt::format("  vectors  {} columns of {} {}, sources of {} B\n", plan.lanes,
                      plan.rows_of_vector, plan.rows_of_vector == 1 ? "row" : "rows",
                      form.source_bytes);
  text += fmt::format("  filter   {} rows of {} {} of taps, {} B packed for an output channel\n",
                      form.rows, form.dwords, form.dwords == 1 ? "dword" : "dwords",
                      4 * form.weight_dwords());
  for (const DepthwiseBand& band : plan.bands) {
    const SlidingBlock& of = form.blocks[band.block];
    text += fmt::format("  band     from row {}: {} {} of {} vectors, {} input rows, {} outside\n",
                        band.row, band.blocks, band.blocks == 1 ? "block" : "blocks", of.outputs,
                        form.input_rows(of), of.above + of.below);
  }
  return text;
}

}  // namespace castor::jit
