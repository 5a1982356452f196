// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "jit/conv/candidates.hpp"
#include "jit/conv/sliding/sliding_plan.hpp"

namespace castor::jit {

namespace {

constexpr int taps_of_k_group = 4;
constexpr int64_t max_source_bytes = 64;

int source_bytes_of(int64_t span) { return span <= 32 ? 32 : 64; }

/// Fewer lanes where half as many bytes are read for them, since these are more often in a single
/// cache line, and a row gets no more vectors.
void narrow_sources(DepthwisePlan& plan, int64_t window) {
  const ConvolutionAxis& axis = plan.columns;
  if (window > max_source_bytes / 2) return;
  const int64_t lanes = (max_source_bytes / 2 - window) / axis.stride + 1;
  if (lanes >= plan.lanes) return;
  if (ceil_div(axis.output, lanes) > ceil_div(axis.output, int64_t{plan.lanes})) return;
  plan.lanes = static_cast<int>(lanes);
}

/// The source of a vector, which holds all taps of a row. False: no source can.
bool choose_sources(DepthwisePlan& plan) {
  const ConvolutionAxis& axis = plan.columns;
  DepthwiseSpec& spec = plan.spec;
  constexpr int64_t max_taps = int64_t{ColumnPositions::max_k_groups} * taps_of_k_group;
  if (axis.kernel > max_taps || std::max(axis.dilation, axis.stride) > max_source_bytes) {
    return false;
  }
  spec.k_groups = static_cast<int>(ceil_div(axis.kernel, taps_of_k_group));
  spec.repeats_last_tap = axis.kernel % taps_of_k_group == 1 && !spec.has_pairs();
  const int64_t lanes = std::min<int64_t>(ColumnPositions::max_lanes, axis.output);
  const int64_t window = axis.window();
  if (window > max_source_bytes) return false;
  plan.lanes =
      static_cast<int>(std::min<int64_t>(lanes, (max_source_bytes - window) / axis.stride + 1));
  narrow_sources(plan, window);
  spec.source_bytes = source_bytes_of((plan.lanes - 1) * axis.stride + window);
  return true;
}

void list_weights(DepthwisePlan& plan) {
  for (int64_t tap = 0; tap < plan.columns.kernel; tap += taps_of_k_group) {
    const int64_t after = std::max<int64_t>(tap + taps_of_k_group - plan.columns.kernel, 0);
    const uint32_t mask = ~uint32_t{0} >> (8 * after);
    plan.row_weights.push_back({.first = tap, .mask = mask, .summed = mask});
  }
}

/// Bytes of a source for n rows of the output.
int64_t span_of(const DepthwisePlan& plan, int64_t rows) {
  const ConvolutionAxis& axis = plan.columns;
  return (rows - 1) * plan.rows.stride * axis.input + axis.window() +
         (axis.output - 1) * axis.stride;
}

/// The largest number of output rows that can share a vector.
int64_t max_rows_of_vector(const DepthwisePlan& plan) {
  const bool in_order = plan.rows.dilation == 1 || plan.rows.kernel == 1;
  if (plan.columns.output > plan.lanes || !in_order) return 1;
  int64_t rows = std::min(ColumnPositions::max_lanes / plan.columns.output, plan.rows.output);
  while (rows > 1 && span_of(plan, rows) > max_source_bytes) --rows;
  return rows;
}

/// Where the lanes of one vector find their taps.
class ColumnMaker {
 public:
  ColumnMaker(const DepthwisePlan& plan, int64_t rows, const Target& target)
      : plan_(plan),
        spec_(plan.spec),
        in_pieces_(!target.supports(Feature::avx512_vbmi)),
        rows_(static_cast<int>(rows)) {}

  /// The vector of `count` output columns from `first` on; nothing where a shuffle cannot make it.
  std::optional<ColumnPositions> make(int64_t first, int64_t count) {
    const ConvolutionAxis& axis = plan_.columns;
    origin_ = first * axis.stride - axis.pad_begin;
    count_ = static_cast<int>(count);
    ColumnPositions column = {.count = 1,
                              .input = origin_,
                              .output = plan_.output_bytes * first,
                              .stored = (uint64_t{1} << (count * rows_)) - 1};
    for (int k_group = 0; k_group < spec_.k_groups; ++k_group) {
      if (!add_shuffle(column, k_group)) return std::nullopt;
    }
    return column;
  }

