// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/conv_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "jit/conv/conv_planning.hpp"
#include "jit/conv/cost/costs.hpp"
#include "jit/conv/plane_axes.hpp"

namespace castor::jit {

namespace {

ConvPhases phases_of(const ConvolutionAxis& axis) {
  ConvPhases result;
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    result.phases.push_back(tap * axis.dilation % axis.stride);
  }
  std::sort(result.phases.begin(), result.phases.end());
  result.phases.erase(std::unique(result.phases.begin(), result.phases.end()), result.phases.end());
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    const auto at = std::lower_bound(result.phases.begin(), result.phases.end(),
                                     tap * axis.dilation % axis.stride);
    result.of_tap.push_back(at - result.phases.begin());
    result.shifts.push_back(tap * axis.dilation / axis.stride);
    result.max_shift = std::max(result.max_shift, result.shifts.back());
  }
  return result;
}

/// Where taps lie so far apart that what is between them would fill planes: a plane for each tap.
ConvPhases phases_by_tap(const ConvolutionAxis& axis) {
  ConvPhases result;
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    result.phases.push_back(tap * axis.dilation);
    result.of_tap.push_back(tap);
    result.shifts.push_back(0);
  }
  return result;
}

/// Lines of the output are worth being fetched behind so many taps: these are done before the lines
/// are there. Behind more the stores find the time, and fetching takes it from the loads.
constexpr int64_t max_prefetched_taps = 8;

/// The register tiles that a pixel-vectorised plan may have.
std::vector<DenseTile> pixel_tiles(const ConvPlan& plan, const Target& target) {
  const int64_t channels = plan.geometry.group_out_channels();
  const int64_t vectors = plan.line_vectors(plan.block);
  std::vector<DenseTile> tiles;
  for (int m = 1; m <= std::min<int64_t>(channels, 16); ++m) {
    for (int v = 1; v <= std::min<int64_t>(vectors, 8); ++v) {
      const DenseTile tile = {.engine = plan.engine, .channels = m, .vectors = v};
      if (fits(tile, target)) tiles.push_back(tile);
    }
  }
  return tiles;
}

/// Dwords that filling the planes of all blocks writes; those of planes that are too large count
/// many times.
double filled_dwords(const ConvPlan& plan) {
  const int64_t max_bytes = second_cache(plan.caches) * 3 / 4;
  constexpr double dearer = 1000;
  const double rows = static_cast<double>(plan.block.rows + plan.row_phases.max_shift);
  const double columns = static_cast<double>(plan.block.columns + plan.column_phases.max_shift);
  const double planes = static_cast<double>(plan.slices * plan.dwords * plan.phase_planes());
  const auto blocks = static_cast<double>(ceil_div(plan.rows.output, plan.block.rows) *
                                          ceil_div(plan.columns.output, plan.block.columns));
  const double dwords = planes * rows * columns;
  return dwords * blocks * (4 * dwords > static_cast<double>(max_bytes) ? dearer : 1);
}

/// The taps of a row as an axis: each takes as many columns as a dword holds of them.
ConvolutionAxis column_taps(const ConvPlan& plan) {
  ConvolutionAxis axis = plan.columns;
  if (plan.dwords_hold != DwordsHold::columns) return axis;
  axis.dilation = channels_of_k_group(plan.engine);
  axis.kernel = ceil_div(axis.kernel, axis.dilation);
  return axis;
}

