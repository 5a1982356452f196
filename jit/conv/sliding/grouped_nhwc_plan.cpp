// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "jit/conv/candidates.hpp"
#include "jit/conv/sliding/sliding_plan.hpp"

namespace castor::jit {

namespace {

/// Beyond these a plan is not worth its time: channels, places and output rows, stride phases,
/// slices of a filter.
constexpr int64_t max_channels = int64_t{1} << 16;
constexpr int64_t max_places = int64_t{1} << 16;
constexpr int64_t max_phases = 16;
constexpr int64_t max_slices = 1024;

/// Bytes of a pixel that are read for a vector.
int64_t bytes_read(const GroupedNhwcSpec& spec, const Target& target) {
  return spec.is_depthwise() && !target.has_avx512() ? target.vector_bits() / 32
                                                     : GroupedNhwcSpec::pixel_bytes;
}

/// What a k group holds. False: no vector reads a group.
bool choose_k_groups(GroupedNhwcPlan& plan, const Target& target) {
  GroupedNhwcSpec& spec = plan.spec;
  const int64_t channels = plan.geometry.group_channels();
  if (channels > GroupedNhwcSpec::pixel_bytes) return false;
  plan.lanes = target.vector_bits() / 32;
  spec.k_groups = channels == 1 ? 0 : static_cast<int>(ceil_div(channels, plan.channels_held()));
  spec.repeats = channels == 1 && plan.geometry.group_out_channels() > 1;
  spec.is_partial = plan.geometry.channels < bytes_read(spec, target);
  return true;
}

/// `bytes`: that are read of a pixel.
NhwcVector vector_at(const GroupedNhwcPlan& plan, int64_t bytes, int64_t channel,
                     int64_t first_lane, int64_t lanes) {
  const ConvolutionGeometry& geometry = plan.geometry;
  const int64_t input = channel / geometry.group_out_channels() * geometry.group_channels();
  NhwcVector vector;
  vector.input = std::min(input, std::max<int64_t>(geometry.channels - bytes, 0));
  vector.channel = channel;
  vector.lanes = ((uint32_t{1} << lanes) - 1) << first_lane;
  for (int lane = 0; lane < std::min(plan.lanes, 8); ++lane) {
    vector.lanes_mask[lane] = (vector.lanes >> lane & 1) != 0 ? -1 : 0;
  }
  return vector;
}

/// As many channels as lanes, unless their groups' channels of x are more than a vector reads.
void add_vectors(GroupedNhwcPlan& plan, const Target& target) {
  const int64_t channels = plan.geometry.out_channels;
  const int64_t in_group = plan.geometry.group_out_channels();
  const int64_t bytes = bytes_read(plan.spec, target);
  const int64_t groups = bytes / plan.geometry.group_channels();
  for (int64_t channel = 0; channel < channels;) {
    const int64_t end = std::min((channel / in_group + groups) * in_group, channels);
    const int64_t count = std::min<int64_t>(end - channel, plan.lanes);
    plan.overlaps = plan.spec.is_depthwise() && count < plan.lanes && channels >= plan.lanes;
    const int64_t shared = plan.overlaps ? plan.lanes - count : 0;
    plan.vectors.push_back(vector_at(plan, bytes, channel - shared, shared, count));
    channel += count;
  }
  const uint32_t all = (uint32_t{1} << plan.lanes) - 1;
  plan.spec.masks_lanes = std::ranges::any_of(plan.vectors, [&](const NhwcVector& vector) {
    return vector.lanes != all && (!plan.overlaps || plan.slices > 1);
  });
}

/// The steps along rows and columns. False: strides are too irregular, or the filter is too large.
bool choose_steps(GroupedNhwcPlan& plan) {
  const AxisPhases phases = phases_of(plan.columns);
  plan.column_step = phases.step;
  plan.column_phases = phases.count;
  if (!plan.set_rows(plan.spec) || std::max(plan.row_phases, phases.count) > max_phases) {
    return false;
  }
  if (plan.columns.kernel > GroupedNhwcSpec::max_pixels) return false;
  plan.spec.columns = static_cast<int>(plan.columns.kernel);
  // Beyond that neighbours share nothing anyway.
  plan.spec.column_stride =
      static_cast<int>(std::min<int64_t>(phases.stride, GroupedNhwcSpec::max_pixels));
  return true;
}

/// Row ranges are as long as code of a good length is. Where all code is masked, there is less.
void choose_ranges(GroupedNhwcPlan& plan, const GroupedNhwcTuning& tuning) {
  const GroupedNhwcSpec& spec = plan.spec;
  const int64_t products =
      spec.always_masks() ? tuning.max_masked_range_products : tuning.max_range_products;
  plan.set_range_outputs(
      std::min({tuning.max_range_outputs, products / (spec.rows * spec.products()),
                (tuning.max_input_rows - spec.rows) / spec.row_stride + 1}));
}

/// Weights may need window sums.
bool has_room(const GroupedNhwcSpec& spec, const Target& target, const TileEpilogue* epilogue) {
  const auto fits_one = [&](const GroupedNhwcSpec& one) {
    return fits(one, target) && (epilogue == nullptr || may_apply(*epilogue, one, target));
  };
  return fits_one(spec) && fits_one(with_window_sums(spec));
}

/// Cycles of one product: accumulators of few sums wait for each other.
double product_of(const GroupedNhwcPlan& plan, const Target& target) {
  const GroupedNhwcSpec& spec = plan.spec;
  if (spec.has_pairs()) return spec.is_depthwise() ? 4 : 2;
  if (spec.is_depthwise()) return 1;
  const double sums = spec.outputs * std::min(plan.range_outputs, spec.sum_rows());
  const double shown = costs_on(target).latency * target.tuning().grouped_nhwc.shown_latency;
  return std::max(1.0, shown / sums);
}

/// Instructions that bring what was loaded of a pixel to the lanes, beside the load.
double shuffles_of_row(const GroupedNhwcSpec& spec, const Target& target) {
  const int flips = spec.flips_input ? 1 : 0;
  if (!spec.is_depthwise()) return spec.pixels() * (flips + spec.k_groups);
  const int transposes = target.supports(Feature::avx512_vbmi) ? 1 : (target.has_avx512() ? 2 : 3);
  return spec.pixels() - spec.row_k_groups() + spec.row_k_groups() * (transposes + flips);
}

/// Fraction of the vectors that have lanes without a channel.
double partial_fraction(const GroupedNhwcPlan& plan) {
  const uint32_t all = (uint32_t{1} << plan.lanes) - 1;
  const auto partial = std::ranges::count_if(
      plan.vectors, [&](const NhwcVector& vector) { return vector.lanes != all; });
  return static_cast<double>(partial) / static_cast<double>(plan.vectors.size());
}

/// For all places and vectors.
EventCounts cost_of_plane(const GroupedNhwcPlan& plan, bool has_sums, const Target& target) {
  using enum CostEvent;
  const GroupedNhwcSpec& spec = plan.spec;
  const double inside = fraction_inside(plan.rows);
  const double outputs = plan.range_outputs;
  const double input_rows = inside * spec.input_rows({.outputs = plan.range_outputs});
  EventCounts one;
  one[gather_load] = input_rows * spec.pixels();
  one[gather_shuffle] = input_rows * shuffles_of_row(spec, target);
  one[gather_product] = product_of(plan, target) * inside * outputs * spec.rows * spec.products();
  if (has_sums) one[gather_product] += input_rows * spec.products();
  one[gather_store] = outputs * spec.outputs;
  if (spec.masks_lanes && !target.has_avx512()) {
    one[compressed_vector] = one[gather_store] * partial_fraction(plan);
  }
  one[gather_position] = 1;
  const double lanes_factor = plan.lanes == 16 ? 1 : costs_on(target).product_256 * 2;
  one[gather_product] *= lanes_factor * costs_on(target).product_512;
  return one * (static_cast<double>(plan.rows.output) / outputs *
                static_cast<double>(plan.place_count() * plan.panels()));
}

/// Neighbours that are made at a place: as many as cost least, but fewer only where that saves more
/// than where pieces of the output have few rows it would lose. False: there is no code for any.
bool choose_outputs(GroupedNhwcPlan& plan, const Target& target, const TileEpilogue* epilogue) {
  const GroupedNhwcTuning& tuning = target.tuning().grouped_nhwc;
  double min = 0;
  int best = 0;
  for (int outputs = GroupedNhwcSpec::max_outputs; outputs >= 1; --outputs) {
    plan.spec.outputs = outputs;
    const bool is_long = !plan.spec.is_depthwise() &&
                         plan.spec.rows * plan.spec.products() > tuning.max_row_products;
    if (is_long || !has_room(plan.spec, target, epilogue)) continue;
    choose_ranges(plan, tuning);
    const double cycles = cost_of_plane(plan, false, target).cycles(costs_on(target).cycles);
    if (best > 0 && cycles >= tuning.max_fewer_outputs_cost * min) continue;
    min = cycles;
    best = outputs;
  }
  plan.spec.outputs = best;
  if (best > 0) choose_ranges(plan, tuning);
  return best > 0;
}

NhwcPlace place_at(const GroupedNhwcPlan& plan, int64_t column) {
  const GroupedNhwcSpec& spec = plan.spec;
  const ConvolutionAxis& axis = plan.columns;
  const int64_t first = column * axis.stride - axis.pad_begin;
  NhwcPlace place = {.input = first * plan.geometry.channels, .output = column, .is_inner = 1};
  for (int i = 0; i < spec.pixels(); ++i) {
    const int64_t at = first + i * plan.column_step;
    const int mask = spec.is_partial       ? (1 << plan.geometry.channels) - 1
                     : spec.is_depthwise() ? 0xf << (i % 4 * 4)
                                           : 0xffff;
    const bool is_inside = at >= 0 && at < axis.input;
    if (!is_inside) place.is_inner = 0;
    place.loaded[i] = static_cast<uint16_t>(is_inside ? mask : 0);
    place.offsets[i] = (std::clamp<int64_t>(at, 0, std::max<int64_t>(axis.input - 1, 0)) - first) *
                       plan.geometry.channels;
  }
  for (int i = 0; i < spec.outputs; ++i) {
    const bool is_there = column + i * plan.column_phases < axis.output;
    if (!is_there) place.is_inner = 0;
    place.stored[i] = is_there ? 0xffff : 0;
  }
  return place;
}

void add_places(GroupedNhwcPlan& plan) {
  for (int64_t unit = 0; unit < plan.column_parts(); ++unit) {
    for (int64_t phase = 0; phase < plan.column_phases; ++phase) {
      const int64_t column = unit * plan.unit_columns() + phase;
      if (column < plan.columns.output) plan.places.push_back(place_at(plan, column));
    }
  }
}

/// The ranges of at most `outputs` rows in each phase.
std::vector<NhwcRange> list_ranges(GroupedNhwcPlan& plan, int64_t outputs, int64_t phases) {
  std::vector<NhwcRange> all;
  plan.list_ranges(plan.rows.output, outputs, phases, phases, [&](int64_t row, int64_t count) {
    const RowRange range = plan.range_at(plan.spec, row, count, 1);
    all.push_back({.range = index_of(range, plan.spec.ranges), .row = row});
  });
  return all;
}

/// Where weights of a row are packed: those of an output start `column_stride` taps later than
/// those of its neighbour, as its pixels do.
void list_weights(GroupedNhwcPlan& plan) {
  const GroupedNhwcSpec& spec = plan.spec;
  const int64_t taps = plan.rows.kernel * plan.columns.kernel;
  plan.weight_step = spec.is_depthwise() ? 1 : plan.slices * taps;
  const auto add = [&](int64_t first, int64_t begin, int64_t end, bool is_new) {
    uint32_t mask = 0;
    for (int64_t i = begin; i < end; ++i) mask |= uint32_t{0xff} << (8 * i);
    plan.row_weights.push_back({.first = first, .mask = mask, .summed = is_new ? mask : 0});
  };
  for (int k = 0; spec.is_depthwise() && k < spec.row_k_groups(); ++k) {
    for (int output = 0; output < spec.outputs; ++output) {
      const int64_t tap = 4 * k - output * spec.column_stride;
      if (!spec.takes(output, k)) continue;
      add(tap, std::max<int64_t>(-tap, 0), std::min<int64_t>(4, spec.columns - tap), output == 0);
    }
  }
  for (int column = 0; !spec.is_depthwise() && column < spec.columns; ++column) {
    const int64_t channels = plan.geometry.group_channels();
    for (int64_t channel = 0; channel < channels; channel += plan.channels_held()) {
      add(column + channel * plan.weight_step, 0,
          std::min<int64_t>(channels - channel, plan.channels_held()), true);
    }
  }
}

}  // namespace

EventCounts cost_of(const GroupedNhwcPlan& plan, const ConvolutionProblem& problem,
                    const Target& target) {
  const bool has_sums = subtracts_window_sums(plan.spec.engine, problem);
  return plan.cost_of_image(cost_of_plane(plan, has_sums, target), problem);
}

std::optional<GroupedNhwcPlan> plan_grouped_nhwc(const ConvolutionProblem& problem,
                                                 const Target& target,
                                                 const TileEpilogue* epilogue) {
  const ConvolutionGeometry& geometry = problem.geometry;
  const bool is_grouped =
      geometry.groups > 1 || (geometry.channels == 1 && geometry.out_channels == 1);
  if (geometry.layout != ConvolutionLayout::nhwc || !is_grouped ||
      std::max(geometry.channels, geometry.out_channels) > max_channels) {
    return std::nullopt;
  }
  GroupedNhwcPlan plan;
  plan.geometry = geometry;
  set_plane_axes(plan);
  if (!has_near_positions(plan.rows, plan.columns, geometry.channels) ||
      std::max(plan.rows.output, plan.columns.output) > max_places || plan.slices > max_slices) {
    return std::nullopt;
  }
  if (epilogue != nullptr && !plan.is_one_pass()) return std::nullopt;
  plan.spec.flips_input = problem.x_is_signed;
  plan.spec.engine = product_engine_of(target);
  if (!choose_k_groups(plan, target)) return std::nullopt;
  add_vectors(plan, target);
  if (!choose_steps(plan) || !choose_outputs(plan, target, epilogue)) return std::nullopt;
  list_weights(plan);
  add_places(plan);
  plan.ranges = list_ranges(plan, plan.range_outputs, plan.row_phases);
  const int64_t max_elements = target.tuning().partition.max_epilogue_elements;
  if (epilogue == nullptr && plan.rows_within(max_elements) < plan.unit_rows()) {
    plan.rows_alone = list_ranges(plan, 1, 1);
  }
  if (plan.spec.ranges.size() > target.tuning().grouped_nhwc.max_ranges) return std::nullopt;
  return plan;
}

std::string print(const GroupedNhwcPlan& plan) {
  const GroupedNhwcSpec& spec = plan.spec;
  return fmt::format(
      "  grouped  {} groups of {} to {} channels, channel-vectorised\n"
      "  vectors  {} of {} lanes\n"
      "  places   {} of {} outputs, {} pixels in {} k groups\n"
      "  filter   {} rows of {} products, {} B packed for a vector\n"
      "  rows     ranges of {}, code for {}\n",
      plan.geometry.groups, plan.geometry.group_channels(), plan.geometry.group_out_channels(),
      plan.vectors.size(), plan.lanes, plan.places.size(), spec.outputs, spec.pixels(),
      spec.row_k_groups(), spec.rows, spec.products(), 4 * plan.panel_lanes(), plan.range_outputs,
      spec.ranges.size());
}

}  // namespace castor::jit