  /// Whether a vector of all lanes takes nothing outside the image: all of these are alike.
  bool is_inner(int64_t first) const {
    const ConvolutionAxis& axis = plan_.columns;
    const int64_t origin = first * axis.stride - axis.pad_begin;
    return origin >= 0 && first + plan_.lanes <= axis.output &&
           origin + (plan_.lanes - 1) * axis.stride + axis.window() <= axis.input;
  }

 private:
  /// The byte of the source of each tap of each lane. False where one is after the source's end, or
  /// where 16 of them come from more than four 32-bit lanes, without VBMI.
  bool add_shuffle(ColumnPositions& column, int k_group) const {
    const bool repeats = spec_.repeats_last_tap && k_group + 1 == spec_.k_groups;
    std::array<int, 4> counts = {};  // of such lanes
    for (int i = 0; i < ColumnPositions::max_lanes * taps_of_k_group; ++i) {
      const int lane = i / taps_of_k_group;
      const int tap = k_group * taps_of_k_group + (repeats ? 0 : i % taps_of_k_group);
      const bool is_there = lane < count_ * rows_ && tap < plan_.columns.kernel;
      const int64_t byte = is_there ? byte_of(lane, tap) : 0;  // any, where nothing multiplies it
      if (byte == outside) continue;
      column.taken[k_group] |= uint64_t{1} << i;
      if (!is_there) continue;
      if (byte >= spec_.source_bytes) return false;
      column.loaded |= uint64_t{1} << byte;
      const int index = in_pieces_ ? index_in_pieces(byte, column.pieces[k_group] + i / 16 * 4,
                                                     counts[static_cast<size_t>(i / 16)])
                                   : static_cast<int>(byte);
      if (index == outside) return false;
      column.shuffle[k_group][i] = static_cast<uint8_t>(index);
    }
    return true;
  }

  int64_t byte_of(int lane, int64_t tap) const {
    const ConvolutionAxis& axis = plan_.columns;
    const int64_t in_row = lane % count_ * axis.stride + tap * axis.dilation;
    if (origin_ + in_row < 0 || origin_ + in_row >= axis.input) return outside;
    return lane / count_ * plan_.rows.stride * axis.input + in_row;
  }

  /// The index of a byte in the 128-bit pieces; its own piece is added if there is room.
  static int index_in_pieces(int64_t byte, int32_t* pieces, int& count) {
    const auto piece = static_cast<int32_t>(byte / 4);
    const auto at = static_cast<int>(std::find(pieces, pieces + count, piece) - pieces);
    if (at == 4) return outside;
    if (at == count) pieces[count++] = piece;
    return 4 * at + static_cast<int>(byte % 4);
  }

  static constexpr int outside = -1;

  const DepthwisePlan& plan_;
  const DepthwiseSpec& spec_;
  const bool in_pieces_;
  const int rows_;
  int64_t origin_ = 0;  ///< input column of the first lane's first tap
  int count_ = 0;
};

/// Lists the column positions and row ranges of vectors with `in_vector` output rows.
class DepthwiseTables {
 public:
  DepthwiseTables(DepthwisePlan& plan, int64_t in_vector)
      : plan_(plan), in_vector_(in_vector), first_position_(plan.positions.size()) {}

  /// From left to right. False where a shuffle cannot make one of them, or where there are too
  /// many.
  bool add_positions(const Target& target) {
    constexpr size_t max_positions = 1024;
    std::vector<ColumnPositions>& all = plan_.positions;
    ColumnMaker maker(plan_, in_vector_, target);
    const int64_t max =
        std::max<int64_t>(target.tuning().partition.max_epilogue_elements / plan_.lanes, 1);
    bool was_inner = false;
    for (int64_t first = 0; first < plan_.columns.output; first += plan_.lanes) {
      const bool is_inner = maker.is_inner(first);
      if (is_inner && was_inner && all.back().count < max) {
        ++all.back().count;
        continue;
      }
      was_inner = is_inner;
      const int64_t count = std::min<int64_t>(plan_.lanes, plan_.columns.output - first);
      const std::optional<ColumnPositions> column = maker.make(first, count);
      if (!column) return false;
      all.push_back(*column);
      input_begin_ = std::min(input_begin_, column->input);
    }
    const ColumnPositions& last = all.back();
    input_end_ =
        std::max<int64_t>(last.input + (last.count - 1) * plan_.lanes * plan_.columns.stride, 0) +
        plan_.spec.source_bytes;
    return all.size() <= max_positions;
  }

