// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/conv_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace castor::jit {

namespace {

/// Planes of a block shall stay in the second cache, beside weights.
constexpr int64_t most_plane_bytes = int64_t{384} << 10;
/// So shall the outputs of a block, where they are put in another order behind the kernels.
constexpr int64_t most_output_bytes = int64_t{256} << 10;

/// Of an `a` that is not negative, however large.
int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

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

/// Estimated cycles of one line's tiles for all output channels of a group: products, or what
/// brings their operands, and a little for every load that is not free; then what follows the taps.
double cycles_of(const ConvPlan& plan, const ConvTile& tile, int64_t channels, int64_t vectors) {
  const double m = tile.channels;
  const double v = tile.vectors;
  const double per_product = plan.dot == DotProduct::bytes ? 1 : 2;
  constexpr double latency = 5;
  constexpr double pixels_from_l1 = 1;
  constexpr double pixels_from_l2 = 2;  // once for all taps of a plane
  constexpr double weights = 0.5;
  // Pixels begin anywhere in a line of the cache, so that most of their loads are two.
  constexpr double any_pixels = 0.5;
  constexpr double any_weight = 0.25;
  const auto taps = static_cast<double>(plan.taps.size());
  const auto planes = static_cast<double>(plan.slices * plan.dwords * plan.phase_planes());
  const double from_l2 = pixels_from_l2 * v * planes / taps;
  constexpr double not_hidden = 0.4;
  const double tap = std::max({m * v * per_product, latency, pixels_from_l1 * v + weights * m}) +
                     any_pixels * v + any_weight * m + not_hidden * from_l2;
  constexpr double ends_of_a_product = 3;
  const double line = static_cast<double>(ceil_div(vectors, tile.vectors)) *
                      (tap * taps + m * v * ends_of_a_product);
  const auto whole = static_cast<double>(channels / tile.channels);
  const double rest = static_cast<double>(channels % tile.channels) / m;
  constexpr double least_rest = 0.4;  // few channels have little to do for each load
  return line * (whole + (rest > 0 ? std::max(rest, least_rest) : 0));
}

ConvTile best_tile(const ConvPlan& plan, int64_t vectors, const Target& target) {
  const int64_t channels = plan.geometry.group_out_channels();
  ConvTile best;
  double least = 0;
  for (int m = 1; m <= std::min<int64_t>(channels, 16); ++m) {
    for (int v = 1; v <= std::min<int64_t>(vectors, 8); ++v) {
      const ConvTile tile = {.channels = m, .vectors = v};
      if (!fits(tile, target)) continue;
      const double cycles = cycles_of(plan, tile, channels, vectors);
      if (least == 0 || cycles < least) {
        least = cycles;
        best = tile;
      }
    }
  }
  return best;
}

/// As many rows as fit, or, where not even one does, a part of a row. All blocks of about a size.
void choose_block(ConvPlan& plan) {
  const int64_t planes = plan.slices * plan.dwords * plan.phase_planes();
  const int64_t most_dwords = most_plane_bytes / 4 / planes;
  const int64_t extra_rows = plan.row_phases.most_shift;
  const int64_t rows = plan.rows.output;
  const int64_t columns = plan.columns.output;
  plan.block = {.rows = 1, .columns = columns};
  plan.pitch = least_pitch(plan.columns, plan.column_phases);
  const int64_t fitting = most_dwords / plan.pitch - extra_rows;
  if (fitting >= 1) {
    int64_t most_rows = std::min(fitting, rows);
    if (plan.geometry.layout == ConvolutionLayout::nhwc) {
      const int64_t row_bytes = 4 * columns * plan.geometry.group_out_channels();
      most_rows = std::clamp<int64_t>(most_output_bytes / row_bytes, 1, most_rows);
    }
    plan.block.rows = ceil_div(rows, ceil_div(rows, most_rows));
  } else {
    constexpr int64_t least_columns = 16;  // a vector
    const int64_t part = most_dwords / (1 + extra_rows) - plan.column_phases.most_shift;
    const int64_t parts =
        ceil_div(columns, std::clamp(part, std::min(least_columns, columns), columns));
    plan.block.columns = ceil_div(columns, parts);
    plan.pitch = plan.block.columns + plan.column_phases.most_shift;
  }
  plan.plane_dwords = (plan.block.rows + extra_rows) * plan.pitch + plan.column_phases.most_shift;
}

/// Dwords that filling the planes of all blocks writes; those of planes that are too large count
/// many times.
double filled_dwords(const ConvPlan& plan) {
  constexpr double most_bytes = 768 << 10;
  constexpr double dearer = 1000;
  const double rows = static_cast<double>(plan.block.rows + plan.row_phases.most_shift);
  const double columns = static_cast<double>(plan.block.columns + plan.column_phases.most_shift);
  const double planes = static_cast<double>(plan.slices * plan.dwords * plan.phase_planes());
  const auto blocks = static_cast<double>(ceil_div(plan.rows.output, plan.block.rows) *
                                          ceil_div(plan.columns.output, plan.block.columns));
  const double dwords = planes * rows * columns;
  return dwords * blocks * (4 * dwords > most_bytes ? dearer : 1);
}

/// Phases that taps share, or a plane for each tap along one axis or both where that leaves less
/// than half to fill; and the blocks that follow.
void choose_phases(ConvPlan& plan) {
  constexpr int64_t most_shift = int64_t{1} << 24;
  constexpr double gain = 0.5;
  const ConvPhases rows[] = {phases_of(plan.rows), phases_by_tap(plan.rows)};
  const ConvPhases columns[] = {phases_of(plan.columns), phases_by_tap(plan.columns)};
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

}  // namespace

int64_t ConvPlan::line_tiles(const ConvBlock& of, const Target& target) const {
  return ceil_div(ceil_div(line_pixels(of), lanes(target)), tile.vectors);
}

int64_t ConvPlan::planes_dwords() const {
  constexpr int64_t most_lanes_of_a_tile = 16 * 8;
  return slices * dwords * phase_planes() * plane_dwords + line_pixels(block) +
         most_lanes_of_a_tile;
}

ConvPlan plan_convolution(const ConvolutionGeometry& geometry, const Target& target) {
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
  plan.dwords = ceil_div(geometry.group_channels(), channels_of_dword(plan.dot));
  choose_phases(plan);
  list_taps(plan);
  const int64_t vectors = ceil_div(plan.line_pixels(plan.block), plan.lanes(target));
  plan.tile = best_tile(plan, vectors, target);
  plan.tile.has_gaps = plan.block.rows > 1 && plan.pitch != plan.block.columns;
  const int64_t channels = geometry.group_out_channels();
  plan.channel_tiles = ceil_div(channels, plan.tile.channels);
  plan.last_channels = static_cast<int>(channels - (plan.channel_tiles - 1) * plan.tile.channels);
  return plan;
}

namespace {

ConvStore store_of(int64_t offset, uint32_t lanes) {
  ConvStore store;
  store.offset = offset;
  store.lanes = lanes;
  store.first_lanes = (1u << std::popcount(lanes)) - 1;
  int stored = 0;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    store.order[stored] = std::countr_zero(left);
    store.stored[stored] = -1;
    ++stored;
  }
  return store;
}

}  // namespace

