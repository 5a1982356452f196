// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/depthwise_columns.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace castor::jit {

namespace {

constexpr int max_lanes = 16;
constexpr int taps_of_dword = 4;

/// Where the lanes of one vector find their taps.
class ColumnMaker {
 public:
  ColumnMaker(const DepthwisePlan& plan, const DepthwiseForm& form, int64_t rows,
              const Target& target)
      : plan_(plan), form_(form), target_(target), rows_(static_cast<int>(rows)) {}

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

  /// The byte of the source of each tap of each lane. False where one lies behind its end.
  bool find_taps(int dword) {
    const ConvolutionAxis& axis = plan_.columns;
    loaded_ = 0;
    for (int lane = 0; lane < max_lanes; ++lane) {
      for (int i = 0; i < taps_of_dword; ++i) {
        const bool repeats = form_.repeats_last_tap && dword + 1 == form_.dwords;
        const int64_t tap = int64_t{dword} * taps_of_dword + (repeats ? 0 : i);
        int& byte = bytes_[static_cast<size_t>(lane * taps_of_dword + i)];
        byte = lane < count_ * rows_ && tap < axis.kernel ? 0 : any;
        if (byte == any) continue;
        const int64_t place = lane % count_ * axis.stride + tap * axis.dilation;
        const bool is_padding = origin_ + place < 0 || origin_ + place >= axis.input;
        byte = outside;
        if (is_padding) continue;
        const int64_t row = lane / count_ * plan_.rows.stride * axis.input;
        const int64_t at = row + place - dword * form_.dword_step;
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

}  // namespace

bool add_columns(const DepthwisePlan& plan, const DepthwiseForm& form, int64_t rows,
                 const Target& target, std::vector<DepthwiseColumns>& to) {
  ColumnMaker maker(plan, form, rows, target);
  const int64_t max = std::max<int64_t>(DepthwisePlan::max_block_outputs / plan.lanes, 1);
  bool was_inner = false;
  for (int64_t first = 0; first < plan.columns.output; first += plan.lanes) {
    const bool is_inner = maker.is_inner(first);
    if (is_inner && was_inner && to.back().count < max) {
      ++to.back().count;
      continue;
    }
    was_inner = is_inner;
    const int64_t count = std::min<int64_t>(plan.lanes, plan.columns.output - first);
    const std::optional<DepthwiseColumns> column = maker.make(first, count);
    if (!column) return false;
    to.push_back(*column);
  }
  return true;
}

}  // namespace castor::jit
