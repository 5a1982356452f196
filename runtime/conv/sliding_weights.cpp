// SPDX-License-Identifier: Apache-2.0
// The weights of depthwise and grouped convolutions as kernels read them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/conv/sliding.hpp"

#include "runtime/conv/interleave.hpp"

namespace castor::detail {

namespace {

/// The least and the largest weight.
std::pair<int32_t, int32_t> range_of(const std::byte* weights, int64_t count, bool is_signed) {
  const uint8_t flip = is_signed ? 0x80 : 0;  // keeps the order
  uint8_t min = 255;
  uint8_t max = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto weight = static_cast<uint8_t>(std::to_integer<uint8_t>(weights[i]) ^ flip);
    min = std::min(min, weight);
    max = std::max(max, weight);
  }
  return {min - flip, max - flip};
}

/// Byte by byte, modulo 256.
uint32_t difference_of_bytes(uint32_t a, uint32_t b) {
  constexpr uint32_t high = 0x80808080;
  return ((a | high) - (b & ~high)) ^ ((a ^ ~b) & high);
}

/// Sums of adjacent bytes in two halves, which may be added up while halves hold them.
uint32_t pairs_of(uint32_t bytes) {
  constexpr uint32_t even = 0x00ff00ff;
  return (bytes & even) + (bytes >> 8 & even);
}

/// A number of nine bits as the sum of three i8.
int32_t split(int32_t number) {
  const int32_t first = std::clamp(number, -128, 127);
  const int32_t second = std::clamp(number - first, -128, 127);
  const int32_t third = number - first - second;
  return (first & 0xff) | (second & 0xff) << 8 | (third & 0xff) << 16;
}

/// Packs one output channel at a time to its lane of a panel. For weights that calls bring this
/// takes as long as a small layer itself.
template <class Plan>
class ChannelPacker {
 public:
  ChannelPacker(const BoundSliding<Plan>& bound, const SlidingProducts& products,
                const WeightData& from)
      : plan_(bound.plan), operands_(bound.operands), products_(products), from_(from) {
    if constexpr (!BoundSliding<Plan>::is_nhwc) {
      splits_last_ =
          plan_.spec.repeats_last_tap && products.subtracts_window_sums && !products.signed_input;
    }
  }

  /// `to` is the channel's lane of the first weights. Returns the sum of the weights less their
  /// zero point.
  int32_t pack(int64_t slice, int64_t m, int32_t* to) const {
    const int32_t zero_point = weight_zero_point(operands_, from_.zero_points, m);
    // What is subtracted here; the rest is left to window sums.
    int32_t subtracted = zero_point;
    if (products_.subtracts_window_sums) {
      const int32_t to_signed = operands_.w_is_signed ? 0 : 128;
      subtracted = products_.signed_input ? to_signed - 128 : to_signed;
    }
    const int64_t columns = plan_.columns.kernel;
    int64_t first =
        (m * plan_.slices * plan_.geometry.group_channels() + slice) * plan_.rows.kernel * columns;
    int64_t sum = 0;  // of u8
    for (int row = 0; row < plan_.spec.rows; ++row, first += columns) {
      sum += pack_row(first, subtracted, to);
      if (splits_last_) {
        const std::byte last = from_.weights[first + columns - 1];
        to[-lanes_] = split(value_of(last, operands_.w_is_signed) - zero_point);
      }
    }
    if (!plan_.spec.has_pairs()) {
      const uint32_t left = in_all_bytes(static_cast<uint8_t>(zero_point - subtracted));
      for (size_t i = 0; i < zero_points_; ++i, to += lanes_) {
        *to = static_cast<int32_t>(left & plan_.row_weights[i].mask);
      }
    }
    const int64_t flip = operands_.w_is_signed ? 128 : 0;
    return static_cast<int32_t>(sum - weights_ * (zero_point + flip));
  }

 private:
  /// A row of the filter, moving `to` on. Returns the sum of its weights as u8.
  uint32_t pack_row(int64_t first, int32_t subtracted, int32_t*& to) const {
    const uint32_t subtracted_bytes = in_all_bytes(static_cast<uint8_t>(subtracted));
    const uint32_t flip = operands_.w_is_signed ? 0x80808080 : 0;
    const int64_t lanes = lanes_;
    const bool has_pairs = plan_.spec.has_pairs();
    uint32_t pairs = 0;  // of 64 times two bytes at most
    for (const jit::PackedWeights& each : plan_.row_weights) {
      const uint32_t bytes = load(first + each.first, each.mask);
      pairs += pairs_of((bytes ^ flip) & each.summed);
      if (has_pairs) {
        to = put_pairs(bytes, each.mask, subtracted, to);
        continue;
      }
      *to = static_cast<int32_t>(difference_of_bytes(bytes, subtracted_bytes) & each.mask);
      to += lanes;
    }
    return (pairs & 0xffff) + (pairs >> 16);
  }