  void add_range(int64_t row, int64_t outputs) {
    RowRange range = plan_.range_at(plan_.spec, row, outputs, in_vector_);
    const int input_rows = plan_.spec.input_rows(range);
    const int end = input_rows - range.below;
    int first = range.above;
    while (first < end && is_border(row, first)) ++first;
    int last = end;
    while (last > first && is_border(row, last - 1)) --last;
    range.border_above = first - range.above;
    range.border_below = end - last;
    const int64_t input_row = plan_.columns.input;
    const int64_t output_row = plan_.output_bytes * plan_.columns.output;
    plan_.ranges.push_back(
        {.range = index_of(range, plan_.spec.ranges),
         .row = row,
         .input = first_row(row, 0) * input_row,
         .output = row * output_row,
         .input_column_step =
             plan_.lanes * plan_.columns.stride - input_rows * plan_.row_step * input_row,
         .output_column_step =
             plan_.output_bytes * plan_.lanes - outputs * plan_.output_step() * output_row,
         .columns = static_cast<int64_t>(first_position_ * sizeof(ColumnPositions)),
         .rows_loaded = static_cast<int64_t>(plan_.rows_loaded.size() * sizeof(uint64_t))});
    if (!range.masks_rows) return;
    for (int i = range.above; i < end; ++i) {
      if (i < first || i >= last) plan_.rows_loaded.push_back(bytes_inside(row, i));
    }
  }

 private:
  /// The image's first row of an input row of a range that begins with an output row.
  int64_t first_row(int64_t row, int input_row) const {
    return row * plan_.rows.stride - plan_.rows.pad_begin + input_row * plan_.row_step;
  }
  /// Whether some source of an input row is not in the image altogether.
  bool is_border(int64_t row, int input_row) const {
    const int64_t at = first_row(row, input_row) * plan_.columns.input;
    return ~bytes_inside(row, input_row) != 0 || at + input_begin_ < 0 ||
           at + input_end_ > plan_.rows.input * plan_.columns.input;
  }

  /// The bytes of an input row's source that are in the image as far as rows decide it: all, or of
  /// those of several rows, whose columns begin with the padding, the ones of rows in the image.
  uint64_t bytes_inside(int64_t row, int input_row) const {
    const ConvolutionAxis& rows = plan_.rows;
    uint64_t bytes = 0;
    bool has_all = true;
    for (int64_t k = 0; k < in_vector_; ++k) {
      if (!plan_.has_row(first_row(row, input_row) + k * rows.stride)) {
        has_all = false;
        continue;
      }
      const int64_t first = k * rows.stride * plan_.columns.input + plan_.columns.pad_begin;
      const int64_t end = std::min(first + plan_.columns.input, max_source_bytes);
      for (int64_t byte = first; byte < end; ++byte) bytes |= uint64_t{1} << byte;
    }
    return has_all ? ~uint64_t{0} : bytes;
  }

