// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/sliding/depthwise_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "ir/support/integer_math.hpp"
#include "jit/conv/epilogue/epilogue.hpp"

namespace castor::jit {

namespace {

constexpr int taps_of_dword = 4;
constexpr int64_t max_source_bytes = 64;

void set_source_bytes(DepthwisePlan& plan, int64_t span) {
  plan.form.source_bytes = span <= 32 ? 32 : 64;
}

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

/// One source for all taps of a row where it can hold them, else one for each dword. False: none.
bool choose_sources(DepthwisePlan& plan) {
  const ConvolutionAxis& axis = plan.columns;
  DepthwiseForm& form = plan.form;
  constexpr int64_t max_taps = int64_t{DepthwiseColumns::max_dwords} * taps_of_dword;
  if (axis.kernel > max_taps || std::max(axis.dilation, axis.stride) > max_source_bytes) {
    return false;
  }
  form.dwords = static_cast<int>(ceil_div(axis.kernel, taps_of_dword));
  form.repeats_last_tap = axis.kernel % taps_of_dword == 1 && !form.has_words();
  const int64_t lanes = std::min<int64_t>(DepthwiseColumns::max_lanes, axis.output);
  int64_t window = axis.window();
  if ((lanes - 1) * axis.stride + window > max_source_bytes && form.dwords > 1) {
    window = (taps_of_dword - 1) * axis.dilation + 1;
    form.dword_step = static_cast<int>(taps_of_dword * axis.dilation);
  }
  if (window > max_source_bytes) return false;
  plan.lanes =
      static_cast<int>(std::min<int64_t>(lanes, (max_source_bytes - window) / axis.stride + 1));
  narrow_sources(plan, window);
  set_source_bytes(plan, (plan.lanes - 1) * axis.stride + window);
  return true;
}

/// Cycles of a plane with so many output rows in a vector: rows are shuffled and multiplied.
double cycles_of(const DepthwisePlan& plan, int64_t rows_of_vector) {
  constexpr double store = 2;
  constexpr double other_columns = 25;  // where the last vector has fewer rows
  const int64_t kernel = plan.rows.kernel;
  const auto taken = static_cast<double>(std::min(kernel, rows_of_vector * plan.rows.stride));
  const double products = static_cast<double>(kernel * plan.form.dwords);
  return static_cast<double>(ceil_div(plan.rows.output, rows_of_vector)) *
             (taken * (1 + plan.form.dwords) + products + store) +
         (plan.rows.output % rows_of_vector == 0 ? 0 : other_columns);
}

/// Output rows that share a vector: as cheap as may be.
int64_t best_rows(DepthwisePlan& plan) {
  const ConvolutionAxis& columns = plan.columns;
  const bool in_order = plan.rows.dilation == 1 || plan.rows.kernel == 1;
  if (columns.output > plan.lanes || !in_order || plan.form.dword_step != 0) return 1;
  const int64_t window = columns.window() + (columns.output - 1) * columns.stride;
  const auto span = [&](int64_t rows) {
    return (rows - 1) * plan.rows.stride * columns.input + window;
  };
  const int64_t max = std::min(DepthwiseColumns::max_lanes / columns.output, plan.rows.output);
  int64_t best = 1;
  for (int64_t rows = 2; rows <= max && span(rows) <= max_source_bytes; ++rows) {
    if (cycles_of(plan, rows) < cycles_of(plan, best)) best = rows;
  }
  set_source_bytes(plan, span(best));
  return best;
}

/// The rows that blocks take. False: too many.
bool choose_rows(DepthwisePlan& plan) {
  constexpr int64_t max = 64;
  const ConvolutionAxis& axis = plan.rows;
  plan.rows_of_vector = static_cast<int>(best_rows(plan));
  const AxisPhases phases = phases_of(axis);
  if (axis.kernel > max || phases.stride > max) return false;
  const bool one = axis.kernel == 1;
  plan.phases = phases.count;
  plan.row_step = phases.step * (one ? plan.rows_of_vector : 1) * plan.columns.input;
  plan.form.rows = static_cast<int>(axis.kernel);
  plan.form.row_stride = one ? 1 : static_cast<int>(phases.stride) * plan.rows_of_vector;
  return true;
}

/// Rows of a block: as many as code of a good length does, all blocks of about a size. False: there
/// are too many blocks.
bool choose_blocks(DepthwisePlan& plan, const BlockRows& rows) {
  constexpr int64_t max_products = 448;
  constexpr int64_t max_input_rows = 64;
  constexpr int64_t max_blocks = 4096;  // beyond which a plan is not worth its memory
  const DepthwiseForm& form = plan.form;
  const int64_t outputs = ceil_div(plan.rows.output / plan.rows_of_vector, plan.phases);
  const int64_t max_of_memory =
      DepthwisePlan::max_block_outputs / (plan.output_step() * plan.columns.output);
  int64_t max = std::min(rows.max, max_products / (form.rows * form.dwords));
  max = std::min({max, max_of_memory, (max_input_rows - form.rows) / form.row_stride + 1});
  max = std::clamp<int64_t>(max, 1, outputs);
  const int64_t even = ceil_div(outputs, ceil_div(outputs, max));
  const int64_t stepped = ceil_div(even, rows.step) * rows.step;
  plan.block_outputs = static_cast<int>(stepped > max ? even : stepped);
  return ceil_div(outputs, plan.block_outputs) <= max_blocks;
}

/// Weights may need window sums.
bool fits_with_window_sums(const DepthwiseForm& form, const Target& target) {
  DepthwiseForm with = form;
  with.subtracts_window_sums = !form.has_words();
  if (with.subtracts_window_sums) with.signed_input = std::exchange(with.flips_input, false);
  return fits(with, target) && fits(form, target);
}

/// Column positions beyond which a plan is not worth its memory.
constexpr size_t max_columns = 1024;

/// Where the lanes of one vector find their taps.
class ColumnMaker {
 public:
  ColumnMaker(const DepthwisePlan& plan, int64_t rows, const Target& target)
      : plan_(plan), form_(plan.form), target_(target), rows_(static_cast<int>(rows)) {}

