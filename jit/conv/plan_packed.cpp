// SPDX-License-Identifier: Apache-2.0
// Plans of packed input: stride phases, cache blocks and k steps.
#include "jit/conv/dense_plan.hpp"

namespace castor::jit {

namespace {

StridePhases phases_by_stride(const ConvolutionAxis& axis) {
  StridePhases result;
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    result.phases.push_back(tap * axis.dilation % axis.stride);
  }
  std::ranges::sort(result.phases);
  result.phases.erase(std::unique(result.phases.begin(), result.phases.end()), result.phases.end());
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    const auto at = std::ranges::lower_bound(result.phases, tap * axis.dilation % axis.stride);
    result.of_tap.push_back(at - result.phases.begin());
    result.shifts.push_back(tap * axis.dilation / axis.stride);
    result.max_shift = std::max(result.max_shift, result.shifts.back());
  }
  return result;
}

/// Where taps lie so far apart that what is between them would fill packed input: a plane for each
/// tap.
StridePhases phases_by_tap(const ConvolutionAxis& axis) {
  StridePhases result;
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    result.phases.push_back(tap * axis.dilation);
    result.of_tap.push_back(tap);
    result.shifts.push_back(0);
  }
  return result;
}

/// The least pitch at which no pixel's taps meet another row's data. Where a row ends in padding
/// and the next one begins with some, the two share it.
int64_t min_pitch(const ConvolutionAxis& axis, const StridePhases& phases) {
  const int64_t width = axis.output + phases.max_shift;
  int64_t pitch = axis.output;
  for (int64_t phase : phases.phases) {
    const int64_t first = axis.pad_begin - phase;  // of the data, before strides
    const int64_t left =
        std::clamp<int64_t>(ceil_div(std::max<int64_t>(first, 0), axis.stride), 0, width);
    const int64_t data_end = std::clamp<int64_t>(
        ceil_div(std::max<int64_t>(axis.input + first, 0), axis.stride), 0, width);
    pitch = std::max(pitch, width - std::min(left, width - data_end));
  }
  return pitch;
}

/// Tiles of the usual two vectors in all blocks of so many rows without dead lanes.
int64_t tiles_of_blocks(const DensePlan& plan, int64_t rows) {
  const auto tiles = [&](int64_t of) {
    return ceil_div(of * plan.block.columns, int64_t{2} * plan.lanes);
  };
  return plan.rows.output / rows * tiles(rows) + tiles(plan.rows.output % rows);
}

/// Rows of blocks of about a size; where rows follow each other without dead lanes, of whole tiles
/// if possible.
int64_t rows_of_block(const DensePlan& plan, const PackedPlanes& planes, int64_t max_rows) {
  int64_t best = even_part(plan.rows.output, max_rows);
  const bool is_dense = planes.pitch == plan.block.columns && !planes.has_aligned_rows;
  if (!is_dense || !plan.is_pixel_vectorised()) return best;
  int64_t min = tiles_of_blocks(plan, best);
  for (int64_t rows = max_rows / 2 + 1; rows <= max_rows; ++rows) {
    if (tiles_of_blocks(plan, rows) >= min) continue;
    best = rows;
    min = tiles_of_blocks(plan, rows);
  }
  return best;
}

class PackedPlanner {
 public:
  PackedPlanner(DensePlan plan, PackedPlanes planes, const Target& target)
      : plan_(std::move(plan)),
        planes_(std::move(planes)),
        target_(target),
        tuning_(target.tuning().block),
        held_(channels_of_k_group(plan_.engine)) {}

  DensePlan plan() {
    switch (planes_.layout) {
      case PackedLayout::nchw4c: choose_phases(plan_.columns); break;
      case PackedLayout::columns4: plan_columns(); break;
      case PackedLayout::im2col: plan_im2col(); break;
    }
    list_k_steps();
    plan_.source = std::move(planes_);
    return std::move(plan_);
  }

 private:
  /// Each k step takes as many columns as a k group holds of them.
  void plan_columns() {
    plan_.k_groups = plan_.geometry.group_channels();
    ConvolutionAxis columns = plan_.columns;
    columns.dilation = held_;
    columns.kernel = ceil_div(columns.kernel, held_);
    choose_phases(columns);
    for (int64_t slice = 0; slice < plan_.slices; ++slice) {
      for (int64_t channel = 0; channel < plan_.k_groups; ++channel) {
        const int64_t first_row = (channel * plan_.slices + slice) * plan_.rows.kernel;
        for (int64_t row = first_row; row < first_row + plan_.rows.kernel; ++row) {
          list_weights(row * plan_.columns.kernel, plan_.columns.kernel);
        }
      }
    }
  }

