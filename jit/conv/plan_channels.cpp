// SPDX-License-Identifier: Apache-2.0
// Channel-vectorised plans: rows that are copied or read as they lie, and register tiles.
#include <bit>
#include <optional>

#include "jit/conv/candidates.hpp"

namespace castor::jit {

namespace {

constexpr int64_t max_extent = int64_t{1} << 24;
constexpr int64_t max_offset = int64_t{1} << 30;
constexpr int64_t cache_line = 64;

int64_t outputs_of(int64_t extent, const ConvolutionAxis& axis) {
  return extent < axis.window() ? 0 : (extent - axis.window()) / axis.stride + 1;
}

/// The distance of pixels at which none crosses more cache lines than it fills.
int64_t aligned_bytes(int64_t bytes) {
  if (bytes > cache_line) return ceil_div(bytes, cache_line) * cache_line;
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes)));
}

/// Whether no output reads padding.
bool reads_only_input(const ConvolutionAxis& axis) {
  if (axis.pad_begin != 0 || axis.window() > axis.input) return false;
  return (axis.output - 1) <= (axis.input - axis.window()) / axis.stride;
}

/// The memory that rows are read from.
enum class RowSource : uint8_t {
  input,
  copies,
  /// Copies in which no k step of a pixel crosses a cache line.
  aligned_copies,
};

/// What a source that is not packed consists of: rows of columns, each of which is a pixel with all
/// channels of a group, or with one. Runs of neighbouring elements of a row make the k steps.
class RowLayout {
 protected:
  RowLayout(DensePlan base, RowSource source)
      : plan_(std::move(base)),
        copies_(source != RowSource::input),
        has_aligned_pixels_(source == RowSource::aligned_copies),
        is_nhwc_(plan_.geometry.layout == ConvolutionLayout::nhwc),
        by_pixel_(plan_.has_pixel_rows()),
        group_channels_(plan_.geometry.group_channels()),
        held_(channels_of_k_group(plan_.engine)),
        element_bytes_(copies_ ? bytes_of_channel(plan_.engine) : 1) {}

  bool has_tiles() const { return plan_.engine == ProductEngine::tiles; }
  /// Elements of a column that a run takes: of NCHW pixels, whose channels are brought together,
  /// whole k groups.
  int64_t unit() const {
    if (!by_pixel_) return 1;
    if (has_channel_blocks()) return cache_line;
    return is_nhwc_ ? group_channels_ : ceil_div(group_channels_, held_) * held_;
  }
  /// Whether copies have each cache line of channels apart, so that a tile register's rows follow
  /// each other: those of pixels with many channels share few sets of L1.
  bool has_channel_blocks() const {
    return has_tiles() && copies_ && group_channels_ > cache_line &&
           group_channels_ % cache_line == 0;
  }
  /// Elements from one column to the next.
  int64_t column_elements() const {
    if (has_aligned_pixels_) return aligned_bytes(unit());
    return by_pixel_ && !copies_ ? plan_.geometry.channels : unit();
  }
  /// Elements of a pixel in NHWC.
  int64_t pixel_elements() const { return copies_ ? group_channels_ : plan_.geometry.channels; }

  /// Whether columns of the filter follow each other in a row without a gap.
  bool joins_columns() const {
    if (plan_.columns.kernel > 1 && plan_.columns.dilation != 1) return false;
    if (has_aligned_pixels_ || has_channel_blocks()) return false;
    return !by_pixel_ || pixel_elements() == group_channels_;
  }
  /// Runs in a row of the filter, and elements of each.
  int64_t row_runs() const { return joins_columns() ? 1 : plan_.columns.kernel; }
  int64_t run_elements() const { return plan_.columns.kernel / row_runs() * unit(); }
  int64_t k_groups_of_runs() const {
    return planes() * plan_.rows.kernel * row_runs() * ceil_div(run_elements(), held_);
  }

  /// Channels that have planes of their own, and all planes.
  int64_t plane_channels() const {
    if (has_channel_blocks()) return group_channels_ / cache_line;
    return by_pixel_ ? 1 : group_channels_;
  }
  int64_t planes() const { return plan_.slices * plane_channels(); }

