// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/sliding/grouped_nhwc_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/support/integer_math.hpp"

namespace castor::jit {

namespace {

/// Channels; places and blocks of rows beyond which a plan is not worth its time; phases that a
/// unit may have; slices of a filter.
constexpr int64_t max_channels = int64_t{1} << 16;
constexpr int64_t max_places = int64_t{1} << 16;
constexpr int64_t max_phases = 16;
constexpr int64_t max_slices = 1024;

/// Bytes of a pixel that are read for a vector.
int64_t bytes_read(const GroupedNhwcForm& form, const Target& target) {
  return form.parts == 0 && !target.has_avx512() ? target.vector_bits() / 32
                                                 : GroupedNhwcForm::pixel_bytes;
}

/// What a quad holds. False: no vector reads a group.
bool choose_quads(GroupedNhwcPlan& plan, const Target& target) {
  GroupedNhwcForm& form = plan.form;
  const int64_t channels = plan.geometry.group_channels();
  if (channels > GroupedNhwcForm::pixel_bytes) return false;
  const bool is_depthwise = channels == 1;
  plan.lanes = target.vector_bits() / 32;
  plan.held = channels_of_k_group(form.engine);
  form.parts = is_depthwise ? 0 : static_cast<int>(ceil_div(channels, plan.held));
  form.repeats = is_depthwise && plan.geometry.group_out_channels() > 1;
  form.is_partial = plan.geometry.channels < bytes_read(form, target);
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
  const int64_t of_group = plan.geometry.group_out_channels();
  const int64_t bytes = bytes_read(plan.form, target);
  const int64_t groups = bytes / plan.geometry.group_channels();
  for (int64_t channel = 0; channel < channels;) {
    const int64_t end = std::min((channel / of_group + groups) * of_group, channels);
    const int64_t count = std::min<int64_t>(end - channel, plan.lanes);
    plan.overlaps = plan.form.parts == 0 && count < plan.lanes && channels >= plan.lanes;
    const int64_t shared = plan.overlaps ? plan.lanes - count : 0;
    plan.vectors.push_back(vector_at(plan, bytes, channel - shared, shared, count));
    channel += count;
  }
  const uint32_t all = (uint32_t{1} << plan.lanes) - 1;
  plan.form.masks_lanes = std::ranges::any_of(plan.vectors, [&](const NhwcVector& vector) {
    return vector.lanes != all && (!plan.overlaps || plan.slices > 1);
  });
}

/// How rows and columns are walked. False: strides are too irregular, or the filter is too large.
bool choose_steps(GroupedNhwcPlan& plan) {
  GroupedNhwcForm& form = plan.form;
  constexpr int64_t max_rows = 16;
  const AxisPhases rows = phases_of(plan.rows);
  const AxisPhases columns = phases_of(plan.columns);
  plan.row_step = rows.step;
  plan.row_phases = rows.count;
  plan.column_step = columns.step;
  plan.column_phases = columns.count;
  if (rows.count > max_phases || columns.count > max_phases) return false;
  if (plan.rows.kernel > max_rows || rows.stride > max_rows) return false;
  if (plan.columns.kernel > GroupedNhwcForm::max_pixels) return false;
  form.rows = static_cast<int>(plan.rows.kernel);
  form.row_stride = static_cast<int>(rows.stride);
  form.columns = static_cast<int>(plan.columns.kernel);
  // Beyond that neighbours share nothing anyway.
  form.column_stride =
      static_cast<int>(std::min<int64_t>(columns.stride, GroupedNhwcForm::max_pixels));
  return true;
}

/// Rows of a block: as many as code of a good length does. Where all code guards, there is less of
/// it.
int64_t max_block_rows(const GroupedNhwcPlan& plan, const GroupedNhwcForm& form) {
  constexpr int64_t max_outputs = 8;
  constexpr int64_t max_input_rows = 64;
  const int64_t products = form.always_guards() ? 300 : 224;
  int64_t max = std::min<int64_t>(max_outputs, products / (form.rows * form.products()));
  max = std::min<int64_t>(max, (max_input_rows - form.rows) / form.row_stride + 1);
  return std::clamp<int64_t>(max, 1, ceil_div(plan.rows.output, plan.row_phases));
}

bool has_room(const GroupedNhwcForm& form, const Target& target, const TileEpilogue* epilogue) {
  return fits(form, target) && (epilogue == nullptr || may_apply(*epilogue, form, target));
}

/// Weights may need window sums.
bool has_room_for_sums(GroupedNhwcForm form, const Target& target, const TileEpilogue* epilogue) {
  if (!has_room(form, target, epilogue)) return false;
  if (form.has_words()) return true;
  form.subtracts_window_sums = true;
  form.signed_input = form.flips_input;
  form.flips_input = false;
  return has_room(form, target, epilogue);
}

/// Products of an output row, all of which stand in the code.
bool has_short_rows(const GroupedNhwcForm& form) {
  constexpr int max_products = 256;
  return form.parts == 0 || form.rows * form.products() <= max_products;
}

double cycles_of_row(const GroupedNhwcForm& form, const Target& target) {
  const int flipping = form.flips_input ? 1 : 0;
  if (form.parts > 0) {
    constexpr double load = 0.5;
    return form.pixels() * (load + flipping + form.parts);
  }
  const int transposing = target.supports(Feature::avx512_vbmi) ? 1 : (target.has_avx512() ? 2 : 3);
  return form.pixels() - form.quads() + form.quads() * (transposing + flipping);
}

/// Of sums that many products are added to, a few must be under way at a time.
double cycles_of_products(const GroupedNhwcPlan& plan, const GroupedNhwcForm& form) {
  const double products = form.rows * form.products();
  if (form.parts == 0) return products;
  if (form.has_words()) return 2 * products;
  constexpr double latency = 8;  // of two products a cycle
  const double sums = form.outputs * static_cast<double>(std::min<int64_t>(
                                         max_block_rows(plan, form), form.sum_rows()));
  return products * std::max(1.0, latency / sums);
}

/// For an output row of a place: pixels, quads and products, which the same units do; and stores.
double cycles_of(const GroupedNhwcPlan& plan, const GroupedNhwcForm& form, const Target& target) {
  const auto rows = static_cast<double>(plan.rows.output == 1 ? form.rows : form.row_stride);
  return rows * cycles_of_row(form, target) + cycles_of_products(plan, form) + 1.5 * form.outputs;
}

/// Neighbours that are made at a place: as cheap as may be.
bool choose_outputs(GroupedNhwcPlan& plan, const Target& target, const TileEpilogue* epilogue) {
  double min = 0;
  GroupedNhwcForm tried = plan.form;
  for (tried.outputs = 1; tried.outputs <= GroupedNhwcForm::max_outputs; ++tried.outputs) {
    if (!has_room_for_sums(tried, target, epilogue) || !has_short_rows(tried)) continue;
    const int64_t units = ceil_div(plan.columns.output, tried.outputs * plan.column_phases);
    const double cost = static_cast<double>(units) * cycles_of(plan, tried, target);
    if (min > 0 && cost >= min) continue;
    min = cost;
    plan.form.outputs = tried.outputs;
  }
  return min > 0;
}

NhwcPlace place_at(const GroupedNhwcPlan& plan, int64_t column) {
  const GroupedNhwcForm& form = plan.form;
  const ConvolutionAxis& axis = plan.columns;
  const int64_t first = column * axis.stride - axis.pad_begin;
  NhwcPlace place;
  place.input = first * plan.geometry.channels;
  place.output = column;
  bool is_inner = true;
  for (int i = 0; i < form.pixels(); ++i) {
    const int64_t at = first + i * plan.column_step;
    const bool is_inside = at >= 0 && at < axis.input;
    is_inner = is_inner && is_inside;
    const int mask = form.is_partial   ? (1 << plan.geometry.channels) - 1
                     : form.parts == 0 ? 0xf << (i % 4 * 4)
                                       : 0xffff;
    place.loaded[i] = static_cast<uint16_t>(is_inside ? mask : 0);
  }
  for (int i = 0; i < form.outputs; ++i) {
    const bool is_there = column + i * plan.column_phases < axis.output;
    is_inner = is_inner && is_there;
    place.stored[i] = static_cast<uint16_t>(is_there ? 0xffff : 0);
  }
  place.is_inner = is_inner ? 1 : 0;
  return place;
}

void add_places(GroupedNhwcPlan& plan) {
  for (int64_t unit = 0; unit < plan.column_units(); ++unit) {
    for (int64_t phase = 0; phase < plan.column_phases; ++phase) {
      const int64_t column = unit * plan.unit_columns() + phase;
      if (column < plan.columns.output) plan.places.push_back(place_at(plan, column));
    }
  }
}

/// Whether pieces of the output may have to be smaller than a unit of blocks.
bool has_single_rows(const GroupedNhwcPlan& plan) {
  const int64_t channels = std::min(plan.geometry.out_channels, GroupedNhwcPlan::line_channels);
  return plan.unit_rows() > 1 &&
         plan.unit_rows() * plan.columns.output * channels > GroupedNhwcPlan::max_unit_outputs;
}

/// The blocks of units of so many rows in each phase.
void add_blocks(GroupedNhwcPlan& plan, int64_t outputs, int64_t phases) {
  const int64_t end = plan.rows.output;
  for (int64_t unit = 0; unit < end; unit += outputs * phases) {
    for (int64_t row = unit; row < std::min(unit + phases, end); ++row) {
      const int64_t rows = std::min(ceil_div(end - row, phases), outputs);
      const SlidingBlock block = plan.block_at(row, rows);
      if (plan.number_of(block) == plan.form.blocks.size()) plan.form.blocks.push_back(block);
    }
  }
}

}  // namespace

SlidingBlock GroupedNhwcPlan::block_at(int64_t row, int64_t outputs) const {
  SlidingBlock block = {.outputs = static_cast<int>(outputs)};
  const int64_t count = form.input_rows(block);
  const int64_t first = row * rows.stride - rows.pad_begin;
  const int64_t above = first < 0 ? ceil_div(-first, row_step) : 0;
  const int64_t end = first >= rows.input ? 0 : ceil_div(rows.input - first, row_step);
  block.above = static_cast<int>(std::min(above, count));
  block.below = static_cast<int>(count - std::clamp<int64_t>(end, block.above, count));
  return block;
}

size_t GroupedNhwcPlan::number_of(const SlidingBlock& block) const {
  return static_cast<size_t>(std::ranges::find(form.blocks, block) - form.blocks.begin());
}

std::optional<GroupedNhwcPlan> plan_grouped_nhwc(const ConvolutionGeometry& geometry,
                                                 bool x_is_signed, const Target& target,
                                                 const TileEpilogue* epilogue) {
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
  plan.form.flips_input = x_is_signed;
  plan.form.engine = product_engine_of(target);
  if (!choose_quads(plan, target)) return std::nullopt;
  add_vectors(plan, target);
  if (!choose_steps(plan) || !choose_outputs(plan, target, epilogue)) return std::nullopt;
  const int64_t outputs = ceil_div(plan.rows.output, plan.row_phases);
  const int64_t max = max_block_rows(plan, plan.form);
  plan.block_outputs = static_cast<int>(ceil_div(outputs, ceil_div(outputs, max)));
  add_places(plan);
  add_blocks(plan, plan.block_outputs, plan.row_phases);
  if (epilogue == nullptr && has_single_rows(plan)) add_blocks(plan, 1, 1);
  if (!has_room_for_sums(plan.form, target, epilogue)) return std::nullopt;
  return plan;
}

std::string print(const GroupedNhwcPlan& plan, const Target&) {
  const GroupedNhwcForm& form = plan.form;
  const ConvolutionGeometry& geometry = plan.geometry;
  std::string text =
      form.parts == 0
          ? fmt::format("  depthwise {} channels, side by side in the lanes\n",
                        geometry.out_channels)
          : fmt::format("  grouped  {} groups of {} to {} channels, side by side in the lanes\n",
                        geometry.groups, geometry.group_channels(), geometry.group_out_channels());
  text += fmt::format("  vectors  {} of {} lanes\n", plan.vectors.size(), plan.lanes);
  text += fmt::format("  places   {} of {} {}, {} pixels in {} {}\n", plan.places.size(),
                      form.outputs, form.outputs == 1 ? "output" : "outputs", form.pixels(),
                      form.quads(), form.quads() == 1 ? "quad" : "quads");
  text += fmt::format("  filter   {} rows of {} {}, {} B packed for a vector\n", form.rows,
                      form.products(), form.products() == 1 ? "product" : "products",
                      4 * plan.lanes * form.panel_vectors());
  text += fmt::format("  blocks   {} rows, code for {} {}\n", plan.block_outputs,
                      form.blocks.size(), form.blocks.size() == 1 ? "kind" : "kinds");
  return text;
}

}  // namespace castor::jit
