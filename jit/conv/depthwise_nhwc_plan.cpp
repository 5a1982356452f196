// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/depthwise_nhwc_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/ceil_div.hpp"
#include "jit/conv/dot_product.hpp"

namespace castor::jit {

namespace {

/// Positions and paddings that are reckoned with; channels; places and blocks of rows beyond which
/// a plan is not worth its time; phases that a unit may have.
constexpr int64_t most_positions = int64_t{1} << 30;
constexpr int64_t most_channels = int64_t{1} << 16;
constexpr int64_t most_places = int64_t{1} << 16;
constexpr int64_t most_phases = 16;

bool is_small(const ConvolutionAxis& axis) {
  return axis.input <= most_positions && axis.output <= most_places &&
         axis.pad_begin <= most_positions &&
         (axis.output - 1) * axis.stride + axis.window() <= most_positions;
}

/// The axis without strides and dilations that make no difference.
ConvolutionAxis plain_axis(ConvolutionAxis axis) {
  if (axis.output == 1) axis.stride = 1;
  if (axis.kernel == 1) axis.dilation = 1;
  return axis;
}

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
  Planner(DepthwiseNhwcPlan& plan, const Target& target, const TileEpilogue* epilogue)
      : plan_(plan), form_(plan.form), target_(target), epilogue_(epilogue) {}

  bool run(bool flips_input) {
    form_.flips_input = flips_input;
    form_.is_partial = plan_.geometry.channels < DepthwiseNhwcForm::lanes;
    if (!choose_steps() || !choose_outputs()) return false;
    choose_block();
    add_places();
    add_blocks(plan_.block_outputs, plan_.row_phases);
    if (has_single_rows()) add_blocks(1, 1);
    return fits_with_window_sums(form_);
  }

 private:
  bool choose_steps() {
    constexpr int64_t most_rows = 16;
    const Phases rows = phases_of(plan_.rows);
    const Phases columns = phases_of(plan_.columns);
    plan_.row_step = rows.step;
    plan_.row_phases = rows.count;
    plan_.column_step = columns.step;
    plan_.column_phases = columns.count;
    if (rows.count > most_phases || columns.count > most_phases) return false;
    if (plan_.rows.kernel > most_rows || rows.stride > most_rows) return false;
    if (plan_.columns.kernel > DepthwiseNhwcForm::most_pixels) return false;
    form_.rows = static_cast<int>(plan_.rows.kernel);
    form_.row_stride = static_cast<int>(rows.stride);
    form_.columns = static_cast<int>(plan_.columns.kernel);
    // Beyond that neighbours share nothing anyway.
    form_.column_stride =
        static_cast<int>(std::min<int64_t>(columns.stride, DepthwiseNhwcForm::most_pixels));
    return true;
  }

  /// Neighbours that are made at a place: as cheap as may be.
  bool choose_outputs() {
    double least = 0;
    DepthwiseNhwcForm tried = form_;
    for (tried.outputs = 1; tried.outputs <= DepthwiseNhwcForm::most_outputs; ++tried.outputs) {
      if (!fits_with_window_sums(tried)) continue;
      const int64_t units = ceil_div(plan_.columns.output, tried.outputs * plan_.column_phases);
      const double cost = static_cast<double>(units) * cycles_of(tried);
      if (least > 0 && cost >= least) continue;
      least = cost;
      form_.outputs = tried.outputs;
    }
    return least > 0;
  }

  /// For an output row of a place: pixels, quads and products, which the same units do; and stores.
  double cycles_of(const DepthwiseNhwcForm& form) const {
    const int transposing = target_.supports(Feature::avx512_vbmi) ? 1 : 2;
    const int quad = transposing + (form.flips_input ? 1 : 0);
    const int row = form.pixels() - form.quads() + form.quads() * quad;
    const auto rows = static_cast<double>(plan_.rows.output == 1 ? form.rows : form.row_stride);
    return rows * row + form.rows * form.products() + 1.5 * form.outputs;
  }

  /// Rows of a block: as many as code of a good length does, all blocks of about a size.
  void choose_block() {
    constexpr int64_t most_outputs = 8;
    constexpr int64_t most_products = 224;
    constexpr int64_t most_input_rows = 64;
    const int64_t outputs = ceil_div(plan_.rows.output, plan_.row_phases);
    int64_t most = std::min<int64_t>(most_outputs, most_products / (form_.rows * form_.products()));
    most = std::min<int64_t>(most, (most_input_rows - form_.rows) / form_.row_stride + 1);
    most = std::clamp<int64_t>(most, 1, outputs);
    plan_.block_outputs = static_cast<int>(ceil_div(outputs, ceil_div(outputs, most)));
  }

  /// Weights may need them.
  bool fits_with_window_sums(DepthwiseNhwcForm form) const {
    if (!has_room(form)) return false;
    if (dot_product_of(target_) == DotProduct::words) return true;
    form.subtracts_window_sums = true;
    form.signed_input = form.flips_input;
    form.flips_input = false;
    return has_room(form);
  }