  /// In the order of packed planes' k steps where k groups are those that these have.
  void list_k_steps() {
    by_pixel_&& group_channels_ % held_ == 0 && !has_tiles() ? list_k_groups() : list_runs();
  }

  DensePlan plan_;
  CopiedRows rows_;
  const bool copies_;
  const bool has_aligned_pixels_;
  const bool is_nhwc_;
  const bool by_pixel_;  ///< a column is a pixel with all channels of a group
  const int64_t group_channels_;
  const int64_t held_;  ///< values that a k group holds
  const int64_t element_bytes_;

 private:
  int64_t offset_of(int64_t plane, int64_t r, int64_t s) const {
    return rows_.planes[static_cast<size_t>(plane)] + r * plan_.rows.dilation * rows_.row_bytes +
           s * plan_.columns.dilation * rows_.column_bytes;
  }
  void add_k_step(int64_t offset) { plan_.k_steps.push_back(static_cast<int32_t>(offset)); }

  void list_k_groups() {
    for (int64_t slice = 0; slice < plan_.slices; ++slice) {
      for (int64_t k_group = 0; k_group < plan_.k_groups; ++k_group) {
        for (int64_t r = 0; r < plan_.rows.kernel; ++r) {
          for (int64_t s = 0; s < plan_.columns.kernel; ++s) {
            add_k_step(offset_of(slice, r, s) + k_group * held_ * element_bytes_);
          }
        }
      }
    }
  }

  /// With tile registers k steps are equal parts of a run. The last one overlaps the one before,
  /// and has no weights for what that has taken. Those of aligned pixels are whole cache lines.
  void list_runs() {
    const bool has_whole_lines = has_aligned_pixels_ && run_elements() > cache_line;
    const int64_t run =
        has_whole_lines ? column_elements() : ceil_div(run_elements(), held_) * held_;
    const int64_t max_held = has_tiles() ? DenseTile::max_step_bytes / held_ : 1;
    const int64_t step = held_ * even_part(run / held_, max_held);
    if (has_tiles()) plan_.tile.step_bytes = static_cast<int>(step);
    plan_.k_step_weights.reserve(static_cast<size_t>(k_groups_of_runs()));
    for (int64_t plane = 0; plane < planes(); ++plane) {
      for (int64_t r = 0; r < plan_.rows.kernel; ++r) {
        for (int64_t s = 0; s < row_runs(); ++s) {
          for (int64_t begin = 0; begin < run; begin += step) {
            const int64_t first = std::min(begin, run - step);
            add_k_step(offset_of(plane, r, s) + first * element_bytes_);
            for (int64_t i = 0; i < step; i += held_) add_weights(plane, r, s, first + i, begin);
          }
        }
      }
    }
  }

  /// The weights of a k group that holds a run's elements from `first` on, without those before
  /// `begin`.
  void add_weights(int64_t plane, int64_t r, int64_t s, int64_t first, int64_t begin) {
    KStepWeights weights = {-1, -1, -1, -1};
    for (int64_t i = 0; i < std::min(held_, run_elements() - first); ++i) {
      if (first + i < begin) continue;
      const int64_t of_column = (first + i) % unit();
      if (by_pixel_ && of_column >= group_channels_) continue;  // there is none
      const int64_t channel = plane % plane_channels() * rows_.channels + of_column;
      const int64_t slice = plane / plane_channels();
      const int64_t row = (channel * plan_.slices + slice) * plan_.rows.kernel + r;
      weights[static_cast<size_t>(i)] =
          static_cast<int32_t>(row * plan_.columns.kernel + s + (first + i) / unit());
    }
    plan_.k_step_weights.push_back(weights);
  }
};

/// Plans a source that is not packed.
class RowPlanner : RowLayout {
 public:
  RowPlanner(const DensePlan& base, bool x_is_signed, RowSource source, const Target& target)
      : RowLayout(base, source), target_(target), x_is_signed_(x_is_signed) {}

