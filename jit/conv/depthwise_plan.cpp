// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/depthwise_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/support/integer_math.hpp"
#include "jit/conv/depthwise_columns.hpp"
#include "jit/conv/dot_product.hpp"
#include "jit/conv/epilogue/epilogue.hpp"
#include "jit/conv/plane_axes.hpp"

namespace castor::jit {

namespace {

constexpr int max_lanes = 16;
constexpr int taps_of_dword = 4;
constexpr int64_t max_source_bytes = 64;
/// Beyond these a plan is not worth its memory.
constexpr size_t max_columns = 1024;
constexpr int64_t max_blocks = 4096;

/// Plans one geometry step by step; each says whether it can be.
class Planner {
 public:
  Planner(DepthwisePlan& plan, const Target& target, const BlockRows& rows)
      : plan_(plan), form_(plan.form), target_(target), block_rows_(rows) {}

  bool run(bool flips_input) {
    form_.flips_input = flips_input;
    form_.engine = product_engine_of(target_);
    if (!choose_sources() || !choose_rows() || !choose_blocks()) return false;
    if (!fits_with_window_sums() || !add_columns(plan_.rows_of_vector)) return false;
    const int64_t whole = plan_.rows.output / plan_.rows_of_vector;
    for (int64_t phase = 0; phase < std::min(plan_.phases, whole); ++phase) {
      if (!add_blocks(phase, ceil_div(whole - phase, plan_.phases), plan_.rows_of_vector)) {
        return false;
      }
    }
    const int64_t rest = plan_.rows.output % plan_.rows_of_vector;
    if (rest == 0) return true;
    return add_columns(rest) && add_blocks(whole * plan_.rows_of_vector, 1, rest);
  }

 private:
  /// One source for all taps of a row where it can hold them, else one for each dword.
  bool choose_sources() {
    const ConvolutionAxis& axis = plan_.columns;
    constexpr int64_t max_taps = int64_t{DepthwiseColumns::max_dwords} * taps_of_dword;
    if (axis.kernel > max_taps || axis.dilation > max_source_bytes ||
        axis.stride > max_source_bytes) {
      return false;
    }
    form_.dwords = static_cast<int>(ceil_div(axis.kernel, taps_of_dword));
    form_.repeats_last_tap = axis.kernel % taps_of_dword == 1 && !form_.has_words();
    const int64_t lanes = std::min<int64_t>(max_lanes, axis.output);
    int64_t window = axis.window();
    if ((lanes - 1) * axis.stride + window > max_source_bytes && form_.dwords > 1) {
      window = (taps_of_dword - 1) * axis.dilation + 1;
      form_.dword_step = static_cast<int>(taps_of_dword * axis.dilation);
    }
    if (window > max_source_bytes) return false;
    plan_.lanes =
        static_cast<int>(std::min<int64_t>(lanes, (max_source_bytes - window) / axis.stride + 1));
    narrow_sources(window);
    set_source_bytes((plan_.lanes - 1) * axis.stride + window);
    return true;
  }

  /// Fewer lanes where half as many bytes are read for them, since these lie more often in a single
  /// line of the cache, and a row gets no more vectors.
  void narrow_sources(int64_t window) {
    const ConvolutionAxis& axis = plan_.columns;
    if (window > max_source_bytes / 2) return;
    const int64_t lanes = (max_source_bytes / 2 - window) / axis.stride + 1;
    if (lanes >= plan_.lanes) return;
    if (ceil_div(axis.output, lanes) > ceil_div(axis.output, int64_t{plan_.lanes})) return;
    plan_.lanes = static_cast<int>(lanes);
  }

  void set_source_bytes(int64_t span) { form_.source_bytes = span <= 32 ? 32 : 64; }

  /// Rows of a filter that is dilated by d, at a stride of s: outputs that are d / gcd(d, s) apart
  /// take rows d apart.
  bool choose_rows() {
    const ConvolutionAxis& axis = plan_.rows;
    constexpr int64_t max = 64;
    plan_.rows_of_vector = static_cast<int>(best_rows());
    const bool one = axis.kernel == 1;
    const int64_t shared = one ? axis.stride : std::gcd(axis.dilation, axis.stride);
    const int64_t stride = axis.stride / shared;
    if (axis.kernel > max || stride > max) return false;
    plan_.phases = one ? 1 : axis.dilation / shared;
    plan_.row_step =
        (one ? axis.stride * plan_.rows_of_vector : axis.dilation) * plan_.columns.input;
    form_.rows = static_cast<int>(axis.kernel);
    form_.row_stride = one ? 1 : static_cast<int>(stride) * plan_.rows_of_vector;
    return true;
  }

