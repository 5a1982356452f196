// SPDX-License-Identifier: Apache-2.0
// Plans with output channels in the lanes: sources, taps and tiles.
#include <algorithm>
#include <optional>

#include "jit/conv/conv_planning.hpp"
#include "jit/conv/cost/costs.hpp"

namespace castor::jit {

namespace {

constexpr int64_t max_extent = int64_t{1} << 24;
constexpr int64_t max_offset = int64_t{1} << 30;
constexpr int max_channel_vectors = 6;

bool is_nhwc(const ConvPlan& plan) { return plan.geometry.layout == ConvolutionLayout::nhwc; }

/// Whether no output reads padding.
bool reads_only_input(const ConvolutionAxis& axis) {
  if (axis.pad_begin != 0 || axis.window() > axis.input) return false;
  return (axis.output - 1) <= (axis.input - axis.window()) / axis.stride;
}

/// Plans one source that is not planes. Runs of neighbouring elements of a row make the taps.
class RowPlanner {
 public:
  RowPlanner(const ConvolutionGeometry& geometry, bool x_is_signed, ConvSource source,
             const Target& target)
      : plan_(begin_plan(geometry, target)), x_is_signed_(x_is_signed) {
    plan_.source = source;
    group_channels_ = geometry.group_channels();
  }

  /// Nothing where the source is not possible, or sure to be slow.
  std::optional<ConvPlan> plan() {
    if (!is_possible()) return std::nullopt;
    ConvRows& rows = plan_.input_rows;
    rows.column_bytes = is_nhwc(plan_) ? unit() * element_bytes() : element_bytes();
    const bool fits = plan_.source == ConvSource::input ? choose_rows_of_input() : choose_copies();
    if (!fits) return std::nullopt;
    list_planes();
    if (!has_whole_channels()) plan_.tap_weights.reserve(static_cast<size_t>(dwords_of_runs()));
    list_taps();
    const bool far = std::ranges::any_of(plan_.taps, [](int32_t tap) { return tap > max_offset; });
    if (far) return std::nullopt;
    return std::move(plan_);
  }

 private:
  bool copies() const { return plan_.source == ConvSource::rows; }
  int64_t element_bytes() const { return copies() ? bytes_of_channel(plan_.engine) : 1; }
  int64_t held() const { return channels_of_k_group(plan_.engine); }
  /// Elements of a column in nhwc.
  int64_t unit() const { return copies() ? group_channels_ : plan_.geometry.channels; }

  bool is_possible() const {
    for (const ConvolutionAxis* axis : {&plan_.rows, &plan_.columns}) {
      if (axis->stride > max_extent || axis->window() > max_extent) return false;
    }
    const int64_t positions = plan_.slices * plan_.rows.kernel * plan_.columns.kernel;
    if (positions > max_offset / group_channels_ || unit() > max_extent) return false;
    if (dwords_of_runs() > max_listed_taps) return false;
    // Where a dword takes few bytes of its run, planes have fewer taps.
    const double planes = static_cast<double>(plan_.dwords * positions);
    if (!is_nhwc(plan_) && static_cast<double>(dwords_of_runs()) > 1.25 * planes) return false;
    if (copies()) return true;
    const bool as_it_lies = plan_.engine == ProductEngine::u8_i8_dot && !x_is_signed_;
    return as_it_lies && run_elements() % held() == 0 &&
           std::ranges::all_of(plan_.geometry.axes, reads_only_input);
  }

  /// Whether columns of the filter follow each other in a row without a gap.
  bool joins_columns() const {
    if (plan_.columns.kernel > 1 && plan_.columns.dilation != 1) return false;
    return !is_nhwc(plan_) || unit() == group_channels_;
  }
  int64_t run_elements() const {
    const int64_t columns = joins_columns() ? plan_.columns.kernel : 1;
    return is_nhwc(plan_) ? columns * group_channels_ : columns;
  }
  int64_t runs() const {
    return planes() * plan_.rows.kernel * (joins_columns() ? 1 : plan_.columns.kernel);
  }
  int64_t dwords_of_runs() const { return runs() * ceil_div(run_elements(), held()); }
  /// Whether dwords are those that planes would have.
  bool has_whole_channels() const { return is_nhwc(plan_) && group_channels_ % held() == 0; }