  /// Nothing where the source is not possible, or sure to be slow.
  std::optional<DensePlan> plan() {
    if (!is_possible()) return std::nullopt;
    rows_.channels = by_pixel_ ? (has_channel_blocks() ? unit() : group_channels_) : 1;
    rows_.column_bytes = column_elements() * element_bytes_;
    rows_.has_aligned_pixels = has_aligned_pixels_;
    if (!choose_block()) return std::nullopt;
    list_planes();
    const int64_t last_column = rows_.planes.back() + plan_.rows.window() * rows_.row_bytes +
                                plan_.columns.window() * rows_.column_bytes;
    if (last_column > max_offset) return std::nullopt;
    list_k_steps();
    if (copies_) {
      plan_.source = std::move(rows_);
    } else {
      plan_.tile.has_sign_flip = takes_u8_by_i8(plan_.engine) && x_is_signed_;
      plan_.source = DirectInput{std::move(rows_)};
    }
    return std::move(plan_);
  }

 private:
  bool is_possible() const {
    for (const ConvolutionAxis* axis : {&plan_.rows, &plan_.columns}) {
      if (axis->stride > max_extent || axis->window() > max_extent) return false;
    }
    const int64_t positions = plan_.slices * plan_.rows.kernel * plan_.columns.kernel;
    if (positions > max_offset / group_channels_ || pixel_elements() > max_extent) return false;
    if (k_groups_of_runs() > max_listed_k_steps) return false;
    const bool has_few_bytes = unit() < target_.tuning().dense.min_aligned_bytes;
    if (has_aligned_pixels_ && (has_few_bytes || aligned_bytes(unit()) == unit())) return false;
    // Where a k group takes few bytes of its run, packed planes have fewer.
    const double growth =
        static_cast<double>(k_groups_of_runs()) / static_cast<double>(plan_.k_groups * positions);
    if (!by_pixel_ && growth > target_.tuning().dense.max_run_growth) return false;
    if (copies_) return true;
    if (by_pixel_ != is_nhwc_) return false;
    return multiplies_bytes(plan_.engine) && run_elements() % held_ == 0 &&
           std::ranges::all_of(plan_.geometry.axes, reads_only_input);
  }

  /// As many rows as stay in L2; of copies, where not even one does, a part of a row.
  bool choose_block() {
    const BlockTuning& tuning = target_.tuning().block;
    const int64_t columns = plan_.columns.output;
    const int64_t max_columns =
        l2_share(target_, tuning.packed_l2_eighths) / rows_.column_bytes / planes();
    plan_.block.columns = even_part(columns, has_tiles() ? max_tile_pixels() : max_block_pixels);
    rows_.columns =
        copies_ ? input_extent(plan_.block.columns, plan_.columns) : plan_.columns.input;
    const int64_t fitting = outputs_of(max_columns / rows_.columns, plan_.rows);
    plan_.block.rows = rows_of_block(fitting);
    if (copies_ && (fitting == 0 || plan_.block.columns < columns)) {
      const int64_t block_columns =
          std::min(outputs_of(max_columns / plan_.rows.window(), plan_.columns), max_block_pixels);
      if (block_columns < std::min(tuning.min_columns, columns)) return false;
      plan_.block = {.rows = 1, .columns = even_part(columns, block_columns)};
      rows_.columns = input_extent(plan_.block.columns, plan_.columns);
    }
    rows_.rows = input_extent(plan_.block.rows, plan_.rows);
    rows_.row_bytes = rows_.columns * rows_.column_bytes;
    return rows_.row_bytes <= max_offset / plan_.rows.window();
  }

  /// Rows of a block of whole rows, of about a size, at most `fitting` and of few pixels.
  int64_t rows_of_block(int64_t fitting) const {
    const int64_t few = max_pixels() / plan_.columns.output;
    const int64_t max = std::clamp<int64_t>(std::min(fitting, few), 1, plan_.rows.output);
    return even_part(plan_.rows.output, max);
  }