  /// At least the bytes of the mask: others may be those of neighbours.
  uint32_t load(int64_t at, uint32_t mask) const {
    uint32_t bytes = 0;
    if (plan_.weight_step == 1 && static_cast<uint64_t>(at) < loadable_) {
      std::memcpy(&bytes, from_.weights + at, sizeof(bytes));
      return bytes;
    }
    for (int i = 0; i < 4; ++i) {
      if ((mask >> (8 * i) & 1) == 0) continue;
      bytes |= std::to_integer<uint32_t>(from_.weights[at + i * plan_.weight_step]) << (8 * i);
    }
    return bytes;
  }

  /// Weights as i16: the even ones of adjacent taps, then the odd ones; of channels two at a time.
  [[gnu::noinline]] int32_t* put_pairs(uint32_t bytes, uint32_t mask, int32_t subtracted,
                                       int32_t* to) const {
    const auto weight = [&](int i) {
      if ((mask >> (8 * i) & 1) == 0) return uint32_t{0};
      const auto byte = static_cast<std::byte>(bytes >> (8 * i));
      return static_cast<uint32_t>(value_of(byte, operands_.w_is_signed) - subtracted) & 0xffff;
    };
    const int parts = plan_.spec.weight_parts();
    for (int part = 0; part < parts; ++part, to += lanes_) {
      *to = static_cast<int32_t>(weight(part) | weight(part + parts) << 16);
    }
    return to;
  }

  const Plan& plan_;
  const ConvolutionOperands& operands_;
  const SlidingProducts& products_;
  const WeightData& from_;
  const int64_t lanes_ = plan_.panel_lanes() / panel_size(plan_.spec);  ///< of a panel's vectors
  bool splits_last_ = false;  ///< the last tap of each row, of which there are no window sums
  const size_t zero_points_ = static_cast<size_t>(plan_.spec.zero_points());
  /// An output channel has it in a slice.
  const int64_t weights_ =
      plan_.geometry.group_channels() * plan_.rows.kernel * plan_.columns.kernel;
  /// Where four bytes can be loaded at once.
  const uint64_t loadable_ = static_cast<uint64_t>(
      std::max<int64_t>(plan_.geometry.out_channels * plan_.slices * weights_ - 3, 0));
};

/// Which four bytes of a pixel a lane's k group has: channels of its group, bytes or the lower
/// bytes of i16.
uint32_t channel_order(const jit::GroupedNhwcPlan& plan, int k_group, int64_t first_of_group) {
  constexpr uint32_t absent = 0x80;  // a byte of 0
  const int held = plan.channels_held();
  uint32_t order = 0;
  for (int i = 0; i < 4; ++i) {
    const int64_t channel = int64_t{k_group} * held + i * held / 4;
    const int64_t byte = first_of_group + channel;
    const bool is_there = i % (4 / held) == 0 && channel < plan.geometry.group_channels() &&
                          byte < jit::GroupedNhwcSpec::pixel_bytes;
    order |= (is_there ? static_cast<uint32_t>(byte) : absent) << (8 * i);
  }
  return order;
}

/// Which bytes of four pixels have a lane's channel, as shuffles move them. Lanes that are not
/// there have any.
void pack_pixel_order(const BoundGroupedNhwc& bound, int lane, int64_t channel, int32_t* to) {
  const int lanes = bound.plan.lanes;
  const auto c = static_cast<uint8_t>(channel % lanes);
  auto* bytes = reinterpret_cast<uint8_t*>(to);
  const bool is_one_shuffle = bound.target.supports(jit::Feature::avx512_vbmi);
  const int pixels = is_one_shuffle ? 4 : 16 / lanes;  // side by side in the order
  const int pixel_bytes = is_one_shuffle ? 16 : 8;
  for (int part = 0; part < (is_one_shuffle ? 1 : lanes / 4); ++part) {
    for (int i = 0; i < pixels; ++i) {
      bytes[16 * part + pixels * lane + i] = static_cast<uint8_t>(pixel_bytes * i + c);
    }
  }
}

/// Says of each lane of a vector which of a pixel's bytes it has.
void pack_orders(const BoundGroupedNhwc& bound, const jit::NhwcVector& vector, int32_t* to) {
  const jit::GroupedNhwcPlan& plan = bound.plan;
  const int64_t channels = plan.geometry.group_channels();
  const int64_t outputs = plan.geometry.group_out_channels();
  const int64_t group = vector.channel / outputs;
  int64_t first = group * channels - vector.input;        // channel of the lane's group
  int64_t left = (group + 1) * outputs - vector.channel;  // lanes that the group has
  for (int lane = 0; lane < plan.lanes; ++lane, --left) {
    if (left == 0) {
      first += channels;
      left = outputs;
    }
    if (plan.spec.repeats) pack_pixel_order(bound, lane, first, to);
    for (int k_group = 0; k_group < plan.spec.k_groups; ++k_group) {
      to[k_group * plan.lanes + lane] = static_cast<int32_t>(channel_order(plan, k_group, first));
    }
  }
}

}  // namespace