  /// A plane for each k group of a receptive field; there is nothing between output pixels.
  void plan_im2col() {
    const int64_t taps = plan_.geometry.group_channels() * plan_.rows.kernel * plan_.columns.kernel;
    plan_.k_groups = ceil_div(taps, held_);
    planes_.row_phases = planes_.column_phases = {.phases = {0}, .of_tap = {0}, .shifts = {0}};
    choose_block();
    list_weights(0, taps);
  }

  /// Adjacent weights, a k group to each k step.
  void list_weights(int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; i += held_) {
      KStepWeights& weights = plan_.k_step_weights.emplace_back(KStepWeights{-1, -1, -1, -1});
      for (int64_t j = i; j < std::min(i + held_, count); ++j) {
        weights[static_cast<size_t>(j - i)] = static_cast<int32_t>(first + j);
      }
    }
  }

  /// Phases that taps share, or a plane for each tap along one axis or both where that leaves much
  /// less to fill; and the blocks that follow.
  void choose_phases(const ConvolutionAxis& column_taps) {
    constexpr int64_t max_shift = int64_t{1} << 24;
    const StridePhases rows[] = {phases_by_stride(plan_.rows), phases_by_tap(plan_.rows)};
    const StridePhases columns[] = {phases_by_stride(column_taps), phases_by_tap(column_taps)};
    double min = -1;
    PackedPlanes best;
    CacheBlock best_block;
    for (const StridePhases& of_rows : rows) {
      for (const StridePhases& of_columns : columns) {
        if (of_rows.max_shift > max_shift || of_columns.max_shift > max_shift) continue;
        planes_.row_phases = of_rows;
        planes_.column_phases = of_columns;
        choose_block();
        const double packed = packed_k_groups();
        if (min >= 0 && packed >= target_.tuning().dense.min_split_gain * min) continue;
        min = packed;
        best = planes_;
        best_block = plan_.block;
      }
    }
    planes_ = std::move(best);
    plan_.block = best_block;
  }

  /// K groups that packing writes for all blocks; those of planes that are too large count many
  /// times.
  double packed_k_groups() const {
    const auto [rows, columns] = plan_.block;
    const double in_block = static_cast<double>(plane_count()) *
                            static_cast<double>(rows + planes_.row_phases.max_shift) *
                            static_cast<double>(columns + planes_.column_phases.max_shift);
    const auto blocks = static_cast<double>(ceil_div(plan_.rows.output, rows) *
                                            ceil_div(plan_.columns.output, columns));
    const auto max_bytes = static_cast<double>(l2_share(target_, tuning_.phase_l2_eighths));
    const bool is_oversized = 4 * in_block > max_bytes;
    return in_block * blocks * (is_oversized ? target_.tuning().dense.oversized_factor : 1);
  }

  int64_t plane_count() const { return plan_.slices * plan_.k_groups * planes_.stride_phases(); }

  /// Chooses the block and how its planes lie, by the phases: as many rows as fit, or, where not
  /// even one does, a part of a row.
  void choose_block() {
    const int64_t max_k_groups = l2_share(target_, tuning_.packed_l2_eighths) / 4 / plane_count();
    const int64_t more_rows = planes_.row_phases.max_shift;
    const int64_t more_columns = planes_.column_phases.max_shift;
    const int64_t columns = plan_.columns.output;
    planes_.pitch = planes_.layout == PackedLayout::nchw4c
                        ? min_pitch(plan_.columns, planes_.column_phases)
                        : columns + more_columns;
    if (planes_.has_aligned_rows) planes_.pitch = round_up(planes_.pitch);
    const int64_t fitting = max_k_groups / planes_.pitch - more_rows;
    const int64_t max_pixels = pixels_of_block();
    if (fitting >= 1 && columns <= max_pixels) {
      plan_.block = {.rows = 1, .columns = columns};
      const int64_t max_rows = std::min({fitting, plan_.rows.output, max_pixels / columns});
      plan_.block.rows = rows_of_block(plan_, planes_, std::min(max_rows, rows_in_l1()));
    } else {
      const int64_t part = std::min(max_k_groups / (1 + more_rows) - more_columns, max_pixels);
      const int64_t max = std::clamp(part, std::min(tuning_.min_columns, columns), columns);
      plan_.block = {.rows = 1, .columns = even_part(columns, max)};
      if (planes_.packed_by == PackedBy::nobody) {
        const int64_t tile = max_vectors_of_input * plan_.lanes;
        plan_.block.columns = std::max(max / tile * tile, std::min(tile, columns));
      }
      planes_.pitch = plan_.block.columns + more_columns;
    }
    planes_.plane_size = (plan_.block.rows + more_rows) * planes_.pitch + more_columns;
    const bool is_large = planes_.plane_size >= tuning_.min_plane_vectors * plan_.lanes;
    if (plan_.is_pixel_vectorised() && is_large) planes_.plane_size = round_up(planes_.plane_size);
  }

  int64_t round_up(int64_t lanes) const { return ceil_div(lanes, plan_.lanes) * plan_.lanes; }

  /// Pixels of a block at the most: outputs that are transposed behind the kernels shall stay in
  /// L2.
  int64_t pixels_of_block() const {
    if (plan_.geometry.layout != ConvolutionLayout::nhwc) return max_block_pixels;
    const int64_t pixels =
        l2_share(target_, tuning_.output_l2_eighths) / 4 / plan_.geometry.group_out_channels();
    return std::clamp(pixels, tuning_.min_columns, max_block_pixels);
  }

  /// Rows of a block at the most, so that it stays near L1. Packed input of few channels does from
  /// one tile of output channels to the next, if then there is enough to do with each, and little
  /// is packed twice; im2col rows from where they are written until they are read, while outputs
  /// pass through L1.
  int64_t rows_in_l1() const {
    const auto fitting = [&](int64_t eighths) {
      return target_.caches.l1 * eighths / 8 / 4 / plane_count() / planes_.pitch;
    };
    const auto rows_of = [&](int64_t pixels) { return ceil_div(pixels, plan_.columns.output); };
    if (planes_.layout == PackedLayout::im2col) {
      return std::max(fitting(tuning_.im2col_l1_eighths), rows_of(tuning_.min_im2col_pixels));
    }
    const int64_t shifts = planes_.row_phases.max_shift;
    const int64_t rows = fitting(tuning_.packed_l1_eighths) - shifts;
    const int64_t min = std::max(rows_of(tuning_.min_l1_pixels), tuning_.min_l1_shifts * shifts);
    return planes_.has_aligned_rows && rows >= min ? rows : max_block_pixels;
  }

  void list_k_steps() {
    const StridePhases& rows = planes_.row_phases;
    const StridePhases& columns = planes_.column_phases;
    const int64_t k_groups = plan_.slices * plan_.k_groups;
    // In nchw4c planes every k group has the same offsets from its first plane.
    plan_.tile.loops_k_groups = plan_.is_pixel_vectorised() &&
                                planes_.layout == PackedLayout::nchw4c &&
                                k_groups > max_listed_k_steps / planes_.taps();
    const int64_t listed = plan_.tile.loops_k_groups ? 1 : k_groups;
    plan_.k_steps.reserve(static_cast<size_t>(listed * planes_.taps()));
    for (int64_t k_group = 0; k_group < listed; ++k_group) {
      for (size_t r = 0; r < rows.shifts.size(); ++r) {
        for (size_t s = 0; s < columns.shifts.size(); ++s) {
          const int64_t plane =
              (k_group * rows.count() + rows.of_tap[r]) * columns.count() + columns.of_tap[s];
          const int64_t offset =
              plane * planes_.plane_size + rows.shifts[r] * planes_.pitch + columns.shifts[s];
          plan_.k_steps.push_back(static_cast<int32_t>(4 * offset));
        }
      }
    }
  }

  DensePlan plan_;
  PackedPlanes planes_;
  const Target& target_;
  const BlockTuning& tuning_;
  const int64_t held_;  ///< values that a k group holds
};

}  // namespace

DensePlan plan_packed(DensePlan plan, PackedPlanes planes, const Target& target) {
  return PackedPlanner(std::move(plan), std::move(planes), target).plan();
}

}  // namespace castor::jit