/// Phases that taps share, or a plane for each tap along one axis or both where that leaves less
/// than half to fill; and the blocks that follow.
void choose_phases(ConvPlan& plan) {
  constexpr int64_t max_shift = int64_t{1} << 24;
  constexpr double gain = 0.5;
  const ConvPhases rows[] = {phases_of(plan.rows), phases_by_tap(plan.rows)};
  const ConvPhases columns[] = {phases_of(column_taps(plan)), phases_by_tap(column_taps(plan))};
  double min = -1;
  ConvPlan best = plan;
  for (const ConvPhases& of_rows : rows) {
    for (const ConvPhases& of_columns : columns) {
      if (of_rows.max_shift > max_shift || of_columns.max_shift > max_shift) continue;
      plan.row_phases = of_rows;
      plan.column_phases = of_columns;
      choose_block(plan);
      const double filled = filled_dwords(plan);
      if (min >= 0 && filled >= gain * min) continue;
      min = filled;
      best = plan;
    }
  }
  plan = std::move(best);
}

/// Lets kernels loop over k groups where the offsets of all would be too many to list: in planes of
/// channels every k group has the same offsets from its first plane.
void choose_k_groups(ConvPlan& plan) {
  const int64_t k_groups = plan.slices * plan.dwords;
  const auto taps =
      static_cast<int64_t>(plan.row_phases.shifts.size() * plan.column_phases.shifts.size());
  const bool may_loop =
      plan.lanes_hold == ConvLanes::pixels && plan.dwords_hold == DwordsHold::channels;
  if (!may_loop || k_groups <= max_listed_taps / taps) return;
  plan.k_groups = k_groups;
  plan.k_group_step = 4 * plan.phase_planes() * plan.plane_dwords;
}

void list_taps(ConvPlan& plan) {
  choose_k_groups(plan);
  const int64_t listed = plan.slices * plan.dwords / plan.k_groups;  // of all k groups, or one
  const auto row_count = static_cast<int64_t>(plan.row_phases.phases.size());
  const auto column_count = static_cast<int64_t>(plan.column_phases.phases.size());
  for (int64_t part = 0; part < listed; ++part) {
    for (size_t r = 0; r < plan.row_phases.shifts.size(); ++r) {
      for (size_t s = 0; s < plan.column_phases.shifts.size(); ++s) {
        const int64_t plane = (part * row_count + plan.row_phases.of_tap[r]) * column_count +
                              plan.column_phases.of_tap[s];
        const int64_t offset = plane * plan.plane_dwords + plan.row_phases.shifts[r] * plan.pitch +
                               plan.column_phases.shifts[s];
        plan.taps.push_back(static_cast<int32_t>(4 * offset));
      }
    }
  }
}

/// The weights of neighbouring columns that each tap takes.
void list_weights_of_columns(ConvPlan& plan) {
  const int64_t held = channels_of_k_group(plan.engine);
  for (int64_t slice = 0; slice < plan.slices; ++slice) {
    for (int64_t channel = 0; channel < plan.dwords; ++channel) {
      for (int64_t r = 0; r < plan.rows.kernel; ++r) {
        const int64_t row =
            ((channel * plan.slices + slice) * plan.rows.kernel + r) * plan.columns.kernel;
        for (int64_t s = 0; s < plan.columns.kernel; s += held) {
          TapWeights weights = {-1, -1, -1, -1};
          for (int64_t i = 0; i < std::min(held, plan.columns.kernel - s); ++i) {
            weights[static_cast<size_t>(i)] = static_cast<int32_t>(row + s + i);
          }
          plan.tap_weights.push_back(weights);
        }
      }
    }
  }
}

/// Whether dwords of columns are possible, and make fewer taps than dwords of channels.
bool has_few_channels(const ConvPlan& plan) {
  constexpr int64_t max_stride = 16;
  constexpr int64_t max_weights = int64_t{1} << 30;
  const int64_t held = channels_of_k_group(plan.engine);
  const int64_t channels = plan.geometry.group_channels();
  if (plan.geometry.layout != ConvolutionLayout::nchw || channels >= held) return false;
  if (plan.columns.kernel == 1 || plan.columns.dilation != 1) return false;
  if (plan.columns.stride > max_stride || plan.columns.kernel > max_weights) return false;
  const int64_t rows = plan.slices * plan.rows.kernel;
  if (rows > max_weights / plan.columns.kernel / channels) return false;
  return channels * ceil_div(plan.columns.kernel, held) < plan.columns.kernel;
}

