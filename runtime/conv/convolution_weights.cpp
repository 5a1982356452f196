// SPDX-License-Identifier: Apache-2.0
// Packing of weights by plain loops, where there is no code for it.
#include <array>
#include <cstring>

#include "runtime/conv/interleave.hpp"
#include "runtime/conv/packed_tiles.hpp"

namespace castor::detail {

namespace {

/// Packs tile by tile: dwords of each output channel, then they are turned around.
class LoopPacker {
 public:
  LoopPacker(const jit::ConvPlan& plan, const std::byte* w, bool is_signed,
             const int32_t* zero_points)
      : plan_(plan),
        w_(w),
        is_signed_(is_signed),
        zero_points_(zero_points),
        extents_(weight_extents(plan)) {}

  void pack(const DenseWeights<int32_t>& to) const {
    for_each_tile(plan_, to.dwords.data(), [&](const PackedTile& tile) { pack_tile(tile); });
    if (plan_.engine != jit::ProductEngine::u8_i8_dot) return;
    for (size_t m = 0; m < to.sums.size(); ++m) to.sums[m] = sum(static_cast<int64_t>(m));
  }

  /// One tile, and the sums of its channels.
  void pack(const PackedTile& tile, const DenseWeights<int32_t>& to) const {
    pack_tile(tile);
    if (plan_.engine != jit::ProductEngine::u8_i8_dot) return;
    for (int64_t m = tile.first; m < tile.first + tile.channels; ++m) {
      to.sums[static_cast<size_t>(m)] = sum(m);
    }
  }

 private:
  static constexpr int64_t max_rows = 16;  ///< output channels
  static constexpr int64_t max_taps = 64;

  void pack_tile(const PackedTile& tile) const {
    const int64_t taps = plan_.k_steps();
    const int64_t in_slice = extents_.in_slice;
    const int64_t at_once = in_slice < max_taps ? max_taps / in_slice * in_slice : max_taps;
    std::array<uint32_t, max_rows * max_taps> dwords;
    for (int64_t row = 0; row < tile.width; row += max_rows) {
      const int64_t rows = std::min(tile.width - row, max_rows);
      for (int64_t tap = 0; tap < taps; tap += at_once) {
        const int64_t count = std::min(taps - tap, at_once);
        for (int64_t i = 0; i < rows; ++i) {
          uint32_t* to = dwords.data() + i * max_taps;
          if (row + i < tile.channels) {
            dwords_of(tile.first + row + i, tap, count, to);
          } else {
            std::fill_n(to, count, 0);
          }
        }
        transpose_dwords(reinterpret_cast<const int32_t*>(dwords.data()), max_taps, rows, count,
                         tile.to + tap * tile.width + row, tile.width);
      }
    }
  }

  /// The sum of an output channel's weights, as the kernel multiplies them: unsigned ones less 128.
  int32_t sum(int64_t m) const {
    const int64_t count = extents_.channels * extents_.positions();
    const uint32_t shifted = sum_of_bytes(w_ + m * count, count, is_signed_ ? 0x80 : 0);
    return static_cast<int32_t>(shifted - static_cast<uint32_t>(count) * 128);
  }

  /// Output channel `m` at `count` taps.
  void dwords_of(int64_t m, int64_t tap, int64_t count, uint32_t* to) const {
    if (!plan_.tap_weights.empty()) return dwords_by_place(m, tap, count, to);
    if (extents_.positions() == 1) return dwords_side_by_side(m, tap, count, to);
    while (count > 0) {
      const int64_t slice = tap / (extents_.dwords * extents_.in_slice);
      const int64_t part = tap / extents_.in_slice % extents_.dwords;
      const int64_t position = tap % extents_.in_slice;
      const int64_t in_row = slice * extents_.in_slice + position;
      int64_t here = std::min(count, extents_.in_slice - position);
      const int64_t whole = position == 0 ? whole_dwords(part, count) : 0;
      if (whole > 0) {
        interleave_whole(m, in_row, part, whole, to);
        here = whole * extents_.in_slice;
      } else {
        interleave(m, in_row, part, here, to);
      }
      tap += here;
      count -= here;
      to += here;
    }
  }

  /// Dwords that have all their channels, and all positions of a slice within `count` taps.
  int64_t whole_dwords(int64_t part, int64_t count) const {
    const int64_t whole = extents_.channels / jit::channels_of_k_group(plan_.engine);
    return std::min(count / extents_.in_slice, whole - part);
  }

  /// All positions of a slice.
  void interleave_whole(int64_t m, int64_t in_row, int64_t part, int64_t dwords,
                        uint32_t* to) const {
    const int64_t input = part * jit::channels_of_k_group(plan_.engine);
    const DwordFilters filters = {
        .first = w_ + (m * extents_.channels + input) * extents_.positions() + in_row,
        .step = extents_.positions(),
        .positions = extents_.in_slice};
    if (plan_.engine == jit::ProductEngine::i16_pairs) {
      return interleave_word_filters(filters, is_signed_, zero_points_[m], dwords, to);
    }
    interleave_filters(filters, flip_of(is_signed_), dwords, to);
  }

