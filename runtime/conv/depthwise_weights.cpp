// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>

#include "runtime/conv/depthwise.hpp"

namespace castor::detail {

namespace {

/// Of an output channel's weights.
int32_t zero_point_of(const ConvolutionOperands& operands, const std::byte* zero_points,
                      int64_t m) {
  if (zero_points == nullptr) return 0;
  return number_of(zero_points[operands.zero_points_per_channel ? m : 0], operands.w_is_signed);
}

/// Packs the weights of one output channel at a time.
class ChannelPacker {
 public:
  ChannelPacker(const BoundDepthwise& depthwise, const DepthwiseProducts& products,
                const std::byte* w, const std::byte* zero_points,
                const DepthwiseWeights<int32_t>& to)
      : plan_(depthwise.plan),
        operands_(depthwise.operands),
        products_(products),
        w_(w),
        zero_points_(zero_points),
        to_(to),
        in_bytes_(depthwise.target.supports(jit::Feature::avx512_vnni)),
        record_(jit::weight_dwords(plan_.form, depthwise.target)),
        taps_(plan_.rows.kernel * plan_.columns.kernel),
        splits_last_(products.subtracts_window_sums && !products.signed_input &&
                     plan_.form.repeats_last_tap) {}

  void pack(int64_t m) {
    zero_point_ = zero_point_of(operands_, zero_points_, m);
    const std::byte* filter = w_ + m * plan_.slices * taps_;
    // What is taken off here; the rest is left to window sums.
    taken_off_ = zero_point_;
    if (products_.subtracts_window_sums) {
      const int32_t to_signed = operands_.w_is_signed ? 0 : 128;
      taken_off_ = products_.signed_input ? to_signed - 128 : to_signed;
    }
    for (int64_t slice = 0; slice < plan_.slices; ++slice) {
      const int64_t at = slice * plan_.geometry.out_channels + m;
      int32_t* record = to_.dwords.data() + at * record_;
      to_.sums[static_cast<size_t>(at)] = pack_slice(filter + slice * taps_, record);
    }
  }

 private:
  /// Returns the sum of the weights less their zero point.
  int32_t pack_slice(const std::byte* taps, int32_t* to) const {
    const int64_t columns = plan_.columns.kernel;
    const int32_t flip = operands_.w_is_signed ? 0x80 : 0;
    int32_t sum = 0;
    for (int64_t row = 0; row < plan_.rows.kernel; ++row) {
      for (int64_t first = 0; first < columns; first += 4) {
        const int64_t count = std::min<int64_t>(columns - first, 4);
        const uint32_t bytes = load(taps, count);
        taps += count;
        sum += sum_of_bytes(bytes ^ (dword_of(flip) & low_bytes(count)));
        const bool is_last = first + 4 > columns;
        to = is_last && splits_last_ ? store_split(bytes, to) : store(bytes, count, to);
      }
    }
    sum -= static_cast<int32_t>(taps_) * (zero_point_ + flip);
    if (!in_bytes_) return sum;
    for (int64_t first = 0; first < columns; first += 4) {
      const uint32_t kept = low_bytes(std::min<int64_t>(columns - first, 4));
      *to++ = static_cast<int32_t>(dword_of(zero_point_ - taken_off_) & kept);
    }
    return sum;
  }

  static uint32_t dword_of(int32_t byte) {
    return (static_cast<uint32_t>(byte) & 0xff) * 0x01010101;
  }
  static uint32_t low_bytes(int64_t count) { return 0xffffffffu >> (8 * (4 - count)); }
  static uint32_t load(const std::byte* from, int64_t count) {
    uint32_t bytes = 0;
    for (int64_t i = 0; i < count; ++i) {
      bytes |= std::to_integer<uint32_t>(from[i]) << (8 * i);
    }
    return bytes;
  }
  static int32_t sum_of_bytes(uint32_t bytes) {
    const uint32_t pairs = (bytes & 0x00ff00ff) + (bytes >> 8 & 0x00ff00ff);
    return static_cast<int32_t>((pairs & 0xffff) + (pairs >> 16));
  }
  /// Byte by byte, modulo 256.
  static uint32_t difference_of_bytes(uint32_t a, uint32_t b) {
    constexpr uint32_t high = 0x80808080;
    return ((a | high) - (b & ~high)) ^ ((a ^ ~b) & high);
  }

