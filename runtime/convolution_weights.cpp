// SPDX-License-Identifier: Apache-2.0
#include "runtime/convolution.hpp"

namespace castor::detail {

namespace {

int32_t number_of(std::byte byte, bool is_signed) {
  return is_signed ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
}

/// Packs the dwords of one tap.
class TapPacker {
 public:
  TapPacker(const jit::ConvPlan& plan, const std::byte* w, bool is_signed,
            std::span<const int32_t> zero_points)
      : plan_(plan),
        w_(w),
        is_signed_(is_signed),
        zero_points_(zero_points),
        group_channels_(plan.geometry.group_channels()),
        positions_(plan.slices * plan.rows.kernel * plan.columns.kernel) {}

  /// Weights of output channel `m` at a kernel position, of the input channels of one dword.
  int32_t dword(int64_t m, int64_t part, int64_t position) const {
    const bool bytes = plan_.dot == jit::DotProduct::bytes;
    const int count = jit::channels_of_dword(plan_.dot);
    uint32_t packed = 0;
    for (int i = 0; i < count; ++i) {
      const int64_t channel = part * count + i;
      if (channel >= group_channels_) break;
      const int32_t weight =
          bytes ? signed_weight(m, channel, position) : difference(m, channel, position);
      packed |= (static_cast<uint32_t>(weight) & (bytes ? 0xffu : 0xffffu)) << (32 / count * i);
    }
    return static_cast<int32_t>(packed);
  }

  /// As the kernel multiplies it: unsigned weights less 128.
  int32_t signed_weight(int64_t m, int64_t channel, int64_t position) const {
    return number(m, channel, position) - (is_signed_ ? 0 : 128);
  }

 private:
  int32_t number(int64_t m, int64_t channel, int64_t position) const {
    return number_of(w_[(m * group_channels_ + channel) * positions_ + position], is_signed_);
  }
  int32_t difference(int64_t m, int64_t channel, int64_t position) const {
    return number(m, channel, position) - zero_points_[static_cast<size_t>(m)];
  }

  const jit::ConvPlan& plan_;
  const std::byte* w_;
  const bool is_signed_;
  const std::span<const int32_t> zero_points_;
  const int64_t group_channels_;
  const int64_t positions_;
};

}  // namespace

PackedWeights pack_weights(const jit::ConvPlan& plan, const std::byte* w, bool is_signed,
                           std::span<const int32_t> zero_points) {
  const TapPacker packer(plan, w, is_signed, zero_points);
  const int64_t in_slice = plan.rows.kernel * plan.columns.kernel;
  const int64_t outputs = plan.geometry.group_out_channels();
  PackedWeights packed;
  packed.dwords.reserve(static_cast<size_t>(plan.geometry.out_channels) * plan.taps.size());
  for (int64_t group = 0; group < plan.geometry.groups; ++group) {
    for (int64_t first = 0; first < outputs; first += plan.tile.channels) {
      const int64_t end = std::min<int64_t>(first + plan.tile.channels, outputs);
      for (int64_t tap = 0; tap < static_cast<int64_t>(plan.taps.size()); ++tap) {
        const int64_t slice = tap / (plan.dwords * in_slice);
        const int64_t part = tap / in_slice % plan.dwords;
        const int64_t position = slice * in_slice + tap % in_slice;
        for (int64_t m = first; m < end; ++m) {
          packed.dwords.push_back(packer.dword(group * outputs + m, part, position));
        }
      }
    }
  }
  if (plan.dot != jit::DotProduct::bytes) return packed;
  const int64_t positions = plan.slices * in_slice;
  for (int64_t m = 0; m < plan.geometry.out_channels; ++m) {
    uint32_t sum = 0;
    for (int64_t channel = 0; channel < plan.geometry.group_channels(); ++channel) {
      for (int64_t position = 0; position < positions; ++position) {
        sum += static_cast<uint32_t>(packer.signed_weight(m, channel, position));
      }
    }
    packed.sums.push_back(static_cast<int32_t>(sum));
  }
  return packed;
}

}  // namespace castor::detail
