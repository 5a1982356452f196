// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/grouped_nhwc_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/support/integer_math.hpp"
#include "jit/conv/plane_axes.hpp"

namespace castor::jit {

namespace {

/// Channels; places and blocks of rows beyond which a plan is not worth its time; phases that a
/// unit may have; slices of a filter.
constexpr int64_t max_channels = int64_t{1} << 16;
constexpr int64_t max_places = int64_t{1} << 16;
constexpr int64_t max_phases = 16;
constexpr int64_t max_slices = 1024;

/// An axis as the phases of its outputs see it: a filter dilated by d, at a stride of s, takes
/// positions d apart in outputs that are d / gcd(d, s) apart.
struct Phases {
  int64_t step = 1;    ///< of the input
  int64_t count = 1;   ///< of outputs
  int64_t stride = 1;  ///< in steps
};

Phases phases_of(const ConvolutionAxis& axis) {
  if (axis.kernel == 1) return {.step = axis.stride};
  const int64_t shared = std::gcd(axis.dilation, axis.stride);
  return {axis.dilation, axis.dilation / shared, axis.stride / shared};
}

/// Plans one geometry step by step; each says whether it can be.
class Planner {
 public:
  Planner(GroupedNhwcPlan& plan, const Target& target, const TileEpilogue* epilogue)
      : plan_(plan), form_(plan.form), target_(target), epilogue_(epilogue) {}

  bool run(bool flips_input) {
    if (epilogue_ != nullptr && !plan_.is_one_pass()) return false;
    form_.flips_input = flips_input;
    form_.engine = product_engine_of(target_);
    if (!choose_quads()) return false;
    add_vectors();
    if (!choose_steps() || !choose_outputs()) return false;
    choose_block();
    add_places();
    add_blocks(plan_.block_outputs, plan_.row_phases);
    if (has_single_rows()) add_blocks(1, 1);
    return fits_with_window_sums(form_);
  }

 private:
  bool choose_quads() {
    const int64_t channels = plan_.geometry.group_channels();
    if (channels > GroupedNhwcForm::pixel_bytes || has_few_outputs() || has_large_groups()) {
      return false;
    }
    const bool is_depthwise = channels == 1;
    plan_.lanes = target_.vector_bits() / 32;
    plan_.held = channels_of_k_group(form_.engine);
    form_.parts = is_depthwise ? 0 : static_cast<int>(ceil_div(channels, plan_.held));
    form_.repeats = is_depthwise && plan_.geometry.group_out_channels() > 1;
    form_.is_partial = plan_.geometry.channels < bytes_read();
    return true;
  }

  /// Whether most lanes would have nothing to do, because one group is all that a vector reads.
  bool has_few_outputs() const {
    constexpr int64_t min_outputs = 8;
    return plan_.geometry.group_channels() > GroupedNhwcForm::pixel_bytes / 2 &&
           plan_.geometry.group_out_channels() < min_outputs;
  }

  /// Whether a group has so much to multiply that the general form, group by group, is faster.
  bool has_large_groups() const {
    constexpr int64_t max_dwords = 36;
    constexpr int64_t lanes = 16;
    const int64_t outputs = plan_.geometry.group_out_channels();
    if (plan_.geometry.group_channels() == 1 || outputs < lanes / 2) return false;
    const int64_t dwords = plan_.slices * plan_.rows.kernel * plan_.columns.kernel *
                           ceil_div(plan_.geometry.group_channels(), 4);
    return dwords * (form_.has_words() ? 1 : ceil_div(outputs, lanes)) > max_dwords;
  }

  /// Of a pixel for a vector.
  int64_t bytes_read() const {
    return form_.parts == 0 && !target_.has_avx512() ? plan_.lanes : GroupedNhwcForm::pixel_bytes;
  }

  /// As many channels as lanes, unless their groups' channels of x are more than a vector reads.
  void add_vectors() {
    const int64_t channels = plan_.geometry.out_channels;
    const int64_t of_group = plan_.geometry.group_out_channels();
    const int64_t groups = bytes_read() / plan_.geometry.group_channels();
    for (int64_t channel = 0; channel < channels;) {
      const int64_t end = std::min((channel / of_group + groups) * of_group, channels);
      const int64_t count = std::min<int64_t>(end - channel, plan_.lanes);
      plan_.overlaps = form_.parts == 0 && count < plan_.lanes && channels >= plan_.lanes;
      const int64_t shared = plan_.overlaps ? plan_.lanes - count : 0;
      plan_.vectors.push_back(vector_at(channel - shared, shared, count));
      channel += count;
    }
    const uint32_t all = (uint32_t{1} << plan_.lanes) - 1;
    form_.masks_lanes = std::ranges::any_of(plan_.vectors, [&](const NhwcVector& vector) {
      return vector.lanes != all && (!plan_.overlaps || plan_.slices > 1);
    });
  }