  /// One tap, less its zero point: the sum of three signed bytes.
  int32_t* store_split(uint32_t byte, int32_t* to) const {
    int32_t left = number_of(static_cast<std::byte>(byte), operands_.w_is_signed) - zero_point_;
    uint32_t bytes = 0;
    for (int i = 0; i < 3; ++i) {
      const int32_t part = std::clamp(left, -128, 127);
      bytes |= (static_cast<uint32_t>(part) & 0xff) << (8 * i);
      left -= part;
    }
    *to++ = static_cast<int32_t>(bytes);
    return to;
  }

  /// Up to four taps: a dword of bytes, or one of even words and one of odd ones.
  int32_t* store(uint32_t bytes, int64_t count, int32_t* to) const {
    if (in_bytes_) {
      const uint32_t less = difference_of_bytes(bytes, dword_of(taken_off_));
      *to++ = static_cast<int32_t>(less & low_bytes(count));
      return to;
    }
    uint32_t words[4] = {};
    for (int64_t i = 0; i < count; ++i) {
      const auto byte = static_cast<std::byte>(bytes >> (8 * i) & 0xff);
      words[i] = static_cast<uint32_t>(number_of(byte, operands_.w_is_signed) - taken_off_);
    }
    *to++ = static_cast<int32_t>((words[0] & 0xffff) | words[2] << 16);
    *to++ = static_cast<int32_t>((words[1] & 0xffff) | words[3] << 16);
    return to;
  }

  const jit::DepthwisePlan& plan_;
  const ConvolutionOperands& operands_;
  const DepthwiseProducts& products_;
  const std::byte* w_;
  const std::byte* zero_points_;
  const DepthwiseWeights<int32_t>& to_;
  const bool in_bytes_;
  const int64_t record_;
  const int64_t taps_;      ///< of a slice
  const bool splits_last_;  ///< the last tap of a row, of which no window sums are made
  int32_t zero_point_ = 0;
  int32_t taken_off_ = 0;
};

}  // namespace

size_t packed_dwords(const BoundDepthwise& depthwise) {
  const auto channels = static_cast<size_t>(depthwise.plan.geometry.out_channels);
  const auto slices = static_cast<size_t>(depthwise.plan.slices);
  const auto record =
      static_cast<size_t>(jit::weight_dwords(depthwise.plan.form, depthwise.target));
  return channels * slices * (record + 1);
}

DepthwiseProducts products_of(const BoundDepthwise& depthwise, const std::byte* w,
                              const std::byte* zero_points) {
  if (!depthwise.target.supports(jit::Feature::avx512_vnni)) return {};
  const ConvolutionOperands& operands = depthwise.operands;
  const jit::DepthwisePlan& plan = depthwise.plan;
  if (operands.w_is_signed && zero_points == nullptr) return {};
  const int64_t taps = plan.slices * plan.rows.kernel * plan.columns.kernel;
  const bool differ = zero_points != nullptr && operands.zero_points_per_channel;
  const int64_t count = differ ? plan.geometry.out_channels : 1;              // of zero points
  const int64_t weights = differ ? taps : taps * plan.geometry.out_channels;  // of each
  int32_t min = 0;                                                            // of the differences
  int32_t max = 0;
  for (int64_t m = 0; m < count; ++m) {
    const WeightRange range = range_of(w + m * weights, weights, operands.w_is_signed);
    const int32_t zero_point = zero_point_of(operands, zero_points, m);
    min = std::min(min, range.min - zero_point);
    max = std::max(max, range.max - zero_point);
  }
  if (min >= -128 && max <= 127) return {};
  return {.signed_input = operands.x_is_signed,
          .subtracts_window_sums = !operands.x_is_signed || min < 0 || max > 255};
}

void pack_weights(const BoundDepthwise& depthwise, const DepthwiseProducts& products,
                  const std::byte* w, const std::byte* zero_points,
                  const DepthwiseWeights<int32_t>& to) {
  ChannelPacker packer(depthwise, products, w, zero_points, to);
  for (int64_t m = 0; m < depthwise.plan.geometry.out_channels; ++m) packer.pack(m);
}

void set_starts(const BoundDepthwise& depthwise, const DepthwiseProducts& products,
                const std::byte* x_zero_point, std::span<const int32_t> sums,
                std::span<int32_t> starts) {
  const bool is_signed = depthwise.operands.x_is_signed;
  const int32_t zero = x_zero_point == nullptr ? 0 : number_of(*x_zero_point, is_signed);
  const bool flips = is_signed && !products.signed_input;
  const auto as_multiplied = static_cast<uint32_t>(zero + (flips ? 128 : 0));
  for (size_t i = 0; i < starts.size(); ++i) {
    starts[i] = static_cast<int32_t>(0 - as_multiplied * static_cast<uint32_t>(sums[i]));
  }
}

}  // namespace castor::detail