std::vector<ConvStore> line_stores(const ConvPlan& plan, const ConvBlock& block,
                                   const Target& target) {
  const int lanes = plan.lanes(target);
  const int64_t vectors = plan.line_tiles(block, target) * plan.tile.vectors;
  std::vector<ConvStore> stores;
  stores.reserve(static_cast<size_t>(vectors));
  int64_t stored_before = 0;
  int64_t row = 0;
  int64_t column = 0;
  for (int64_t vector = 0; vector < vectors; ++vector) {
    uint32_t mask = 0;
    for (int lane = 0; lane < lanes; ++lane) {
      const bool is_pixel = row < block.rows && column < block.columns;
      mask |= static_cast<uint32_t>(is_pixel) << lane;
      if (++column < plan.pitch) continue;
      column = 0;
      ++row;
    }
    stores.push_back(store_of(4 * stored_before, mask));
    stored_before += std::popcount(mask);
  }
  return stores;
}

std::vector<ConvStore> plain_stores(const ConvPlan& plan, const ConvBlock& block,
                                    const Target& target) {
  const int lanes = plan.lanes(target);
  const int64_t vectors = plan.line_tiles(block, target) * plan.tile.vectors;
  std::vector<ConvStore> stores;
  for (int64_t vector = 0; vector < vectors; ++vector) {
    stores.push_back(store_of(4 * lanes * vector, (1u << lanes) - 1));
  }
  return stores;
}

std::string print(const ConvPlan& plan, const Target& target) {
  const ConvolutionGeometry& geometry = plan.geometry;
  const int64_t pixels = plan.line_pixels(plan.block);
  const int64_t kept = plan.block.rows * plan.block.columns;
  const int64_t lanes =
      plan.line_tiles(plan.block, target) * plan.tile.vectors * plan.lanes(target);
  std::string text = fmt::format("  groups   {} of {} to {} channels\n", geometry.groups,
                                 geometry.group_channels(), geometry.group_out_channels());
  text += fmt::format("  planes   {} of {} dwords, {} input channels a dword, pitch {}\n",
                      plan.slices * plan.dwords * plan.phase_planes(), plan.plane_dwords,
                      channels_of_dword(plan.dot), plan.pitch);
  text += fmt::format("  block    {} of {} output rows, {} of {} columns, {} B of planes\n",
                      plan.block.rows, plan.rows.output, plan.block.columns, plan.columns.output,
                      4 * plan.planes_dwords());
  text +=
      fmt::format("  line     {} pixels, {} of them stored, in {} lanes\n", pixels, kept, lanes);
  text += fmt::format("  tile     {} output channels by {} vectors of {} pixels, {} taps\n",
                      plan.tile.channels, plan.tile.vectors, plan.lanes(target), plan.taps.size());
  return text;
}

}  // namespace castor::jit