  /// Output rows that share a vector: as cheap as may be. Rows are shuffled and multiplied.
  int64_t best_rows() {
    const ConvolutionAxis& columns = plan_.columns;
    const bool in_order = plan_.rows.dilation == 1 || plan_.rows.kernel == 1;
    if (columns.output > plan_.lanes || !in_order || form_.dword_step != 0) return 1;
    const int64_t window = columns.window() + (columns.output - 1) * columns.stride;
    const auto span = [&](int64_t rows) {
      return (rows - 1) * plan_.rows.stride * columns.input + window;
    };
    int64_t best = 1;
    double min = 0;
    for (int64_t rows = 1; rows * columns.output <= max_lanes && rows <= plan_.rows.output;
         ++rows) {
      if (rows > 1 && span(rows) > max_source_bytes) break;
      const double cycles = cycles_of(rows);
      if (min > 0 && cycles >= min) continue;
      min = cycles;
      best = rows;
    }
    set_source_bytes(span(best));
    return best;
  }

  double cycles_of(int64_t rows_of_vector) const {
    constexpr double store = 2;
    constexpr double other_columns = 25;  // where the last vector has fewer rows
    const int64_t kernel = plan_.rows.kernel;
    const auto taken = static_cast<double>(std::min(kernel, rows_of_vector * plan_.rows.stride));
    const double products = static_cast<double>(kernel * form_.dwords);
    return static_cast<double>(ceil_div(plan_.rows.output, rows_of_vector)) *
               (taken * (1 + form_.dwords) + products + store) +
           (plan_.rows.output % rows_of_vector == 0 ? 0 : other_columns);
  }

  /// Rows of a block: as many as code of a good length does, all blocks of about a size.
  bool choose_blocks() {
    constexpr int64_t max_products = 448;
    constexpr int64_t max_input_rows = 64;
    const int64_t outputs = ceil_div(plan_.rows.output / plan_.rows_of_vector, plan_.phases);
    const int64_t max_of_memory =
        DepthwisePlan::max_block_outputs / (plan_.output_step() * plan_.columns.output);
    int64_t max = std::min(block_rows_.max, max_products / (form_.rows * form_.dwords));
    max = std::min({max, max_of_memory, (max_input_rows - form_.rows) / form_.row_stride + 1});
    max = std::clamp<int64_t>(max, 1, outputs);
    const int64_t even = ceil_div(outputs, ceil_div(outputs, max));
    const int64_t stepped = ceil_div(even, block_rows_.step) * block_rows_.step;
    plan_.block_outputs = static_cast<int>(stepped > max ? even : stepped);
    return ceil_div(outputs, plan_.block_outputs) <= max_blocks;
  }

  /// Weights may need them.
  bool fits_with_window_sums() const {
    DepthwiseForm form = form_;
    form.subtracts_window_sums = !form_.has_words();
    if (form.subtracts_window_sums) form.signed_input = std::exchange(form.flips_input, false);
    return fits(form, target_) && fits(form_, target_);
  }

  bool add_columns(int64_t rows) {
    auto& all = plan_.columns_of_bands;
    first_columns_ = all.size();
    return jit::add_columns(plan_, form_, rows, target_, all) && all.size() <= max_columns;
  }

  /// Outputs from a row on, in blocks; each vector has so many rows.
  bool add_blocks(int64_t row, int64_t outputs, int64_t rows_of_vector) {
    for (int64_t first = 0; first < outputs; first += plan_.block_outputs) {
      const SlidingBlock block = {
          .outputs = static_cast<int>(std::min<int64_t>(plan_.block_outputs, outputs - first)),
          .masks_rows = rows_of_vector > 1};
      add_block(block, row + first * plan_.output_step(), rows_of_vector);
      if (plan_.bands.size() > DepthwisePlan::max_bands || !fits_with_window_sums()) return false;
    }
    return true;
  }