  NhwcVector vector_at(int64_t channel, int64_t first_lane, int64_t lanes) const {
    const ConvolutionGeometry& geometry = plan_.geometry;
    const int64_t input = channel / geometry.group_out_channels() * geometry.group_channels();
    NhwcVector vector;
    vector.input = std::min(input, std::max<int64_t>(geometry.channels - bytes_read(), 0));
    vector.channel = channel;
    vector.lanes = ((uint32_t{1} << lanes) - 1) << first_lane;
    for (int lane = 0; lane < std::min(plan_.lanes, 8); ++lane) {
      vector.lanes_mask[lane] = (vector.lanes >> lane & 1) != 0 ? -1 : 0;
    }
    return vector;
  }

  bool choose_steps() {
    constexpr int64_t max_rows = 16;
    const Phases rows = phases_of(plan_.rows);
    const Phases columns = phases_of(plan_.columns);
    plan_.row_step = rows.step;
    plan_.row_phases = rows.count;
    plan_.column_step = columns.step;
    plan_.column_phases = columns.count;
    if (rows.count > max_phases || columns.count > max_phases) return false;
    if (plan_.rows.kernel > max_rows || rows.stride > max_rows) return false;
    if (plan_.columns.kernel > GroupedNhwcForm::max_pixels) return false;
    form_.rows = static_cast<int>(plan_.rows.kernel);
    form_.row_stride = static_cast<int>(rows.stride);
    form_.columns = static_cast<int>(plan_.columns.kernel);
    // Beyond that neighbours share nothing anyway.
    form_.column_stride =
        static_cast<int>(std::min<int64_t>(columns.stride, GroupedNhwcForm::max_pixels));
    return true;
  }

  /// Neighbours that are made at a place: as cheap as may be.
  bool choose_outputs() {
    double min = 0;
    GroupedNhwcForm tried = form_;
    for (tried.outputs = 1; tried.outputs <= GroupedNhwcForm::max_outputs; ++tried.outputs) {
      if (!fits_with_window_sums(tried) || !has_short_rows(tried)) continue;
      const int64_t units = ceil_div(plan_.columns.output, tried.outputs * plan_.column_phases);
      const double cost = static_cast<double>(units) * cycles_of(tried);
      if (min > 0 && cost >= min) continue;
      min = cost;
      form_.outputs = tried.outputs;
    }
    return min > 0;
  }

  /// Products of an output row, all of which stand in the code.
  bool has_short_rows(const GroupedNhwcForm& form) const {
    constexpr int max_products = 256;
    return form.parts == 0 || form.rows * form.products() <= max_products;
  }

  /// For an output row of a place: pixels, quads and products, which the same units do; and stores.
  double cycles_of(const GroupedNhwcForm& form) const {
    const auto rows = static_cast<double>(plan_.rows.output == 1 ? form.rows : form.row_stride);
    return rows * cycles_of_row(form) + cycles_of_products(form) + 1.5 * form.outputs;
  }

  /// Of sums that many products are added to, a few must be under way at a time.
  double cycles_of_products(const GroupedNhwcForm& form) const {
    const double products = form.rows * form.products();
    if (form.parts == 0) return products;
    if (form_.has_words()) return 2 * products;
    constexpr double latency = 8;  // of two products a cycle
    const double sums =
        form.outputs * static_cast<double>(std::min<int64_t>(max_rows(form), form.sum_rows()));
    return products * std::max(1.0, latency / sums);
  }

  double cycles_of_row(const GroupedNhwcForm& form) const {
    const int flipping = form.flips_input ? 1 : 0;
    if (form.parts > 0) {
      constexpr double load = 0.5;
      return form.pixels() * (load + flipping + form.parts);
    }
    const int transposing =
        target_.supports(Feature::avx512_vbmi) ? 1 : (target_.has_avx512() ? 2 : 3);
    return form.pixels() - form.quads() + form.quads() * (transposing + flipping);
  }

  /// Rows of a block: all blocks of about a size.
  void choose_block() {
    const int64_t outputs = ceil_div(plan_.rows.output, plan_.row_phases);
    plan_.block_outputs = static_cast<int>(ceil_div(outputs, ceil_div(outputs, max_rows(form_))));
  }