/// A plane for each dword of a window; there is nothing between output pixels.
void choose_windows(ConvPlan& plan) {
  const int64_t taps = plan.geometry.group_channels() * plan.rows.kernel * plan.columns.kernel;
  plan.dwords = ceil_div(taps, 4);
  plan.row_phases = plan.column_phases = {.phases = {0}, .of_tap = {0}, .shifts = {0}};
  choose_block(plan);
  list_taps(plan);
  for (int32_t first = 0; first < taps; first += 4) {
    TapWeights weights = {-1, -1, -1, -1};
    for (int32_t i = 0; i < std::min<int64_t>(4, taps - first); ++i) {
      weights[static_cast<size_t>(i)] = first + i;
    }
    plan.tap_weights.push_back(weights);
  }
}

/// Whether output positions are input positions.
bool is_pointwise(const ConvolutionAxis& axis) {
  return axis.kernel == 1 && axis.stride == 1 && axis.pad_begin == 0 && axis.pad_end == 0;
}

/// Whether the pixels of a block follow each other in whole dwords of channels, and fill a tile.
bool may_take_input(const ConvPlan& plan, const Target& target) {
  const ConvolutionGeometry& geometry = plan.geometry;
  const int64_t tile_pixels = int64_t{plan.tile.vectors} * plan.lanes;
  return geometry.layout == ConvolutionLayout::nchw && geometry.axes.size() <= 2 &&
         plan.takes_whole_rows() && plan.block.rows * plan.block.columns >= tile_pixels &&
         plan.dwords_hold == DwordsHold::channels && !plan.rows_are_lines && plan.k_groups == 1 &&
         geometry.group_channels() % 4 == 0 && target.supports(Feature::avx512_vbmi);
}

/// Whether windows can be laid out, and make fewer taps than dwords of channels.
bool has_small_windows(const ConvPlan& plan, const Target& target) {
  constexpr int64_t max = 64;
  const ConvolutionGeometry& geometry = plan.geometry;
  if (geometry.layout != ConvolutionLayout::nchw || geometry.axes.size() > 2) return false;
  if (plan.engine != ProductEngine::u8_i8_dot || geometry.group_channels() > max) return false;
  for (const ConvolutionAxis& axis : {plan.rows, plan.columns}) {
    if (std::max({axis.kernel, axis.stride, axis.dilation}) > max) return false;
  }
  const PackInput spec = pack_input_spec(plan);
  return fits(spec, target) &&
         spec.k_groups() < plan.dwords * plan.rows.kernel * plan.columns.kernel;
}

/// Whether rows that are lines of their own leave few lanes empty, so that it is worth trying.
bool has_whole_vectors(const ConvPlan& plan) {
  constexpr int64_t max_lost = 16;  // of so many lanes, one
  const int64_t lanes = ceil_div(plan.columns.output, plan.lanes) * plan.lanes;
  return plan.geometry.layout == ConvolutionLayout::nchw && plan.rows.output > 1 &&
         (lanes - plan.columns.output) * max_lost <= lanes;
}

}  // namespace

Status check_filter(const ConvolutionGeometry& geometry) {
  int64_t max = max_filter_weights / std::max<int64_t>(geometry.group_channels(), 1);
  for (size_t axis = 0; axis < geometry.axes.size(); ++axis) {
    const int64_t kernel = geometry.axes[axis].kernel;
    if (kernel <= max) {
      max /= std::max<int64_t>(kernel, 1);
      continue;
    }
    return Error{ErrorCode::unsupported,
                 fmt::format("conv_integer: the filter has more than {} weights for each output "
                             "channel, its kernel being {} along spatial axis {}",
                             max_filter_weights, kernel, axis)};
  }
  return {};
}