  void add_block(SlidingBlock block, int64_t row, int64_t rows_of_vector) {
    const std::vector<uint64_t> loaded = rows_loaded(block, row, rows_of_vector);
    set_places(block, loaded, guarded_rows(row, loaded));
    const size_t number = number_of(block);
    if (!plan_.bands.empty() && !block.masks_rows) {
      DepthwiseBand& last = plan_.bands.back();
      const int64_t next = last.row + last.blocks * block.outputs * plan_.output_step();
      if (last.block == number && last.first_columns == first_columns_ && next == row) {
        ++last.blocks;
        return;
      }
    }
    plan_.bands.push_back({.block = number,
                           .row = row,
                           .blocks = 1,
                           .first_columns = first_columns_,
                           .columns = plan_.columns_of_bands.size() - first_columns_,
                           .first_rows_loaded = plan_.rows_loaded.size()});
    if (!block.masks_rows) return;
    const auto first = loaded.begin() + block.above;
    plan_.rows_loaded.insert(plan_.rows_loaded.end(), first, first + block.guarded_above);
    const auto end = loaded.end() - block.below;
    plan_.rows_loaded.insert(plan_.rows_loaded.end(), end - block.guarded_below, end);
  }

  size_t number_of(const SlidingBlock& block) {
    const auto at = std::find(form_.blocks.begin(), form_.blocks.end(), block);
    const auto number = static_cast<size_t>(at - form_.blocks.begin());
    if (at == form_.blocks.end()) form_.blocks.push_back(block);
    return number;
  }

  /// Of each input row of a block, the bytes of its source that lie in the image as far as rows
  /// decide it.
  std::vector<uint64_t> rows_loaded(const SlidingBlock& block, int64_t row,
                                    int64_t rows_of_vector) const {
    const ConvolutionAxis& axis = plan_.rows;
    const int64_t step = axis.kernel == 1 ? axis.stride * rows_of_vector : axis.dilation;
    std::vector<uint64_t> loaded;
    for (int i = 0; i < form_.input_rows(block); ++i) {
      const int64_t first = row * axis.stride - axis.pad_begin + i * step;
      int64_t inside = 0;
      for (int64_t k = 0; k < rows_of_vector; ++k) inside += is_inside(first + k * axis.stride);
      loaded.push_back(inside == 0                ? 0
                       : inside == rows_of_vector ? ~uint64_t{0}
                                                  : bytes_inside(first, rows_of_vector));
    }
    return loaded;
  }

  bool is_inside(int64_t row) const { return row >= 0 && row < plan_.rows.input; }

  /// Of vectors of several rows, whose columns begin with the padding.
  uint64_t bytes_inside(int64_t row, int64_t rows_of_vector) const {
    uint64_t bytes = 0;
    for (int64_t k = 0; k < rows_of_vector; ++k) {
      if (!is_inside(row + k * plan_.rows.stride)) continue;
      const int64_t first = k * plan_.rows.stride * plan_.columns.input + plan_.columns.pad_begin;
      const int64_t end = std::min<int64_t>(first + plan_.columns.input, 64);
      for (int64_t byte = first; byte < end; ++byte) bytes |= uint64_t{1} << byte;
    }
    return bytes;
  }

  /// Which input rows have sources that do not lie in the image altogether.
  std::vector<bool> guarded_rows(int64_t row, const std::vector<uint64_t>& loaded) const {
    int64_t first = 0;
    int64_t end = 0;
    for (size_t i = first_columns_; i < plan_.columns_of_bands.size(); ++i) {
      const DepthwiseColumns& columns = plan_.columns_of_bands[i];
      first = std::min(first, columns.input);
      end = std::max(end, columns.input + (columns.count - 1) * plan_.lanes * plan_.columns.stride);
    }
    end += (form_.dwords - 1) * form_.dword_step + form_.source_bytes;
    std::vector<bool> guarded;
    for (size_t i = 0; i < loaded.size(); ++i) {
      const int64_t at = (row * plan_.rows.stride - plan_.rows.pad_begin) * plan_.columns.input +
                         static_cast<int64_t>(i) * plan_.row_step;
      guarded.push_back(~loaded[i] != 0 || at + first < 0 || at + end > plan_.plane_inputs());
    }
    return guarded;
  }