  /// Pixels of a block of rows at the most. Tiles of channels, if there are several, write to each
  /// pixel in turn: where an image's results do not stay in L2, a block's shall.
  int64_t max_pixels() const {
    const CoreTuning& tuning = target_.tuning();
    const int64_t channels = plan_.geometry.group_out_channels();
    const int64_t pixels = plan_.rows.output * plan_.columns.output;
    const bool stays_in_l2 = pixels <= target_.caches.l2 / (4 * channels);
    const bool is_one_tile = channels <= int64_t{tuning.dense.max_channel_vectors} * plan_.lanes;
    if (!is_nhwc_ || stays_in_l2 || is_one_tile) return max_block_pixels;
    const int64_t bytes = l2_share(target_, tuning.block.channel_tile_l2_eighths);
    return std::min(bytes / (4 * channels), max_block_pixels);
  }

  /// The same for tile registers: whole pairs of them, and enough that weights, which are read once
  /// for a block, take little of its time.
  int64_t max_tile_pixels() const {
    constexpr int64_t pair = 2 * DenseTile::tile_rows;
    const int64_t few = costs_on(target_).tiles.min_block_pixels;
    return std::clamp(max_pixels() / pair * pair, few, max_block_pixels);
  }

  void list_planes() {
    const int64_t channel_pixels = plan_.rows.input * plan_.columns.input;
    int64_t image_pixels = channel_pixels;
    for (size_t i = 0; i + 2 < plan_.geometry.axes.size(); ++i) {
      image_pixels *= plan_.geometry.axes[i].input;
    }
    for (int64_t slice = 0; slice < plan_.slices; ++slice) {
      for (int64_t channel = 0; channel < plane_channels(); ++channel) {
        if (copies_) {
          rows_.planes.push_back(std::ssize(rows_.planes) * rows_.plane_bytes());
          continue;
        }
        const int64_t pixel = *outer_position(plan_.geometry, 0, slice) * channel_pixels;
        rows_.planes.push_back(is_nhwc_ ? pixel * plan_.geometry.channels
                                        : pixel + channel * image_pixels);
      }
    }
  }

  const Target& target_;
  const bool x_is_signed_;
};

/// A tile of that many vectors of channels, and of as many pixels as fit, all tiles of about a
/// size; nothing where none fits.
std::optional<DenseTile> tile_of(const DensePlan& plan, int vectors, const Target& target) {
  DenseTile tile = plan.tile;
  tile.channels = plan.channels_of_tile(vectors);
  int64_t max = 0;
  for (DenseTile wider = tile; fits(wider, target); ++wider.columns) max = wider.columns;
  if (max == 0) return std::nullopt;
  tile.columns = static_cast<int>(even_part(plan.block.columns, max));
  if (tile.columns == plan.block.columns) {
    const int64_t rows = std::min(max / plan.block.columns, plan.block.rows);
    tile.pixel_rows = static_cast<int>(even_part(plan.block.rows, rows));
  }
  if (tile.pixel_rows > 1) tile.row_step = static_cast<int32_t>(plan.source_row_step());
  return tile;
}

/// Register tiles of each number of vectors.
std::vector<DenseTile> channel_tiles(const DensePlan& plan, const Target& target) {
  const int64_t vectors = ceil_div(plan.geometry.group_out_channels(), plan.lanes);
  const int max = target.tuning().dense.max_channel_vectors;
  std::vector<DenseTile> tiles;
  for (int v = 1; v <= std::min<int64_t>(vectors, max); ++v) {
    if (plan.tile.has_tiles()) {
      add_register_tiles(plan, v, target, tiles);
    } else if (const auto tile = tile_of(plan, v, target)) {
      tiles.push_back(*tile);
    }
  }
  return tiles;
}

/// Blocks but the last have whole tiles.
void round_block(DensePlan& plan) {
  if (plan.block.rows < plan.rows.output) plan.block.rows -= plan.block.rows % plan.tile.pixel_rows;
}