  static int64_t extent_of(int64_t outputs, const ConvolutionAxis& axis) {
    return (outputs - 1) * axis.stride + axis.window();
  }
  static int64_t outputs_of(int64_t extent, const ConvolutionAxis& axis) {
    return extent < axis.window() ? 0 : (extent - axis.window()) / axis.stride + 1;
  }

  /// Pixels of a block of rows at the most. Tiles of channels, if there are several, write to each
  /// pixel in turn: where an image's results do not stay in the second cache, a block's shall.
  int64_t max_pixels() const {
    const int64_t pixel_bytes = 4 * plan_.geometry.group_out_channels();
    const int64_t pixels = plan_.rows.output * plan_.columns.output;
    const bool stays_near = pixels <= plan_.caches.l2 / pixel_bytes;
    const bool is_one_tile =
        plan_.geometry.group_out_channels() <= int64_t{max_channel_vectors} * plan_.lanes;
    if (!is_nhwc(plan_) || stays_near || is_one_tile) return max_block_pixels;
    return std::min(second_cache(plan_.caches) / 2 / pixel_bytes, max_block_pixels);
  }

  /// Rows of a block of whole rows, of about a size, at most `fitting` and of few pixels.
  int64_t rows_of_block(int64_t fitting) const {
    const int64_t rows = plan_.rows.output;
    const int64_t few = max_pixels() / plan_.columns.output;
    const int64_t max = std::clamp<int64_t>(std::min(fitting, few), 1, rows);
    return ceil_div(rows, ceil_div(rows, max));
  }

  /// As many rows as stay in the second cache, or a part of a row.
  bool choose_rows_of_input() {
    ConvRows& rows = plan_.input_rows;
    rows.row_bytes = plan_.columns.input * rows.column_bytes;
    if (rows.row_bytes > max_offset / plan_.rows.window()) return false;
    const int64_t fitting = max_source_bytes(plan_.caches) / rows.row_bytes / planes();
    const int64_t columns = plan_.columns.output;
    plan_.block = {.rows = rows_of_block(outputs_of(fitting, plan_.rows)),
                   .columns = ceil_div(columns, ceil_div(columns, max_block_pixels))};
    return true;
  }

  /// As many rows as fit, or, where not even one does, a part of a row.
  bool choose_copies() {
    const ConvRows& rows = plan_.input_rows;
    const int64_t columns = plan_.columns.output;
    const int64_t max_columns = max_source_bytes(plan_.caches) / rows.column_bytes / planes();
    plan_.block = {.rows = 1, .columns = columns};
    if (columns <= std::min(outputs_of(max_columns, plan_.columns), max_block_pixels)) {
      const int64_t row = extent_of(columns, plan_.columns);
      const int64_t fitting = outputs_of(max_columns / row, plan_.rows);
      if (fitting >= 1) {
        plan_.block.rows = rows_of_block(fitting);
        return set_copies();
      }
    }
    constexpr int64_t min_columns = 16;
    const int64_t part =
        std::min(outputs_of(max_columns / plan_.rows.window(), plan_.columns), max_block_pixels);
    if (part < std::min(min_columns, columns)) return false;
    plan_.block.columns = ceil_div(columns, ceil_div(columns, part));
    return set_copies();
  }

  bool set_copies() {
    ConvRows& rows = plan_.input_rows;
    rows.rows = extent_of(plan_.block.rows, plan_.rows);
    rows.columns = extent_of(plan_.block.columns, plan_.columns);
    rows.row_bytes = rows.columns * rows.column_bytes;
    rows.plane_bytes = rows.rows * rows.row_bytes;
    return true;
  }

  /// Channels that have planes of their own, and all planes.
  int64_t plane_channels() const { return is_nhwc(plan_) ? 1 : group_channels_; }
  int64_t planes() const { return plan_.slices * plane_channels(); }