ConvPlan begin_plan(const ConvolutionGeometry& geometry, const Target& target) {
  ConvPlan plan;
  plan.geometry = geometry;
  set_plane_axes(plan);
  plan.engine = product_engine_of(target);
  plan.lanes = target.vector_bits() / 32;
  plan.caches = target.caches;
  plan.dwords = ceil_div(geometry.group_channels(), channels_of_k_group(plan.engine));
  return plan;
}

void choose_planes(ConvPlan& plan) {
  if (plan.dwords_hold == DwordsHold::taps) return choose_windows(plan);
  if (plan.dwords_hold == DwordsHold::columns) plan.dwords = plan.geometry.group_channels();
  choose_phases(plan);
  list_taps(plan);
  if (plan.dwords_hold == DwordsHold::columns) list_weights_of_columns(plan);
}

PackInput pack_input_spec(const ConvPlan& plan) {
  constexpr int64_t max_stride = 65;  // code has smaller ones
  PackInput spec = {
      .layout = plan.dwords_hold,
      .engine = plan.engine,
      .column_stride = static_cast<int>(std::min<int64_t>(plan.columns.stride, max_stride))};
  if (plan.dwords_hold == DwordsHold::channels) spec.is_plain = plan.takes_whole_rows();
  if (plan.dwords_hold != DwordsHold::taps) return spec;
  spec.filter_rows = static_cast<int>(plan.geometry.group_channels() * plan.rows.kernel);
  spec.filter_columns = static_cast<int>(plan.columns.kernel);
  spec.dilation = static_cast<int>(plan.columns.dilation);
  return spec;
}

void set_channel_tiles(ConvPlan& plan, int tile_channels) {
  const int64_t channels = plan.geometry.group_out_channels();
  plan.channel_tiles = ceil_div(channels, tile_channels);
  plan.last_channels = static_cast<int>(channels - (plan.channel_tiles - 1) * tile_channels);
}

namespace {

/// Gives a pixel-vectorised plan its tile, with the channels as an upper bound.
void set_pixel_tile(ConvPlan& plan, const DenseTile& tile, const Target& target) {
  plan.tile = tile;
  plan.may_take_input = may_take_input(plan, target);
  const int64_t channels = plan.geometry.group_out_channels();  // in tiles of about a size
  plan.tile.channels = static_cast<int>(ceil_div(channels, ceil_div(channels, tile.channels)));
  plan.tile.store = plan.line_has_gaps() ? StorePolicy::compressed : StorePolicy::rows;
  plan.tile.loops_k_groups = plan.k_groups > 1;
  plan.tile.prefetches_output = target.has_avx512() && plan.k_steps() <= max_prefetched_taps;
  const bool may_peel = !plan.line_has_gaps() && !plan.tile.loops_k_groups;
  plan.tile.peeled_k_steps =
      may_peel ? peeled_k_steps_of(plan.taps.size(), plan.tile.vectors, target) : 0;
  set_channel_tiles(plan, plan.tile.channels);
}

void set_cost(ConvPlan& plan, const ConvolutionProblem& problem, const Target& target) {
  const EventCycles& cycles = costs_on(target).cycles;
  plan.cost = cost_of(plan, problem, target);
  plan.cycles = plan.cost.cycles(cycles);
  plan.filling_cycles = packing_cost(plan, problem, target).cycles(cycles);
}

}  // namespace

ConvPlan plan_pixel_lanes(ConvPlan plan, const Target& target) {
  choose_planes(plan);
  const std::vector<DenseTile> tiles = pixel_tiles(plan, target);
  const double unaligned = unaligned_fraction(plan);
  const ConvolutionCosts& costs = costs_on(target);
  const auto cycles = [&](const DenseTile& tile) {
    plan.tile = tile;
    return cost_of_line(plan, unaligned, costs).cycles(costs.cycles);
  };
  set_pixel_tile(plan, *std::ranges::min_element(tiles, {}, cycles), target);
  return plan;
}