SlidingProducts products_of(const ConvolutionGeometry& geometry,
                            const ConvolutionOperands& operands, jit::ProductEngine engine,
                            const WeightData& from) {
  if (engine == jit::ProductEngine::i16_pairs ||
      (operands.w_is_signed && from.zero_points == nullptr)) {
    return {};
  }
  const int64_t in_channel = jit::products_of_output(geometry);
  const bool differ = from.zero_points != nullptr && operands.zero_points_per_channel;
  const int64_t count = differ ? geometry.out_channels : 1;  // of zero points
  const int64_t weights = differ ? in_channel : in_channel * geometry.out_channels;  // of each
  int32_t min = 0;  // of the differences
  int32_t max = 0;
  for (int64_t m = 0; m < count; ++m) {
    const auto [least, largest] =
        range_of(from.weights + m * weights, weights, operands.w_is_signed);
    const int32_t zero_point = weight_zero_point(operands, from.zero_points, m);
    min = std::min(min, least - zero_point);
    max = std::max(max, largest - zero_point);
  }
  if (min >= -128 && max <= 127) return {};
  return {.signed_input = operands.x_is_signed,
          .subtracts_window_sums = !operands.x_is_signed || min < 0 || max > 255};
}

template <class Plan>
void pack_weights(const BoundSliding<Plan>& bound, const SlidingProducts& products,
                  const WeightData& from, const PackedPanels<int32_t>& to) {
  const Plan& plan = bound.plan;
  const ChannelPacker<Plan> packer(bound, products, from);
  const int64_t panel_lanes = plan.panel_lanes();
  if (BoundSliding<Plan>::is_nhwc) std::fill(to.panels, to.sums, 0);  // lanes without a channel
  int32_t* panel = to.panels;
  int32_t* sums = to.sums;
  for (int64_t slice = 0; slice < plan.slices; ++slice, sums += plan.geometry.out_channels) {
    for (int64_t i = 0; i < plan.panels(); ++i, panel += panel_lanes) {
      if constexpr (BoundSliding<Plan>::is_nhwc) {
        const jit::NhwcVector& vector = plan.vectors[static_cast<size_t>(i)];
        pack_orders(bound, vector, panel);
        int32_t* weights = panel + plan.spec.orders() * plan.lanes;
        for (int64_t lane = 0; lane < vector.channels(); ++lane) {
          sums[vector.channel + lane] = packer.pack(slice, vector.channel + lane, weights + lane);
        }
      } else {
        sums[i] = packer.pack(slice, i, panel);
      }
    }
  }
}

void set_starts(const ConvolutionOperands& operands, const SlidingProducts& products,
                const std::byte* x_zero_point, std::span<const int32_t> sums, int32_t* starts) {
  const int32_t zero = input_zero_point(operands, x_zero_point);
  const int32_t flip = operands.x_is_signed && !products.signed_input ? 128 : 0;
  const auto multiplied = static_cast<uint32_t>(zero + flip);
  std::ranges::transform(sums, starts, [&](int32_t sum) {
    return static_cast<int32_t>(0 - multiplied * static_cast<uint32_t>(sum));
  });
}

template void pack_weights(const BoundDepthwise&, const SlidingProducts&, const WeightData&,
                           const PackedPanels<int32_t>&);
template void pack_weights(const BoundGroupedNhwc&, const SlidingProducts&, const WeightData&,
                           const PackedPanels<int32_t>&);

}  // namespace castor::detail
