// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/depthwise.hpp"

namespace castor::detail {

namespace {

int32_t number_of(std::byte byte, bool is_signed) {
  return is_signed ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
}

/// Packs the weights of one output channel at a time.
class ChannelPacker {
 public:
  ChannelPacker(const BoundDepthwise& depthwise, const std::byte* w, const std::byte* zero_points,
                const DepthwiseWeights<int32_t>& to)
      : plan_(depthwise.plan),
        operands_(depthwise.operands),
        w_(w),
        zero_points_(zero_points),
        to_(to),
        in_bytes_(depthwise.target.supports(jit::Feature::avx512_vnni)),
        record_(jit::weight_dwords(plan_.form, depthwise.target)),
        taps_(plan_.rows.kernel * plan_.columns.kernel) {}

  void pack(int64_t m) {
    zero_point_ = 0;
    if (zero_points_ != nullptr) {
      zero_point_ =
          number_of(zero_points_[operands_.zero_points_per_channel ? m : 0], operands_.w_is_signed);
    }
    const std::byte* filter = w_ + m * plan_.slices * taps_;
    const bool windows = in_bytes_ && !differences_are_bytes(filter);
    // What is taken off here, and what is left to window sums.
    taken_off_ = windows ? (operands_.w_is_signed ? 0 : 128) : zero_point_;
    to_.needs_windows[static_cast<size_t>(m)] = windows;
    for (int64_t slice = 0; slice < plan_.slices; ++slice) {
      const int64_t at = slice * plan_.geometry.out_channels + m;
      int32_t* record = to_.dwords.data() + at * record_;
      to_.sums[static_cast<size_t>(at)] = pack_slice(filter + slice * taps_, record);
    }
  }

 private:
  bool differences_are_bytes(const std::byte* filter) const {
    const int64_t count = plan_.slices * taps_;
    int32_t least = 0;
    int32_t most = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int32_t difference = number_of(filter[i], operands_.w_is_signed) - zero_point_;
      least = std::min(least, difference);
      most = std::max(most, difference);
    }
    return least >= -128 && most <= 127;
  }

  /// Returns the sum of the weights less their zero point.
  int32_t pack_slice(const std::byte* taps, int32_t* to) const {
    const auto columns = static_cast<int>(plan_.columns.kernel);
    int32_t sum = 0;
    for (int64_t row = 0; row < plan_.rows.kernel; ++row) {
      for (int first = 0; first < columns; first += 4) {
        std::array<int32_t, 4> numbers = {};
        const int count = std::min(columns - first, 4);
        for (int i = 0; i < count; ++i) {
          const int32_t weight = number_of(*taps++, operands_.w_is_signed);
          numbers[static_cast<size_t>(i)] = weight - taken_off_;
          sum += weight - zero_point_;
        }
        to = store(numbers, to);
      }
    }
    if (!in_bytes_) return sum;
    for (int first = 0; first < columns; first += 4) {
      std::array<int32_t, 4> zeros = {};
      std::fill_n(zeros.begin(), std::min(columns - first, 4), zero_point_ - taken_off_);
      to = store(zeros, to);
    }
    return sum;
  }

  /// Four taps: a dword of bytes, or one of even words and one of odd ones.
  int32_t* store(const std::array<int32_t, 4>& numbers, int32_t* to) const {
    std::array<uint32_t, 4> bits;
    std::ranges::transform(numbers, bits.begin(),
                           [](int32_t n) { return static_cast<uint32_t>(n); });
    if (in_bytes_) {
      *to++ = static_cast<int32_t>((bits[0] & 0xff) | (bits[1] & 0xff) << 8 |
                                   (bits[2] & 0xff) << 16 | bits[3] << 24);
      return to;
    }
    *to++ = static_cast<int32_t>((bits[0] & 0xffff) | bits[2] << 16);
    *to++ = static_cast<int32_t>((bits[1] & 0xffff) | bits[3] << 16);
    return to;
  }

  const jit::DepthwisePlan& plan_;
  const DepthwiseOperands& operands_;
  const std::byte* w_;
  const std::byte* zero_points_;
  const DepthwiseWeights<int32_t>& to_;
  const bool in_bytes_;
  const int64_t record_;
  const int64_t taps_;  ///< of a slice
  int32_t zero_point_ = 0;
  int32_t taken_off_ = 0;
};

}  // namespace

size_t packed_dwords(const BoundDepthwise& depthwise) {
  const auto channels = static_cast<size_t>(depthwise.plan.geometry.out_channels);
  const auto slices = static_cast<size_t>(depthwise.plan.slices);
  const auto record =
      static_cast<size_t>(jit::weight_dwords(depthwise.plan.form, depthwise.target));
  return channels * (slices * (record + 1) + 1);
}

void pack_weights(const BoundDepthwise& depthwise, const std::byte* w, const std::byte* zero_points,
                  const DepthwiseWeights<int32_t>& to) {
  ChannelPacker packer(depthwise, w, zero_points, to);
  for (int64_t m = 0; m < depthwise.plan.geometry.out_channels; ++m) packer.pack(m);
}

void set_starts(const BoundDepthwise& depthwise, const std::byte* x_zero_point,
                std::span<const int32_t> sums, std::span<int32_t> starts) {
  const bool is_signed = depthwise.operands.x_is_signed;
  const int32_t zero = x_zero_point == nullptr ? 0 : number_of(*x_zero_point, is_signed);
  const auto shifted = static_cast<uint32_t>(zero + (is_signed ? 128 : 0));
  for (size_t i = 0; i < starts.size(); ++i) {
    starts[i] = static_cast<int32_t>(0 - shifted * static_cast<uint32_t>(sums[i]));
  }
}

}  // namespace castor::detail