std::vector<ConvPlan> possible_plans(const ConvolutionProblem& problem, const Target& target) {
  std::vector<ConvPlan> plans = plan_channel_lanes(problem, target);
  ConvPlan lines = begin_plan(problem.geometry, target);
  const bool rows_may_be_lines = has_whole_vectors(lines);
  for (const DwordsHold what : {DwordsHold::channels, DwordsHold::columns}) {
    if (what == DwordsHold::columns && !has_few_channels(lines)) break;
    lines.dwords_hold = what;
    lines.rows_are_lines = false;
    plans.push_back(plan_pixel_lanes(lines, target));
    lines.rows_are_lines = rows_may_be_lines;
    if (rows_may_be_lines) plans.push_back(plan_pixel_lanes(lines, target));
  }
  lines.dwords_hold = DwordsHold::taps;
  lines.rows_are_lines = false;
  if (has_small_windows(lines, target)) plans.push_back(plan_pixel_lanes(lines, target));
  for (ConvPlan& plan : plans) set_cost(plan, problem, target);
  return plans;
}

std::vector<ConvPlan> with_other_tiles(const ConvPlan& plan, const ConvolutionProblem& problem,
                                       const Target& target) {
  std::vector<ConvPlan> others;
  if (plan.lanes_hold == ConvLanes::channels) return others;
  for (const DenseTile& tile : pixel_tiles(plan, target)) {
    const bool is_own = tile.channels == plan.tile.channels && tile.vectors == plan.tile.vectors;
    if (is_own) continue;
    others.push_back(plan);
    set_pixel_tile(others.back(), tile, target);
    set_cost(others.back(), problem, target);
  }
  return others;
}

bool can_apply(const ConvPlan& plan, const TileEpilogue& epilogue) {
  if (plan.lanes_hold == ConvLanes::channels) {
    return (plan.channel_tile.store == StorePolicy::transposed) != epilogue.rows_of_channels;
  }
  return plan.geometry.layout == ConvolutionLayout::nchw && !epilogue.rows_of_channels;
}

DenseTile kernel_tile(const ConvPlan& plan, bool has_epilogue) {
  DenseTile tile = plan.tile;
  tile.prefetches_output = tile.prefetches_output && !has_epilogue;
  return tile;
}

int64_t ConvPlan::line_vectors(const ConvBlock& of) const {
  return rows_are_lines ? of.rows * ceil_div(of.columns, lanes) : ceil_div(line_pixels(of), lanes);
}

bool ConvPlan::line_has_gaps() const {
  return !rows_are_lines && block.rows > 1 && pitch != block.columns;
}

int64_t ConvPlan::row_tiles(const ConvBlock& of) const {
  return ceil_div(ceil_div(of.columns, lanes), tile.vectors);
}

int64_t ConvPlan::line_tiles(const ConvBlock& of) const {
  return rows_are_lines ? of.rows * row_tiles(of) : ceil_div(line_vectors(of), tile.vectors);
}

bool ConvPlan::takes_whole_rows() const {
  return is_pointwise(rows) && is_pointwise(columns) && block.columns == columns.output &&
         pitch == columns.input;
}

int64_t ConvPlan::source_bytes() const {
  constexpr int64_t read_behind = 4;
  if (source == ConvSource::input) return 0;
  if (source == ConvSource::rows) {
    return static_cast<int64_t>(input_rows.planes.size()) * input_rows.plane_bytes + read_behind;
  }
  return 4 * (slices * dwords * phase_planes() * plane_dwords + line_pixels(block) +
              max_lanes_read_behind);
}

int64_t ConvPlan::source_row_step() const {
  return source == ConvSource::planes ? 4 * pitch : rows.stride * input_rows.row_bytes;
}

int64_t ConvPlan::source_column_step() const {
  return source == ConvSource::planes ? 4 : columns.stride * input_rows.column_bytes;
}

}  // namespace castor::jit
