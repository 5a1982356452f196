// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/conv_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "jit/conv/conv_planning.hpp"
#include "jit/conv/last_taps.hpp"

namespace castor::jit {

namespace {

/// So shall the outputs of a block, where they are put in another order behind the kernels.
int64_t most_output_bytes(const ConvPlan& plan) { return second_cache(plan.caches) / 4; }

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
    result.most_shift = std::max(result.most_shift, result.shifts.back());
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

/// The least pitch at which no pixel's taps meet another row's data. Where a row ends in padding
/// and the next one begins with some, the two share it.
int64_t least_pitch(const ConvolutionAxis& axis, const ConvPhases& phases) {
  const int64_t width = axis.output + phases.most_shift;
  int64_t pitch = 1;
  for (int64_t phase : phases.phases) {
    const int64_t first = axis.pad_begin - phase;  // of the data, before strides
    const int64_t left =
        std::clamp<int64_t>(ceil_div(std::max<int64_t>(first, 0), axis.stride), 0, width);
    const int64_t data_end = std::clamp<int64_t>(
        ceil_div(std::max<int64_t>(axis.input + first, 0), axis.stride), 0, width);
    pitch = std::max(pitch, width - std::min(left, width - data_end));
  }
  return std::max(pitch, axis.output);
}

ConvTile best_tile(ConvPlan plan, const Target& target) {
  const int64_t channels = plan.geometry.group_out_channels();
  const int64_t vectors = plan.line_vectors(plan.block);
  ConvTile best;
  double least = 0;
  for (int m = 1; m <= std::min<int64_t>(channels, 16); ++m) {
    for (int v = 1; v <= std::min<int64_t>(vectors, 8); ++v) {
      plan.tile = {.channels = m, .vectors = v};
      if (!fits(plan.tile, target)) continue;
      const double cycles = cycles_of_line(plan);
      if (least == 0 || cycles < least) {
        least = cycles;
        best = plan.tile;
      }
    }
  }
  return best;
}

/// Of a part of a row, if there are as many: a vector.
constexpr int64_t least_columns = 16;

/// Pixels of a block at the most.
int64_t pixels_of_block(const ConvPlan& plan) {
  if (plan.geometry.layout != ConvolutionLayout::nhwc) return most_block_pixels;
  const int64_t pixels = most_output_bytes(plan) / 4 / plan.geometry.group_out_channels();
  return std::clamp(pixels, least_columns, most_block_pixels);
}

/// Rows of a block of few channels, so that there is enough to do with each tile of channels, and
/// little is laid out twice.
int64_t least_near_rows(const ConvPlan& plan) {
  constexpr int64_t least_pixels = 1024;
  return std::max(ceil_div(least_pixels, plan.columns.output), 3 * plan.row_phases.most_shift);
}

/// Rows whose windows stay near the first cache, from where they are written until they are read,
/// while outputs pass through it; not so few that each tile of channels has little to do.
int64_t window_rows(const ConvPlan& plan) {
  constexpr int64_t least_pixels = 1536;
  const int64_t near = 2 * plan.caches.first / 4 / plan.dwords / plan.pitch;
  return std::max(near, ceil_div(least_pixels, plan.columns.output));
}

/// As many rows as fit, or, where not even one does, a part of a row. All blocks of about a size.
void choose_block(ConvPlan& plan) {
  const int64_t planes = plan.slices * plan.dwords * plan.phase_planes();
  const int64_t most_dwords = most_source_bytes(plan.caches) / 4 / planes;
  const int64_t extra_rows = plan.row_phases.most_shift;
  const int64_t rows = plan.rows.output;
  const int64_t columns = plan.columns.output;
  plan.block = {.rows = 1, .columns = columns};
  plan.pitch = plan.dwords_hold == DwordsHold::channels
                   ? least_pitch(plan.columns, plan.column_phases)
                   : columns + plan.column_phases.most_shift;
  if (plan.rows_are_lines) plan.pitch = ceil_div(plan.pitch, plan.lanes) * plan.lanes;
  const int64_t fitting = most_dwords / plan.pitch - extra_rows;
  const int64_t most_pixels = pixels_of_block(plan);
  if (fitting >= 1 && columns <= most_pixels) {
    const int64_t near = near_source_bytes(plan.caches) / 4 / planes / plan.pitch - extra_rows;
    const bool stays_near = plan.rows_are_lines && near >= least_near_rows(plan);
    int64_t most_rows = std::min({stays_near ? near : fitting, rows, most_pixels / columns});
    if (plan.dwords_hold == DwordsHold::taps) most_rows = std::min(most_rows, window_rows(plan));
    plan.block.rows = ceil_div(rows, ceil_div(rows, most_rows));
  } else {
    const int64_t fitting_part = most_dwords / (1 + extra_rows) - plan.column_phases.most_shift;
    const int64_t part = std::min(fitting_part, most_pixels);
    const int64_t parts =
        ceil_div(columns, std::clamp(part, std::min(least_columns, columns), columns));
    plan.block.columns = ceil_div(columns, parts);
    plan.pitch = plan.block.columns + plan.column_phases.most_shift;
  }
  plan.plane_dwords = (plan.block.rows + extra_rows) * plan.pitch + plan.column_phases.most_shift;
  if (plan.lanes_hold == ConvLanes::pixels) {
    plan.plane_dwords = ceil_div(plan.plane_dwords, plan.lanes) * plan.lanes;
  }
}

/// Dwords that filling the planes of all blocks writes; those of planes that are too large count
/// many times.
double filled_dwords(const ConvPlan& plan) {
  const auto most_bytes = static_cast<double>(second_cache(plan.caches) * 3 / 4);
  constexpr double dearer = 1000;
  const double rows = static_cast<double>(plan.block.rows + plan.row_phases.most_shift);
  const double columns = static_cast<double>(plan.block.columns + plan.column_phases.most_shift);
  const double planes = static_cast<double>(plan.slices * plan.dwords * plan.phase_planes());
  const auto blocks = static_cast<double>(ceil_div(plan.rows.output, plan.block.rows) *
                                          ceil_div(plan.columns.output, plan.block.columns));
  const double dwords = planes * rows * columns;
  return dwords * blocks * (4 * dwords > most_bytes ? dearer : 1);
}

/// The taps of a row as an axis: each takes as many columns as a dword holds of them.
ConvolutionAxis column_taps(const ConvPlan& plan) {
  ConvolutionAxis axis = plan.columns;
  if (plan.dwords_hold != DwordsHold::columns) return axis;
  axis.dilation = channels_of_dword(plan.dot);
  axis.kernel = ceil_div(axis.kernel, axis.dilation);
  return axis;
}

/// Phases that taps share, or a plane for each tap along one axis or both where that leaves less
/// than half to fill; and the blocks that follow.
void choose_phases(ConvPlan& plan) {
  constexpr int64_t most_shift = int64_t{1} << 24;
  constexpr double gain = 0.5;
  const ConvPhases rows[] = {phases_of(plan.rows), phases_by_tap(plan.rows)};
  const ConvPhases columns[] = {phases_of(column_taps(plan)), phases_by_tap(column_taps(plan))};
  double least = -1;
  ConvPlan best = plan;
  for (const ConvPhases& of_rows : rows) {
    for (const ConvPhases& of_columns : columns) {
      if (of_rows.most_shift > most_shift || of_columns.most_shift > most_shift) continue;
      plan.row_phases = of_rows;
      plan.column_phases = of_columns;
      choose_block(plan);
      const double filled = filled_dwords(plan);
      if (least >= 0 && filled >= gain * least) continue;
      least = filled;
      best = plan;
    }
  }
  plan = std::move(best);
}

void list_taps(ConvPlan& plan) {
  const auto row_count = static_cast<int64_t>(plan.row_phases.phases.size());
  const auto column_count = static_cast<int64_t>(plan.column_phases.phases.size());
  for (int64_t part = 0; part < plan.slices * plan.dwords; ++part) {
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
  const int64_t held = channels_of_dword(plan.dot);
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
  constexpr int64_t most_stride = 16;
  constexpr int64_t most_weights = int64_t{1} << 30;
  const int64_t held = channels_of_dword(plan.dot);
  const int64_t channels = plan.geometry.group_channels();
  if (plan.geometry.layout != ConvolutionLayout::nchw || channels >= held) return false;
  if (plan.columns.kernel == 1 || plan.columns.dilation != 1) return false;
  if (plan.columns.stride > most_stride || plan.columns.kernel > most_weights) return false;
  const int64_t rows = plan.slices * plan.rows.kernel;
  if (rows > most_weights / plan.columns.kernel / channels) return false;
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

/// Whether windows can be laid out, and make fewer taps than dwords of channels.
bool has_small_windows(const ConvPlan& plan, const Target& target) {
  constexpr int64_t most = 64;
  const ConvolutionGeometry& geometry = plan.geometry;
  if (geometry.layout != ConvolutionLayout::nchw || geometry.axes.size() > 2) return false;
  if (plan.dot != DotProduct::bytes || geometry.group_channels() > most) return false;
  for (const ConvolutionAxis& axis : {plan.rows, plan.columns}) {
    if (std::max({axis.kernel, axis.stride, axis.dilation}) > most) return false;
  }
  const WindowForm form = window_form(plan);
  return can_fill(form, target) && form.dwords() < plan.dwords * plan.rows.kernel * form.columns;
}

/// Whether rows that are lines of their own leave few lanes empty, so that it is worth trying.
bool has_whole_vectors(const ConvPlan& plan) {
  constexpr int64_t most_lost = 16;  // of so many lanes, one
  const int64_t lanes = ceil_div(plan.columns.output, plan.lanes) * plan.lanes;
  return plan.geometry.layout == ConvolutionLayout::nchw && plan.rows.output > 1 &&
         (lanes - plan.columns.output) * most_lost <= lanes;
}

}  // namespace

Status check_filter(const ConvolutionGeometry& geometry) {
  int64_t most = most_filter_weights / std::max<int64_t>(geometry.group_channels(), 1);
  for (size_t axis = 0; axis < geometry.axes.size(); ++axis) {
    const int64_t kernel = geometry.axes[axis].kernel;
    if (kernel <= most) {
      most /= std::max<int64_t>(kernel, 1);
      continue;
    }
    return Error{ErrorCode::unsupported,
                 fmt::format("conv_integer: the filter has more than {} weights for each output "
                             "channel, its kernel being {} along spatial axis {}",
                             most_filter_weights, kernel, axis)};
  }
  return {};
}

ConvPlan begin_plan(const ConvolutionGeometry& geometry, const Target& target) {
  ConvPlan plan;
  plan.geometry = geometry;
  const size_t axes = geometry.axes.size();
  plan.columns = geometry.axes[axes - 1];
  plan.rows =
      axes > 1 ? geometry.axes[axes - 2] : ConvolutionAxis{.input = 1, .kernel = 1, .output = 1};
  for (size_t axis = 0; axis + 2 < axes; ++axis) {
    plan.slices *= geometry.axes[axis].kernel;
    plan.outer_outputs *= geometry.axes[axis].output;
  }
  plan.dot = dot_product_of(target);
  plan.lanes = target.vector_bits() / 32;
  plan.caches = target.caches;
  plan.dwords = ceil_div(geometry.group_channels(), channels_of_dword(plan.dot));
  return plan;
}

void choose_planes(ConvPlan& plan) {
  if (plan.dwords_hold == DwordsHold::taps) return choose_windows(plan);
  if (plan.dwords_hold == DwordsHold::columns) plan.dwords = plan.geometry.group_channels();
  choose_phases(plan);
  list_taps(plan);
  if (plan.dwords_hold == DwordsHold::columns) list_weights_of_columns(plan);
}

WindowForm window_form(const ConvPlan& plan) {
  return {.rows = static_cast<int>(plan.geometry.group_channels() * plan.rows.kernel),
          .columns = static_cast<int>(plan.columns.kernel),
          .column_stride = static_cast<int>(plan.columns.stride),
          .dilation = static_cast<int>(plan.columns.dilation)};
}

void set_channel_tiles(ConvPlan& plan, int tile_channels) {
  const int64_t channels = plan.geometry.group_out_channels();
  plan.channel_tiles = ceil_div(channels, tile_channels);
  plan.last_channels = static_cast<int>(channels - (plan.channel_tiles - 1) * tile_channels);
}

ConvPlan plan_pixel_lanes(ConvPlan plan, const Target& target) {
  choose_planes(plan);
  plan.tile = best_tile(plan, target);
  const int64_t channels = plan.geometry.group_out_channels();  // in tiles of about a size
  plan.tile.channels = static_cast<int>(ceil_div(channels, ceil_div(channels, plan.tile.channels)));
  plan.tile.has_gaps =
      !plan.rows_are_lines && plan.block.rows > 1 && plan.pitch != plan.block.columns;
  plan.tile.prefetches_output = prefetches_output(plan.taps.size(), target);
  plan.tile.last_taps =
      plan.tile.has_gaps ? 0 : last_taps_of(plan.taps.size(), plan.tile.vectors, target);
  set_channel_tiles(plan, plan.tile.channels);
  set_cycles(plan, cycles_of_line(plan));
  return plan;
}

std::vector<ConvPlan> possible_plans(const ConvolutionGeometry& geometry, bool x_is_signed,
                                     const Target& target) {
  std::vector<ConvPlan> plans = plan_channel_lanes(geometry, x_is_signed, target);
  ConvPlan lines = begin_plan(geometry, target);
  const bool rows_may_be_lines = has_whole_vectors(lines);
  for (const DwordsHold what : {DwordsHold::channels, DwordsHold::columns}) {
    if (what == DwordsHold::columns && !has_few_channels(lines)) break;
    lines.dwords_hold = what;
    lines.rows_are_lines = false;
    plans.push_back(plan_pixel_lanes(lines, target));
    lines.rows_are_lines = rows_may_be_lines;
    if (rows_may_be_lines) plans.push_back(plan_pixel_lanes(lines, target));
  }
  if (has_small_windows(lines, target)) {
    lines.dwords_hold = DwordsHold::taps;
    lines.rows_are_lines = false;
    plans.push_back(plan_pixel_lanes(lines, target));
  }
  return plans;
}

ConvPlan plan_convolution(const ConvolutionGeometry& geometry, bool x_is_signed,
                          const Target& target) {
  std::vector<ConvPlan> plans = possible_plans(geometry, x_is_signed, target);
  return std::move(*std::ranges::min_element(plans, {}, &ConvPlan::cycles));
}

bool can_apply(const ConvPlan& plan, const TileEpilogue& epilogue) {
  if (plan.lanes_hold == ConvLanes::channels) {
    return plan.channel_tile.turns != epilogue.rows_of_channels;
  }
  return plan.geometry.layout == ConvolutionLayout::nchw && !epilogue.rows_of_channels;
}

int64_t ConvPlan::line_vectors(const ConvBlock& of) const {
  return rows_are_lines ? of.rows * ceil_div(of.columns, lanes) : ceil_div(line_pixels(of), lanes);
}

int64_t ConvPlan::row_tiles(const ConvBlock& of) const {
  return ceil_div(ceil_div(of.columns, lanes), tile.vectors);
}

int64_t ConvPlan::line_tiles(const ConvBlock& of) const {
  return rows_are_lines ? of.rows * row_tiles(of) : ceil_div(line_vectors(of), tile.vectors);
}

int64_t ConvPlan::source_bytes() const {
  constexpr int64_t read_behind = 4;
  if (source == ConvSource::input) return 0;
  if (source == ConvSource::rows) {
    return static_cast<int64_t>(input_rows.planes.size()) * input_rows.plane_bytes + read_behind;
  }
  return 4 * (slices * dwords * phase_planes() * plane_dwords + line_pixels(block) +
              most_lanes_read_behind);
}

int64_t ConvPlan::source_row_step() const {
  return source == ConvSource::planes ? 4 * pitch : rows.stride * input_rows.row_bytes;
}

int64_t ConvPlan::source_column_step() const {
  return source == ConvSource::planes ? 4 : columns.stride * input_rows.column_bytes;
}

}  // namespace castor::jit