  void list_planes() {
    for (int64_t slice = 0; slice < plan_.slices; ++slice) {
      for (int64_t channel = 0; channel < plane_channels(); ++channel) {
        const auto plane = static_cast<int64_t>(plan_.input_rows.planes.size());
        plan_.input_rows.planes.push_back(copies() ? plane * plan_.input_rows.plane_bytes
                                                   : place_in_input(slice, channel));
      }
    }
  }

  /// Bytes of the input from the first plane to that of the slice's and channel's.
  int64_t place_in_input(int64_t slice, int64_t channel) const {
    const std::vector<ConvolutionAxis>& axes = plan_.geometry.axes;
    int64_t pixel = 0;
    int64_t pixels = plan_.rows.input * plan_.columns.input;
    for (size_t i = axes.size() > 2 ? axes.size() - 2 : 0; i-- > 0;) {
      pixel += slice % axes[i].kernel * axes[i].dilation * pixels;
      pixels *= axes[i].input;
      slice /= axes[i].kernel;
    }
    return is_nhwc(plan_) ? pixel * plan_.geometry.channels : pixel + channel * pixels;
  }

  void list_taps() {
    plan_.taps.reserve(static_cast<size_t>(dwords_of_runs()));
    if (has_whole_channels()) return list_whole_channels();
    const int64_t columns = joins_columns() ? 1 : plan_.columns.kernel;
    for (int64_t slice = 0; slice < plan_.slices; ++slice) {
      for (int64_t channel = 0; channel < plane_channels(); ++channel) {
        for (int64_t r = 0; r < plan_.rows.kernel; ++r) {
          for (int64_t s = 0; s < columns; ++s) list_run(slice, channel, r, s);
        }
      }
    }
  }

  int64_t tap_offset(int64_t slice, int64_t channel, int64_t r, int64_t s) const {
    const ConvRows& rows = plan_.input_rows;
    const auto plane = static_cast<size_t>(slice * plane_channels() + channel);
    return rows.planes[plane] + r * plan_.rows.dilation * rows.row_bytes +
           s * plan_.columns.dilation * rows.column_bytes;
  }
  void add_tap(int64_t offset) {
    plan_.taps.push_back(static_cast<int32_t>(std::min(offset, max_offset + 1)));
  }

  /// In the order of planes' taps.
  void list_whole_channels() {
    for (int64_t slice = 0; slice < plan_.slices; ++slice) {
      for (int64_t part = 0; part < plan_.dwords; ++part) {
        for (int64_t r = 0; r < plan_.rows.kernel; ++r) {
          for (int64_t s = 0; s < plan_.columns.kernel; ++s) {
            add_tap(tap_offset(slice, 0, r, s) + part * held() * element_bytes());
          }
        }
      }
    }
  }

  /// The dwords of one run, and which weights they meet.
  void list_run(int64_t slice, int64_t channel, int64_t r, int64_t s) {
    const int64_t begin = tap_offset(slice, channel, r, s);
    for (int64_t first = 0; first < run_elements(); first += held()) {
      add_tap(begin + first * element_bytes());
      TapWeights weights = {-1, -1, -1, -1};
      for (int64_t i = 0; i < std::min(held(), run_elements() - first); ++i) {
        const int64_t element = first + i;
        const int64_t c = is_nhwc(plan_) ? element % group_channels_ : channel;
        const int64_t column = s + (is_nhwc(plan_) ? element / group_channels_ : element);
        weights[static_cast<size_t>(i)] = static_cast<int32_t>(
            ((c * plan_.slices + slice) * plan_.rows.kernel + r) * plan_.columns.kernel + column);
      }
      plan_.tap_weights.push_back(weights);
    }
  }

