// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/convolution.hpp"
#include "runtime/interleave.hpp"

namespace castor::detail {

namespace {

/// Packs the weights of one output channel at a time.
class WeightPacker {
 public:
  WeightPacker(const jit::ConvPlan& plan, const std::byte* w, bool is_signed,
               const int32_t* zero_points)
      : plan_(plan),
        w_(w),
        is_signed_(is_signed),
        zero_points_(zero_points),
        channels_(plan.geometry.group_channels()),
        in_slice_(plan.rows.kernel * plan.columns.kernel),
        row_(plan.slices * in_slice_) {}

  /// The dwords of output channel `m`, `step` apart.
  void pack(int64_t m, int32_t* to, int64_t step) const {
    if (row_ == 1 && plan_.dot == jit::DotProduct::bytes) return pack_bytes(m, to, step);
    for (int64_t slice = 0; slice < plan_.slices; ++slice) {
      for (int64_t part = 0; part < plan_.dwords; ++part) {
        for (int64_t first = 0; first < in_slice_; first += most_positions) {
          const int64_t count = std::min(in_slice_ - first, most_positions);
          std::array<uint32_t, most_positions> dwords;
          interleave(m, slice * in_slice_ + first, part, count, dwords.data());
          for (int64_t i = 0; i < count; ++i, to += step) {
            *to = static_cast<int32_t>(dwords[static_cast<size_t>(i)]);
          }
        }
      }
    }
  }

  /// The sum of an output channel's weights, as the kernel multiplies them: unsigned ones less 128.
  int32_t sum(int64_t m) const {
    const int64_t count = channels_ * row_;
    const uint32_t shifted = sum_of_bytes(w_ + m * count, count, is_signed_ ? 0x80 : 0);
    return static_cast<int32_t>(shifted - static_cast<uint32_t>(count) * 128);
  }

 private:
  static constexpr int64_t most_positions = 64;

  /// The same of a filter of one position, whose channels lie side by side.
  void pack_bytes(int64_t m, int32_t* to, int64_t step) const {
    const std::byte* weights = w_ + m * channels_;
    const uint32_t flip = is_signed_ ? 0 : 0x80808080;
    int64_t channel = 0;
    for (; channel + 4 <= channels_; channel += 4, to += step) {
      uint32_t dword;
      std::memcpy(&dword, weights + channel, sizeof(dword));
      *to = static_cast<int32_t>(dword ^ flip);
    }
    if (channel == channels_) return;
    const auto left = static_cast<size_t>(channels_ - channel);
    uint32_t dword = 0;
    std::memcpy(&dword, weights + channel, left);
    *to = static_cast<int32_t>((dword ^ flip) & (0xffffffffu >> (8 * (4 - left))));
  }

  /// The channels of one dword, at `count` kernel positions.
  void interleave(int64_t m, int64_t position, int64_t part, int64_t count, uint32_t* to) const {
    const int most = jit::channels_of_dword(plan_.dot);
    const int64_t first = part * most;
    const int there = static_cast<int>(std::min<int64_t>(most, channels_ - first));
    DwordSource source;
    for (int i = 0; i < there; ++i) {
      source.channels[i] = w_ + (m * channels_ + first + i) * row_ + position;
    }
    if (plan_.dot == jit::DotProduct::words) {
      return interleave_words(source, is_signed_, zero_points_[m], count, to);
    }
    interleave_bytes(source, is_signed_ ? 0 : 0x80, count, to);
    if (there == most) return;
    const uint32_t kept = 0xffffffffu >> (8 * (most - there));
    for (int64_t i = 0; i < count; ++i) to[i] &= kept;
  }

  const jit::ConvPlan& plan_;
  const std::byte* w_;
  const bool is_signed_;
  const int32_t* zero_points_;
  const int64_t channels_;
  const int64_t in_slice_;
  const int64_t row_;  ///< kernel positions
};

}  // namespace

size_t packed_dwords(const jit::ConvPlan& plan) {
  return static_cast<size_t>(plan.geometry.out_channels) * plan.taps.size();
}

void pack_weights(const jit::ConvPlan& plan, const std::byte* w, bool is_signed,
                  const int32_t* zero_points, const PackedWeights<int32_t>& to) {
  const WeightPacker packer(plan, w, is_signed, zero_points);
  const int64_t outputs = plan.geometry.group_out_channels();
  const auto taps = static_cast<int64_t>(plan.taps.size());
  for (int64_t m = 0; m < plan.geometry.out_channels; ++m) {
    const int64_t in_group = m % outputs;
    const int64_t first = in_group / plan.tile.channels * plan.tile.channels;
    const int64_t tile = std::min<int64_t>(plan.tile.channels, outputs - first);
    const int64_t of_tile = m - in_group + first;  // the tile's first channel
    packer.pack(m, to.dwords.data() + of_tile * taps + (in_group - first), tile);
    if (plan.dot == jit::DotProduct::bytes) to.sums[static_cast<size_t>(m)] = packer.sum(m);
  }
}

}  // namespace castor::detail