  /// The vector of `count` output columns from `first` on; nothing where a shuffle cannot make it.
  std::optional<DepthwiseColumns> make(int64_t first, int64_t count) {
    const ConvolutionAxis& axis = plan_.columns;
    origin_ = first * axis.stride - axis.pad_begin;
    count_ = static_cast<int>(count);
    DepthwiseColumns column;
    column.count = 1;
    column.input = origin_;
    column.output = 4 * first;
    column.stored = (uint64_t{1} << (count * rows_)) - 1;
    for (int dword = 0; dword < form_.dwords; ++dword) {
      if (!find_taps(dword) || !set_shuffle(column, dword)) return std::nullopt;
      column.loaded[form_.dword_step == 0 ? 0 : dword] |= loaded_;
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
  static constexpr int outside = -1;  ///< padding
  static constexpr int any = -2;      ///< what is there does not matter

  /// The byte of the source of each tap of each lane. False where one is after its end.
  bool find_taps(int dword) {
    const ConvolutionAxis& axis = plan_.columns;
    loaded_ = 0;
    for (int lane = 0; lane < DepthwiseColumns::max_lanes; ++lane) {
      for (int i = 0; i < taps_of_dword; ++i) {
        const bool repeats = form_.repeats_last_tap && dword + 1 == form_.dwords;
        const int64_t tap = int64_t{dword} * taps_of_dword + (repeats ? 0 : i);
        int& byte = bytes_[static_cast<size_t>(lane * taps_of_dword + i)];
        byte = lane < count_ * rows_ && tap < axis.kernel ? 0 : any;
        if (byte == any) continue;
        const int64_t at_row = lane % count_ * axis.stride + tap * axis.dilation;
        const bool is_padding = origin_ + at_row < 0 || origin_ + at_row >= axis.input;
        byte = outside;
        if (is_padding) continue;
        const int64_t row = lane / count_ * plan_.rows.stride * axis.input;
        const int64_t at = row + at_row - dword * form_.dword_step;
        if (at < 0 || at >= form_.source_bytes) return false;
        byte = static_cast<int>(at);
        loaded_ |= uint64_t{1} << at;
      }
    }
    return true;
  }

  bool set_shuffle(DepthwiseColumns& column, int dword) const {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      column.taken[dword] |= uint64_t{bytes_[i] != outside} << i;
      column.shuffle[dword][i] = static_cast<uint8_t>(std::max(bytes_[i], 0));
    }
    if (target_.supports(Feature::avx512_vbmi)) return true;
    for (int piece = 0; piece < 4; ++piece) {
      std::array<int, 16> bytes;
      std::copy_n(bytes_.begin() + 16 * piece, 16, bytes.begin());
      uint8_t* shuffle = column.shuffle[dword] + 16 * piece;
      if (!set_pieces(bytes, column.pieces[dword] + 4 * piece, shuffle)) return false;
    }
    return true;
  }

  /// The dwords that hold the bytes of a piece of 16, and where in them. False where there are more
  /// than four.
  static bool set_pieces(const std::array<int, 16>& bytes, int32_t* pieces, uint8_t* shuffle) {
    int count = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] < 0) {
        shuffle[i] = 0;
        continue;
      }
      const int dword = bytes[i] / 4;
      const auto at = static_cast<int>(std::find(pieces, pieces + count, dword) - pieces);
      if (at == 4) return false;
      if (at == count) pieces[count++] = dword;
      shuffle[i] = static_cast<uint8_t>(4 * at + bytes[i] % 4);
    }
    return true;
  }