  void dwords_by_place(int64_t m, int64_t tap, int64_t count, uint32_t* to) const {
    const std::byte* weights = w_ + m * extents_.channels * extents_.positions();
    const bool bytes = plan_.engine == jit::ProductEngine::u8_i8_dot;
    for (int64_t i = 0; i < count; ++i) {
      const jit::TapWeights& places = plan_.tap_weights[static_cast<size_t>(tap + i)];
      uint32_t dword = 0;
      for (int k = jit::channels_of_k_group(plan_.engine); k-- > 0;) {
        dword <<= bytes ? 8 : 16;
        const int32_t place = places[static_cast<size_t>(k)];
        if (place >= 0) dword |= bytes ? byte_of(weights[place]) : word_of(weights[place], m);
      }
      to[i] = dword;
    }
  }

  /// Of a filter of one position, whose channels lie side by side.
  void dwords_side_by_side(int64_t m, int64_t part, int64_t count, uint32_t* to) const {
    const int max = jit::channels_of_k_group(plan_.engine);
    const int64_t left = extents_.channels - part * max;
    const std::byte* from = w_ + m * extents_.channels + part * max;
    const int64_t whole = std::min(count, left / max);
    if (plan_.engine == jit::ProductEngine::i16_pairs) {
      for (int64_t i = 0; i < whole; ++i) {
        to[i] = word_of(from[2 * i], m) | word_of(from[2 * i + 1], m) << 16;
      }
      if (whole < count) to[whole] = word_of(from[2 * whole], m);
      return;
    }
    const uint32_t flips = flip_of(is_signed_) * 0x01010101u;
    std::memcpy(to, from, static_cast<size_t>(4 * whole));
    for (int64_t i = 0; i < whole; ++i) to[i] ^= flips;
    if (whole == count) return;
    to[whole] = flips;
    std::memcpy(to + whole, from + 4 * whole, static_cast<size_t>(left - 4 * whole));
    to[whole] ^= flips;
  }

  /// The channels of one dword, at `count` kernel positions.
  void interleave(int64_t m, int64_t position, int64_t part, int64_t count, uint32_t* to) const {
    const int max = jit::channels_of_k_group(plan_.engine);
    const int64_t first = part * max;
    const int there = static_cast<int>(std::min<int64_t>(max, extents_.channels - first));
    DwordSource source;
    for (int i = 0; i < there; ++i) {
      source.channels[i] =
          w_ + (m * extents_.channels + first + i) * extents_.positions() + position;
    }
    if (plan_.engine == jit::ProductEngine::i16_pairs) {
      return interleave_words(source, is_signed_, zero_points_[m], count, to);
    }
    interleave_bytes(source, flip_of(is_signed_), count, to);
    if (there == max) return;
    const uint32_t kept = 0xffffffffu >> (8 * (max - there));
    for (int64_t i = 0; i < count; ++i) to[i] &= kept;
  }

  uint32_t byte_of(std::byte weight) const {
    return static_cast<uint32_t>(weight) ^ flip_of(is_signed_);
  }
  uint32_t word_of(std::byte weight, int64_t m) const {
    const int32_t number = is_signed_ ? static_cast<int8_t>(weight)
                                      : static_cast<int32_t>(static_cast<uint8_t>(weight));
    return static_cast<uint32_t>(number - zero_points_[m]) & 0xffff;
  }

  const jit::ConvPlan& plan_;
  const std::byte* w_;
  const bool is_signed_;
  const int32_t* zero_points_;
  const WeightExtents extents_;
};

}  // namespace

size_t packed_dwords(const jit::ConvPlan& plan) {
  return static_cast<size_t>(plan.geometry.groups * plan.packed_group_width() * plan.k_steps());
}

int64_t tile_dwords(const jit::ConvPlan& plan) {
  return plan.packed_width(plan.tile_channels()) * plan.k_steps();
}

int64_t packed_tile(const jit::ConvPlan& plan, int64_t group, int64_t tile) {
  return group * plan.packed_group_width() * plan.k_steps() + tile * tile_dwords(plan);
}

void pack_weights(const jit::ConvPlan& plan, const MovementCode& code, const std::byte* w,
                  bool is_signed, const int32_t* zero_points, const DenseWeights<int32_t>& to) {
  if (code.weights != nullptr) {
    pack_weight_units(plan, code, w, is_signed, to);
  } else {
    LoopPacker(plan, w, is_signed, zero_points).pack(to);
  }
}

void pack_weight_tile(const jit::ConvPlan& plan, const MovementCode& code, const std::byte* w,
                      bool is_signed, const int32_t* zero_points, int64_t group, int64_t tile,
                      const DenseWeights<int32_t>& to) {
  const PackedTile of = tile_of(plan, first_of_tile(plan, group, tile), to.dwords.data());
  if (code.weights != nullptr) {
    pack_weight_units(plan, code, w, is_signed, of, to);
  } else {
    LoopPacker(plan, w, is_signed, zero_points).pack(of, to);
  }
}

}  // namespace castor::detail
