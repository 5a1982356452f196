// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/depthwise_tables.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace castor::jit {

namespace {

constexpr int taps_of_dword = 4;
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

}  // namespace

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

}  // namespace castor::jit