  bool has_room(const DepthwiseNhwcForm& form) const {
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

  DepthwisePlace place_at(int64_t column) const {
    const ConvolutionAxis& axis = plan_.columns;
    const int64_t first = column * axis.stride - axis.pad_begin;
    DepthwisePlace place;
    place.input = first * plan_.geometry.channels;
    place.output = column;
    bool is_inner = true;
    for (int i = 0; i < form_.pixels(); ++i) {
      const int64_t at = first + i * plan_.column_step;
      const bool is_inside = at >= 0 && at < axis.input;
      is_inner = is_inner && is_inside;
      const int mask = form_.is_partial ? channel_mask() : 0xf << (i % 4 * 4);
      place.loaded[i] = static_cast<uint16_t>(is_inside ? mask : 0);
    }
    for (int i = 0; i < form_.outputs; ++i) {
      const bool is_there = column + i * plan_.column_phases < axis.output;
      is_inner = is_inner && is_there;
      place.stored[i] = static_cast<uint16_t>(is_there ? channel_mask() : 0);
    }
    place.is_inner = is_inner ? 1 : 0;
    return place;
  }

  int channel_mask() const {
    const int64_t channels = plan_.geometry.channels;
    return channels < DepthwiseNhwcForm::lanes ? (1 << channels) - 1 : 0xffff;
  }

  /// Whether pieces of the output may have to be smaller than a unit of blocks.
  bool has_single_rows() const {
    const int64_t channels = std::min(plan_.geometry.channels, DepthwiseNhwcPlan::line_channels);
    return epilogue_ == nullptr && plan_.unit_rows() > 1 &&
           plan_.unit_rows() * plan_.columns.output * channels >
               DepthwiseNhwcPlan::most_unit_outputs;
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

  void add_block(const DepthwiseNhwcBlock& block) {
    if (plan_.number_of(block) == form_.blocks.size()) form_.blocks.push_back(block);
  }

  DepthwiseNhwcPlan& plan_;
  DepthwiseNhwcForm& form_;
  const Target& target_;
  const TileEpilogue* epilogue_;
};

}  // namespace

DepthwiseNhwcBlock DepthwiseNhwcPlan::block_at(int64_t row, int64_t outputs) const {
  DepthwiseNhwcBlock block = {.outputs = static_cast<int>(outputs)};
  const int64_t count = form.input_rows(block);
  const int64_t first = row * rows.stride - rows.pad_begin;
  const int64_t above = first < 0 ? ceil_div(-first, row_step) : 0;
  const int64_t end = first >= rows.input ? 0 : ceil_div(rows.input - first, row_step);
  block.above = static_cast<int>(std::min(above, count));
  block.below = static_cast<int>(count - std::clamp<int64_t>(end, block.above, count));
  return block;
}

size_t DepthwiseNhwcPlan::number_of(const DepthwiseNhwcBlock& block) const {
  return static_cast<size_t>(std::ranges::find(form.blocks, block) - form.blocks.begin());
}

std::optional<DepthwiseNhwcPlan> plan_depthwise_nhwc(const ConvolutionGeometry& geometry,
                                                     bool x_is_signed, const Target& target,
                                                     const TileEpilogue* epilogue) {
  const bool is_one_to_one =
      geometry.channels == geometry.groups && geometry.out_channels == geometry.groups;
  const size_t axes = geometry.axes.size();
  if (geometry.layout != ConvolutionLayout::nhwc || !is_one_to_one || axes > 2 ||
      !target.has_avx512() || geometry.channels > most_channels) {
    return std::nullopt;
  }
  DepthwiseNhwcPlan plan;
  plan.geometry = geometry;
  const ConvolutionAxis one = {.input = 1, .kernel = 1, .output = 1};
  plan.columns = plain_axis(geometry.axes[axes - 1]);
  plan.rows = plain_axis(axes > 1 ? geometry.axes[axes - 2] : one);
  if (!is_small(plan.columns) || !is_small(plan.rows)) return std::nullopt;
  if (!Planner(plan, target, epilogue).run(x_is_signed)) return std::nullopt;
  return plan;
}

std::string print(const DepthwiseNhwcPlan& plan, const Target& target) {
  const DepthwiseNhwcForm& form = plan.form;
  std::string text =
      fmt::format("  depthwise {} channels, side by side in the lanes\n", plan.geometry.channels);
  text += fmt::format("  places   {} of {} {}, {} pixels in {} {}\n", plan.places.size(),
                      form.outputs, form.outputs == 1 ? "output" : "outputs", form.pixels(),
                      form.quads(), form.quads() == 1 ? "quad" : "quads");
  text += fmt::format("  filter   {} rows of {} {}, {} B packed for 16 channels\n", form.rows,
                      form.products(), form.products() == 1 ? "product" : "products",
                      64 * weight_vectors(form, target));
  text += fmt::format("  blocks   {} rows, code for {} {}\n", plan.block_outputs,
                      form.blocks.size(), form.blocks.size() == 1 ? "kind" : "kinds");
  return text;
}

}  // namespace castor::jit