/// Chooses the tile of the least cycles.
void choose_tile(DensePlan& plan, const Target& target) {
  plan.tile.engine = plan.engine;
  plan.tile.pixel_step = static_cast<int32_t>(plan.source_column_step());
  if (plan.geometry.layout == ConvolutionLayout::nchw) plan.tile.store = StorePolicy::transposed;
  const DenseTile cheapest = cheapest_tile(plan, channel_tiles(plan, target), target);
  if (cheapest.has_tiles()) {
    set_register_tile(plan, cheapest, target);
    return round_block(plan);
  }
  set_tile(plan, cheapest);
  round_block(plan);
  plan.tile.transposes_registers = plan.tile.store == StorePolicy::transposed &&
                                   target.has_avx512() &&
                                   target.tuning().dense.transposes_registers;
  peel_k_steps(plan.tile, plan.k_steps.size(), target);
}

/// With run-time weights, which are packed for one tile of channels after the other where each is
/// used once in a call.
void take_channels_one_by_one(DensePlan& plan, const Target& target) {
  DenseTile tile = plan.tile;
  tile.channels_inside = false;
  set_register_tile(plan, tile, target);
  plan.tile.prefetched_lines = 0;
}

/// Rows of a pointwise convolution follow each other as one.
void join_rows(DensePlan& plan) {
  if (!is_pointwise(plan.rows) || !is_pointwise(plan.columns)) return;
  plan.columns.input *= plan.rows.input;
  plan.columns.output = plan.columns.input;
  plan.rows = {.input = 1, .kernel = 1, .output = 1};
}

/// Whether the distances of a tile's pixels are small: without tile registers they stand in its
/// code.
bool has_near_pixels(const DensePlan& plan) {
  constexpr int64_t max_pixels = 48;
  const bool has_near_rows =
      plan.rows.output == 1 || plan.source_row_step() <= max_offset / max_pixels;
  return has_near_rows && plan.source_column_step() <= max_offset / max_pixels;
}

}  // namespace

std::vector<DensePlan> with_other_register_tiles(const DensePlan& plan, const Target& target) {
  std::vector<DensePlan> others;
  for (const DenseTile& tile : channel_tiles(plan, target)) {
    DensePlan other = plan;
    set_register_tile(other, tile, target);
    round_block(other);
    if (other.tile != plan.tile) others.push_back(std::move(other));
  }
  return others;
}

std::vector<DensePlan> plan_channels(const DensePlan& base, const ConvolutionProblem& problem,
                                     const Target& target) {
  DensePlan begun = base;
  begun.tile.vectorised = Vectorised::channels;
  std::vector<DensePlan> plans;
  for (const RowSource source : {RowSource::input, RowSource::copies}) {
    auto plan = RowPlanner(begun, problem.x_is_signed, source, target).plan();
    if (!plan) continue;
    plans.push_back(std::move(*plan));
    if (!plans.back().tile.has_sign_flip) break;  // else copies may cost less
  }
  const int64_t k_steps = base.slices * base.k_groups * base.rows.kernel * base.columns.kernel;
  if (base.geometry.layout == ConvolutionLayout::nchw && k_steps <= max_listed_k_steps) {
    plans.push_back(plan_packed(begun, {}, target));
  }
  std::erase_if(plans, [](const DensePlan& plan) { return !has_near_pixels(plan); });
  for (DensePlan& plan : plans) choose_tile(plan, target);
  return plans;
}

std::vector<DensePlan> plan_tiles(const DensePlan& base, const ConvolutionProblem& problem,
                                  const Target& target) {
  DensePlan begun = base;
  begun.engine = ProductEngine::tiles;
  begun.tile = {.vectorised = Vectorised::channels, .engine = ProductEngine::tiles};
  begun.tile.x_is_signed = problem.x_is_signed;
  begun.tile.w_is_signed = problem.w_is_signed;
  join_rows(begun);
  std::vector<DensePlan> plans;
  for (const RowSource source : {RowSource::input, RowSource::copies, RowSource::aligned_copies}) {
    if (source == RowSource::copies && !plans.empty()) continue;
    auto plan = RowPlanner(begun, problem.x_is_signed, source, target).plan();
    if (!plan || !has_near_pixels(*plan)) continue;
    choose_tile(*plan, target);
    if (!problem.has_constant_weights && uses_weights_once(*plan))
      take_channels_one_by_one(*plan, target);
    plans.push_back(std::move(*plan));
  }
  return plans;
}

}  // namespace castor::jit