  ConvPlan plan_;
  const bool x_is_signed_;
  int64_t group_channels_;
};

/// A tile of that many vectors of channels, and of as many pixels as fit, all tiles of about a
/// size.
DenseTile tile_of(const ConvPlan& plan, int vectors, const Target& target) {
  DenseTile tile = {.vectorised = Vectorised::channels, .engine = plan.engine};
  tile.channels = static_cast<int>(
      std::min<int64_t>(int64_t{vectors} * plan.lanes, plan.geometry.group_out_channels()));
  if (plan.geometry.layout == ConvolutionLayout::nchw) tile.store = StorePolicy::transposed;
  tile.pixel_step = static_cast<int32_t>(plan.source_column_step());
  int64_t max = 0;
  for (DenseTile wider = tile; fits(wider, target); ++wider.columns) max = wider.columns;
  const int64_t columns = plan.block.columns;
  if (max == 0) return tile;
  tile.columns = static_cast<int>(ceil_div(columns, ceil_div(columns, max)));
  if (tile.columns < columns) return tile;
  const int64_t rows = std::min(max / columns, plan.block.rows);
  tile.pixel_rows = static_cast<int>(ceil_div(plan.block.rows, ceil_div(plan.block.rows, rows)));
  if (tile.pixel_rows > 1) tile.row_step = static_cast<int32_t>(plan.source_row_step());
  return tile;
}

/// Window sums have pixels in the lanes.
DenseTile tile_of_window_sums(const ConvPlan& plan) {
  const int64_t vectors = ceil_div(plan.line_pixels(plan.block), plan.lanes);
  const bool has_dead_lanes = plan.block.rows > 1 && plan.pitch != plan.block.columns;
  return {.engine = plan.engine,
          .vectors = static_cast<int>(std::min<int64_t>(vectors, vectors_of_window_sums)),
          .store = has_dead_lanes ? StorePolicy::compressed : StorePolicy::rows};
}

/// Chooses the tile of the least cycles.
void choose_tile(ConvPlan& plan, const Target& target) {
  plan.lanes_hold = ConvLanes::channels;
  if (plan.source == ConvSource::planes) plan.tile = tile_of_window_sums(plan);
  const ConvolutionCosts& costs = costs_on(target);
  double min = 0;
  const int64_t vectors = ceil_div(plan.geometry.group_out_channels(), plan.lanes);
  for (int v = 1; v <= std::min<int64_t>(vectors, max_channel_vectors); ++v) {
    const DenseTile tile = tile_of(plan, v, target);
    if (!fits(tile, target)) continue;
    const double cycles = cost_of_block(plan, tile, costs).cycles(costs.cycles);
    if (min != 0 && cycles >= min) continue;
    min = cycles;
    plan.channel_tile = tile;
  }
  if (plan.block.rows < plan.rows.output) {  // whole tiles in all blocks but the last
    plan.block.rows -= plan.block.rows % plan.channel_tile.pixel_rows;
  }
  plan.channel_tile.peeled_k_steps =
      peeled_k_steps_of(plan.taps.size(), plan.channel_tile.vectors_of(plan.lanes), target);
  set_channel_tiles(plan, plan.channel_tile.channels);
}

/// Whether the distances of a tile's pixels can stand in its code.
bool has_near_pixels(const ConvPlan& plan) {
  constexpr int64_t max_pixels = 32;
  return plan.source_row_step() <= max_offset / max_pixels &&
         plan.source_column_step() <= max_offset / max_pixels;
}

}  // namespace

std::vector<ConvPlan> plan_channel_lanes(const ConvolutionProblem& problem, const Target& target) {
  const ConvolutionGeometry& geometry = problem.geometry;
  std::vector<ConvPlan> plans;
  for (ConvSource source : {ConvSource::input, ConvSource::rows}) {
    std::optional<ConvPlan> plan = RowPlanner(geometry, problem.x_is_signed, source, target).plan();
    if (!plan) continue;
    plans.push_back(std::move(*plan));
    break;
  }
  const ConvPlan planes = begin_plan(geometry, target);
  const int64_t taps = planes.slices * planes.dwords * planes.rows.kernel * planes.columns.kernel;
  if (geometry.layout == ConvolutionLayout::nchw && taps <= max_listed_taps) {
    plans.push_back(planes);
    plans.back().lanes_hold = ConvLanes::channels;
    choose_planes(plans.back());
  }
  std::erase_if(plans, [](const ConvPlan& plan) { return !has_near_pixels(plan); });
  for (ConvPlan& plan : plans) choose_tile(plan, target);
  return plans;
}

}  // namespace castor::jit