  const DepthwisePlan& plan_;
  const DepthwiseForm& form_;
  const Target& target_;
  const int rows_;
  int64_t origin_ = 0;  ///< input column of the first lane's first tap
  int count_ = 0;
  std::array<int, 64> bytes_ = {};
  uint64_t loaded_ = 0;
};

/// Which rows of a block are outside, and which are guarded. Where the others are no simple
/// sequence, all are.
void set_places(SlidingBlock& block, const std::vector<uint64_t>& loaded,
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

/// Makes the tables of a plan whose form, but for blocks, lanes and steps are known.
class DepthwiseTables {
 public:
  DepthwiseTables(DepthwisePlan& plan, const Target& target) : plan_(plan), target_(target) {}

  /// Adds the column positions of vectors of so many output rows, from left to right: those of the
  /// blocks that follow. False where a shuffle cannot make one of them, or where there are too
  /// many.
  bool add_columns(int64_t rows_of_vector);
  /// Adds so many outputs from a row on, in blocks. False where there are too many bands.
  bool add_blocks(int64_t row, int64_t outputs, int64_t rows_of_vector);

 private:
  void add_block(SlidingBlock block, int64_t row, int64_t rows_of_vector);
  size_t number_of(const SlidingBlock& block);
  bool is_inside(int64_t row) const { return row >= 0 && row < plan_.rows.input; }
  std::vector<uint64_t> rows_loaded(const SlidingBlock& block, int64_t row,
                                    int64_t rows_of_vector) const;
  uint64_t bytes_inside(int64_t row, int64_t rows_of_vector) const;
  std::vector<bool> guarded_rows(int64_t row, const std::vector<uint64_t>& loaded) const;

  DepthwisePlan& plan_;
  const Target& target_;
  size_t first_columns_ = 0;
};

bool DepthwiseTables::add_columns(int64_t rows_of_vector) {
  std::vector<DepthwiseColumns>& all = plan_.columns_of_bands;
  first_columns_ = all.size();
  ColumnMaker maker(plan_, rows_of_vector, target_);
  const int64_t max = std::max<int64_t>(DepthwisePlan::max_block_outputs / plan_.lanes, 1);
  bool was_inner = false;
  for (int64_t first = 0; first < plan_.columns.output; first += plan_.lanes) {
    const bool is_inner = maker.is_inner(first);
    if (is_inner && was_inner && all.back().count < max) {
      ++all.back().count;
      continue;
    }
    was_inner = is_inner;
    const int64_t count = std::min<int64_t>(plan_.lanes, plan_.columns.output - first);
    const std::optional<DepthwiseColumns> column = maker.make(first, count);
    if (!column) return false;
    all.push_back(*column);
  }
  return all.size() <= max_columns;
}

bool DepthwiseTables::add_blocks(int64_t row, int64_t outputs, int64_t rows_of_vector) {
  for (int64_t first = 0; first < outputs; first += plan_.block_outputs) {
    const SlidingBlock block = {
        .outputs = static_cast<int>(std::min<int64_t>(plan_.block_outputs, outputs - first)),
        .masks_rows = rows_of_vector > 1};
    add_block(block, row + first * plan_.output_step(), rows_of_vector);
    if (plan_.bands.size() > DepthwisePlan::max_bands) return false;
  }
  return true;
}

void DepthwiseTables::add_block(SlidingBlock block, int64_t row, int64_t rows_of_vector) {
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

size_t DepthwiseTables::number_of(const SlidingBlock& block) {
  std::vector<SlidingBlock>& blocks = plan_.form.blocks;
  const auto at = std::ranges::find(blocks, block);
  const auto number = static_cast<size_t>(at - blocks.begin());
  if (at == blocks.end()) blocks.push_back(block);
  return number;
}

/// Of each input row of a block, the bytes of its source that are in the image as far as rows
/// decide it.
std::vector<uint64_t> DepthwiseTables::rows_loaded(const SlidingBlock& block, int64_t row,
                                                   int64_t rows_of_vector) const {
  const ConvolutionAxis& axis = plan_.rows;
  const int64_t step = axis.kernel == 1 ? axis.stride * rows_of_vector : axis.dilation;
  std::vector<uint64_t> loaded;
  for (int i = 0; i < plan_.form.input_rows(block); ++i) {
    const int64_t first = row * axis.stride - axis.pad_begin + i * step;
    int64_t inside = 0;
    for (int64_t k = 0; k < rows_of_vector; ++k) inside += is_inside(first + k * axis.stride);
    loaded.push_back(inside == 0                ? 0
                     : inside == rows_of_vector ? ~uint64_t{0}
                                                : bytes_inside(first, rows_of_vector));
  }
  return loaded;
}

/// Of vectors of several rows, whose columns begin with the padding.
uint64_t DepthwiseTables::bytes_inside(int64_t row, int64_t rows_of_vector) const {
  uint64_t bytes = 0;
  for (int64_t k = 0; k < rows_of_vector; ++k) {
    if (!is_inside(row + k * plan_.rows.stride)) continue;
    const int64_t first = k * plan_.rows.stride * plan_.columns.input + plan_.columns.pad_begin;
    const int64_t end = std::min<int64_t>(first + plan_.columns.input, 64);
    for (int64_t byte = first; byte < end; ++byte) bytes |= uint64_t{1} << byte;
  }
  return bytes;
}

/// Which input rows have sources that are not in the image altogether.
std::vector<bool> DepthwiseTables::guarded_rows(int64_t row,
                                                const std::vector<uint64_t>& loaded) const {
  int64_t first = 0;
  int64_t end = 0;
  for (size_t i = first_columns_; i < plan_.columns_of_bands.size(); ++i) {
    const DepthwiseColumns& columns = plan_.columns_of_bands[i];
    first = std::min(first, columns.input);
    end = std::max(end, columns.input + (columns.count - 1) * plan_.lanes * plan_.columns.stride);
  }
  end += (plan_.form.dwords - 1) * plan_.form.dword_step + plan_.form.source_bytes;
  std::vector<bool> guarded;
  for (size_t i = 0; i < loaded.size(); ++i) {
    const int64_t at = (row * plan_.rows.stride - plan_.rows.pad_begin) * plan_.columns.input +
                       static_cast<int64_t>(i) * plan_.row_step;
    guarded.push_back(~loaded[i] != 0 || at + first < 0 || at + end > plan_.plane_inputs());
  }
  return guarded;
}

/// Column positions and blocks of rows. Vectors at the lower border may have fewer rows. False: a
/// shuffle cannot make one of them, or there are too many.
bool make_tables(DepthwisePlan& plan, const Target& target) {
  DepthwiseTables tables(plan, target);
  const int rows_of_vector = plan.rows_of_vector;
  const int64_t whole = plan.rows.output / rows_of_vector;
  if (!tables.add_columns(rows_of_vector)) return false;
  for (int64_t phase = 0; phase < std::min(plan.phases, whole); ++phase) {
    const int64_t outputs = ceil_div(whole - phase, plan.phases);
    if (!tables.add_blocks(phase, outputs, rows_of_vector)) return false;
  }
  const int64_t rest = plan.rows.output % rows_of_vector;
  if (rest == 0) return fits_with_window_sums(plan.form, target);
  return tables.add_columns(rest) && tables.add_blocks(whole * rows_of_vector, 1, rest) &&
         fits_with_window_sums(plan.form, target);
}

}  // namespace

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
  plan.form.flips_input = x_is_signed;
  plan.form.engine = product_engine_of(target);
  if (!choose_sources(plan) || !choose_rows(plan) || !choose_blocks(plan, rows)) {
    return std::nullopt;
  }
  if (!fits_with_window_sums(plan.form, target) || !make_tables(plan, target)) return std::nullopt;
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