  /// As many as code of a good length does. Where all code guards, there is less of it.
  int64_t max_rows(const GroupedNhwcForm& form) const {
    constexpr int64_t max_outputs = 8;
    constexpr int64_t max_input_rows = 64;
    const int64_t products = form.always_guards() ? 300 : 224;
    int64_t max = std::min<int64_t>(max_outputs, products / (form.rows * form.products()));
    max = std::min<int64_t>(max, (max_input_rows - form.rows) / form.row_stride + 1);
    return std::clamp<int64_t>(max, 1, ceil_div(plan_.rows.output, plan_.row_phases));
  }

  /// Weights may need them.
  bool fits_with_window_sums(GroupedNhwcForm form) const {
    if (!has_room(form)) return false;
    if (form.has_words()) return true;
    form.subtracts_window_sums = true;
    form.signed_input = form.flips_input;
    form.flips_input = false;
    return has_room(form);
  }

  bool has_room(const GroupedNhwcForm& form) const {
    return fits(form, target_) && (epilogue_ == nullptr || may_apply(*epilogue_, form, target_));
  }

  void add_places() {
    for (int64_t unit = 0; unit < plan_.column_units(); ++unit) {
      for (int64_t phase = 0; phase < plan_.column_phases; ++phase) {
        const int64_t column = unit * plan_.unit_columns() + phase;
        if (column < plan_.columns.output) plan_.places.push_back(place_at(column));
      }
    }
  }

  NhwcPlace place_at(int64_t column) const {
    const ConvolutionAxis& axis = plan_.columns;
    const int64_t first = column * axis.stride - axis.pad_begin;
    NhwcPlace place;
    place.input = first * plan_.geometry.channels;
    place.output = column;
    bool is_inner = true;
    for (int i = 0; i < form_.pixels(); ++i) {
      const int64_t at = first + i * plan_.column_step;
      const bool is_inside = at >= 0 && at < axis.input;
      is_inner = is_inner && is_inside;
      const int mask = form_.is_partial   ? (1 << plan_.geometry.channels) - 1
                       : form_.parts == 0 ? 0xf << (i % 4 * 4)
                                          : 0xffff;
      place.loaded[i] = static_cast<uint16_t>(is_inside ? mask : 0);
    }
    for (int i = 0; i < form_.outputs; ++i) {
      const bool is_there = column + i * plan_.column_phases < axis.output;
      is_inner = is_inner && is_there;
      place.stored[i] = static_cast<uint16_t>(is_there ? 0xffff : 0);
    }
    place.is_inner = is_inner ? 1 : 0;
    return place;
  }

  /// Whether pieces of the output may have to be smaller than a unit of blocks.
  bool has_single_rows() const {
    const int64_t channels = std::min(plan_.geometry.out_channels, GroupedNhwcPlan::line_channels);
    return epilogue_ == nullptr && plan_.unit_rows() > 1 &&
           plan_.unit_rows() * plan_.columns.output * channels > GroupedNhwcPlan::max_unit_outputs;
  }

  /// The blocks of units of so many rows in each phase.
  void add_blocks(int64_t outputs, int64_t phases) {
    const int64_t end = plan_.rows.output;
    for (int64_t unit = 0; unit < end; unit += outputs * phases) {
      for (int64_t row = unit; row < std::min(unit + phases, end); ++row) {
        const int64_t rows = std::min(ceil_div(end - row, phases), outputs);
        add_block(plan_.block_at(row, rows));
      }
    }
  }

  void add_block(const SlidingBlock& block) {
    if (plan_.number_of(block) == form_.blocks.size()) form_.blocks.push_back(block);
  }

  GroupedNhwcPlan& plan_;
  GroupedNhwcForm& form_;
  const Target& target_;
  const TileEpilogue* epilogue_;
};

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

bool GroupedNhwcPlan::is_one_pass() const {
  for (size_t i = 0; i + 2 < geometry.axes.size(); ++i) {
    const ConvolutionAxis& axis = geometry.axes[i];
    const int64_t last = (axis.output - 1) * axis.stride - axis.pad_begin;
    if (axis.kernel > 1 || axis.pad_begin > 0 || last >= axis.input) return false;
  }
  return true;
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
  if (!Planner(plan, target, epilogue).run(x_is_signed)) return std::nullopt;
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
                      4 * plan.lanes * form.record_vectors());
  text += fmt::format("  blocks   {} rows, code for {} {}\n", plan.block_outputs,
                      form.blocks.size(), form.blocks.size() == 1 ? "kind" : "kinds");
  return text;
}

}  // namespace castor::jit