  DepthwisePlan& plan_;
  const int64_t in_vector_;
  const size_t first_position_;
  int64_t input_begin_ = 0;  ///< of all sources of a row, from its first pixel
  int64_t input_end_ = 0;
};

/// Row ranges are as long as code of a good length is. False: there are too many.
bool choose_ranges(DepthwisePlan& plan, int64_t max, int64_t step, const Target& target) {
  constexpr int64_t max_ranges = 4096;  // beyond which a plan is not worth its memory
  const DepthwiseTuning& tuning = target.tuning().depthwise;
  const DepthwiseSpec& spec = plan.spec;
  const int64_t max_of_memory =
      target.tuning().partition.max_epilogue_elements / (plan.output_step() * plan.columns.output);
  max = std::min({max, tuning.max_range_products / (spec.rows * spec.k_groups), max_of_memory,
                  (tuning.max_input_rows - spec.rows) / spec.row_stride + 1});
  plan.set_range_outputs(max, step);
  const int64_t outputs = ceil_div(plan.rows.output / plan.rows_of_vector, plan.row_phases);
  return ceil_div(outputs, int64_t{plan.range_outputs}) *
             std::min(plan.row_phases, plan.rows.output) <=
         max_ranges;
}

/// Column positions and row ranges. Vectors at the lower border may have fewer rows. False: there
/// are too many, or there is no code for them.
bool list_ranges(DepthwisePlan& plan, const Target& target) {
  const int64_t rest = plan.rows.output % plan.rows_of_vector;
  DepthwiseTables whole(plan, plan.rows_of_vector);
  if (!whole.add_positions(target)) return false;
  plan.list_ranges(plan.rows.output - rest, plan.range_outputs, plan.output_step(), plan.row_phases,
                   [&](int64_t row, int64_t outputs) { whole.add_range(row, outputs); });
  if (rest > 0) {
    DepthwiseTables last(plan, rest);
    if (!last.add_positions(target)) return false;
    last.add_range(plan.rows.output - rest, 1);
  }
  return plan.spec.ranges.size() <= target.tuning().depthwise.max_ranges;
}

/// One row range at one column position.
EventCounts cost_of_position(const DepthwiseSpec& spec, const RowRange& range, bool has_sums) {
  using enum CostEvent;
  const double input_rows = spec.input_rows(range);
  const double rows = input_rows - range.above - range.below;
  const double outputs = range.outputs;
  EventCounts cost;
  cost[slide_load] = rows;
  cost[slide_shuffle] = rows * spec.k_groups;
  cost[slide_product] = outputs * spec.rows * spec.k_groups;
  if (has_sums) cost[slide_product] += input_rows * (spec.k_groups + 1) + outputs;
  cost[slide_store] = outputs * (spec.adds ? 2 : 1);
  cost[slide_position] = 1;
  return cost;
}

EventCounts cost_of_plane(const DepthwisePlan& plan, bool has_sums, const Target& target) {
  const auto positions = static_cast<double>(ceil_div(plan.columns.output, int64_t{plan.lanes}));
  EventCounts plane;
  int64_t before = -1;
  for (const DepthwiseRange& each : plan.ranges) {
    const RowRange& range = plan.spec.ranges[static_cast<size_t>(each.range)];
    plane += cost_of_position(plan.spec, range, has_sums) * positions;
    if (each.range != before) plane[CostEvent::slide_row_range] += 1;
    before = each.range;
  }
  // Pairs of i16 hold half as many values, and a product of them is two instructions.
  const double instructions = (plan.spec.has_pairs() ? 4 : 1) * fraction_inside(plan.rows);
  plane[CostEvent::slide_product] *= instructions * costs_on(target).product_512;
  return plane;
}

/// A plan with as many rows in a vector as cost least, and at most `max_outputs` output rows in a
/// range, else a multiple of `step`.
std::optional<DepthwisePlan> plan_with(const DepthwisePlan& start, int64_t max_outputs,
                                       int64_t step, const Target& target) {
  std::optional<DepthwisePlan> best;
  double min = 0;
  for (int64_t rows = max_rows_of_vector(start); rows >= 1; --rows) {
    DepthwisePlan plan = start;
    plan.rows_of_vector = static_cast<int>(rows);
    if (rows > 1) plan.spec.source_bytes = source_bytes_of(span_of(plan, rows));
    if (!plan.set_rows(plan.spec)) continue;
    if (plan.spec.row_stride > 1)
      plan.spec.prefetch_bytes = target.tuning().depthwise.prefetch_bytes;
    if (!fits(plan.spec, target) || !fits(with_window_sums(plan.spec), target)) continue;
    if (!choose_ranges(plan, max_outputs, step, target) || !list_ranges(plan, target)) continue;
    const double cycles = cost_of_plane(plan, false, target).cycles(costs_on(target).cycles);
    if (best && cycles >= min) continue;
    min = cycles;
    best = std::move(plan);
  }
  return best;
}

/// Whether the code of all stores stays short, as far as that can be told.
bool has_short_code(const DepthwiseSpec& spec, const TileEpilogue& epilogue,
                    const DepthwiseTuning& tuning) {
  constexpr size_t instruction = 6;                            // bytes
  const size_t taps = static_cast<size_t>(spec.k_groups) * 3;  // loaded and shuffled
  const int of_product = spec.has_pairs() ? 6 : 1;             // two parts: read, multiply, add
  const auto products = static_cast<size_t>(spec.rows * spec.k_groups * of_product);
  constexpr size_t sum = 7;  // begun, stored, steps
  const size_t operations = epilogue.program.code.size();
  const size_t bytes_of_output = instruction * (taps + products + sum + operations);
  size_t stores = 0;
  for (const RowRange& range : spec.ranges) stores += static_cast<size_t>(range.outputs);
  return stores * operations <= tuning.max_epilogue_operations &&
         stores * bytes_of_output <= tuning.max_epilogue_bytes;
}

}  // namespace

EventCounts cost_of(const DepthwisePlan& plan, const ConvolutionProblem& problem,
                    const Target& target) {
  const bool has_sums = subtracts_window_sums(plan.spec.engine, problem);
  const EventCounts plane = cost_of_plane(plan, has_sums, target);
  return plan.cost_of_image(plane * static_cast<double>(plan.geometry.out_channels), problem);
}

std::optional<DepthwisePlan> plan_depthwise(const ConvolutionProblem& problem, const Target& target,
                                            const TileEpilogue* epilogue) {
  const ConvolutionGeometry& geometry = problem.geometry;
  if (geometry.layout != ConvolutionLayout::nchw || geometry.group_channels() != 1 ||
      !target.has_avx512()) {
    return std::nullopt;
  }
  DepthwisePlan start;
  start.geometry = geometry;
  set_plane_axes(start);
  if (!has_near_positions(start.rows, start.columns, 1)) return std::nullopt;
  const DepthwiseTuning& tuning = target.tuning().depthwise;
  start.spec.flips_input = problem.x_is_signed;
  start.spec.engine = product_engine_of(target);
  if (!choose_sources(start)) return std::nullopt;
  list_weights(start);
  if (epilogue == nullptr) return plan_with(start, tuning.max_range_outputs, 1, target);
  if (!start.is_one_pass()) return std::nullopt;
  start.output_bytes = 1;
  constexpr int64_t min_outputs = 4;  // and what is packed at a time
  const int64_t step = vectors_of_packs(*epilogue) > 0 ? min_outputs : 1;
  for (int64_t max = tuning.max_range_outputs; max >= min_outputs; max /= 2) {
    auto plan = plan_with(start, max, step, target);
    if (!plan) break;
    const bool has_sums = subtracts_window_sums(plan->spec.engine, problem);
    const DepthwiseSpec spec = has_sums ? with_window_sums(plan->spec) : plan->spec;
    if (!may_apply(*epilogue, spec, target)) break;
    if (has_short_code(spec, *epilogue, tuning)) return plan;
  }
  return std::nullopt;
}

std::string print(const DepthwisePlan& plan) {
  const DepthwiseSpec& spec = plan.spec;
  std::string text = fmt::format(
      "  depthwise {} channels to {}, {} filter slices\n"
      "  vectors  {} columns of {} rows, sources of {} B\n"
      "  filter   {} rows of {} k groups, {} B packed for an output channel\n",
      plan.geometry.channels, plan.geometry.out_channels, plan.slices, plan.lanes,
      plan.rows_of_vector, spec.source_bytes, spec.rows, spec.k_groups, 4 * plan.panel_lanes());
  for (size_t i = 0; i < spec.ranges.size(); ++i) {
    const RowRange& range = spec.ranges[i];
    text += fmt::format("  rows     {} ranges of {} vectors, {} input rows, {} outside\n",
                        std::ranges::count(plan.ranges, i, &DepthwiseRange::range), range.outputs,
                        spec.input_rows(range), range.above + range.below);
  }
  return text;
}

}  // namespace castor::jit