  /// Which rows of a block lie outside, and which are guarded. Where the others are no simple
  /// sequence, all are.
  static void set_places(SlidingBlock& block, const std::vector<uint64_t>& loaded,
                         const std::vector<bool>& guarded) {
    const auto count = static_cast<int>(loaded.size());
    const auto is_out = [&](int row) { return loaded[static_cast<size_t>(row)] == 0; };
    const auto is_guarded = [&](int row) { return guarded[static_cast<size_t>(row)]; };
    int begin = 0;
    while (begin < count && is_out(begin)) ++begin;
    int end = count;
    while (end > begin && is_out(end - 1)) --end;
    block.above = begin;
    block.below = count - end;
    while (begin < end && is_guarded(begin)) ++begin;
    while (end > begin && is_guarded(end - 1)) --end;
    block.guarded_above = begin - block.above;
    block.guarded_below = count - block.below - end;
    for (int row = begin; row < end; ++row) {
      if (!is_guarded(row)) continue;
      block.guarded_above = count - block.above - block.below;
      block.guarded_below = 0;
    }
  }

  DepthwisePlan& plan_;
  DepthwiseForm& form_;
  const Target& target_;
  const BlockRows block_rows_;
  size_t first_columns_ = 0;
};

}  // namespace

bool DepthwisePlan::is_one_pass() const {
  for (size_t i = 0; i + 2 < geometry.axes.size(); ++i) {
    const ConvolutionAxis& axis = geometry.axes[i];
    const int64_t last = (axis.output - 1) * axis.stride - axis.pad_begin;
    if (axis.kernel > 1 || axis.pad_begin > 0 || last >= axis.input) return false;
  }
  return true;
}

std::optional<DepthwisePlan> plan_depthwise(const ConvolutionGeometry& geometry, bool x_is_signed,
                                            const Target& target, const BlockRows& rows) {
  if (geometry.layout != ConvolutionLayout::nchw || geometry.group_channels() != 1 ||
      !target.has_avx512()) {
    return std::nullopt;
  }
  DepthwisePlan plan;
  plan.geometry = geometry;
  set_plane_axes(plan);
  if (!has_near_positions(plan.rows, plan.columns, 1)) return std::nullopt;
  if (!Planner(plan, target, rows).run(x_is_signed)) return std::nullopt;
  return plan;
}

std::optional<DepthwisePlan> plan_depthwise_with(
    const TileEpilogue& epilogue, const ConvolutionGeometry& geometry, bool x_is_signed,
    const Target& target, const std::function<bool(const DepthwisePlan&)>& serves) {
  constexpr int64_t min_rows = 4;  // and what is packed at a time
  if (epilogue.rows_of_channels) return std::nullopt;
  BlockRows rows = {.step = vectors_of_packs(epilogue) > 0 ? min_rows : 1};
  for (; rows.max >= min_rows; rows.max /= 2) {
    auto plan = plan_depthwise(geometry, x_is_signed, target, rows);
    if (!plan || !plan->is_one_pass()) break;
    if (serves(*plan)) return plan;
  }
  return std::nullopt;
}

std::string print(const DepthwisePlan& plan, const Target&) {
  const DepthwiseForm& form = plan.form;
  const ConvolutionGeometry& geometry = plan.geometry;
  std::string text =
      fmt::format("  depthwise {} channels to {}, {} {} of the filter\n", geometry.channels,
                  geometry.out_channels, plan.slices, plan.slices == 1 ? "slice" : "slices");
  text += fmt::format("  vectors  {} columns of {} {}, sources of {} B\n", plan.lanes,
                      plan.rows_of_vector, plan.rows_of_vector == 1 ? "row" : "rows",
                      form.source_bytes);
  text += fmt::format("  filter   {} rows of {} {} of taps, {} B packed for an output channel\n",
                      form.rows, form.dwords, form.dwords == 1 ? "dword" : "dwords",
                      4 * form.weight_dwords());
  for (const DepthwiseBand& band : plan.bands) {
    const SlidingBlock& of = form.blocks[band.block];
    text += fmt::format("  band     from row {}: {} {} of {} vectors, {} input rows, {} outside\n",
                        band.row, band.blocks, band.blocks == 1 ? "block" : "blocks", of.outputs,
                        form.input_rows(of), of.above + of.below);
  }
  return text;
}

}  // namespace castor::jit
