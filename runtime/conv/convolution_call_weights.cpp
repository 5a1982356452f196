// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/convolution_call_weights.hpp"

#include <algorithm>

namespace castor::detail {

namespace {

int32_t* dwords_at(std::byte* scratch, size_t offset) {
  return reinterpret_cast<int32_t*>(scratch + offset);
}

}  // namespace

void CallWeights::prepare() {
  const jit::DensePlan& plan = convolution_.plan;
  const DenseScratch& parts = convolution_.parts;
  int32_t* zeros = dwords_at(scratch_, parts.zero_points);
  const auto channels = static_cast<size_t>(plan.geometry.out_channels);
  set_weight_zero_points(convolution_, operands_.w_zero_points, {zeros, channels});
  if (!convolution_.packed.empty()) {
    packed_ = packed_weights(plan, convolution_.packed.data());
  } else if (!convolution_.packs_by_tile) {
    const auto to = packed_weights(plan, dwords_at(scratch_, parts.weights));
    pack_weights(plan, convolution_.weight_packers,
                 {operands_.w, convolution_.operands.w_is_signed, zeros}, to);
    packed_ = {to.dwords, to.sums};
  }
  if (convolution_.window_sums == jit::WindowSums::words) {
    std::transform(zeros, zeros + channels, zeros, jit::words_of_zero_point);
  }
  if (!convolution_.packs_by_tile) {
    set_starts(0, packed_.sums, dwords_at(scratch_, parts.start));
  }
}

void CallWeights::prepare_tile(int64_t group, int64_t tile, std::byte* scratch) const {
  if (!convolution_.packs_by_tile) return;
  const jit::DensePlan& plan = convolution_.plan;
  int32_t* to = dwords_at(scratch, convolution_.parts.weights);
  int32_t* sums = to + tile_dwords(plan);
  pack_weight_tile(plan, convolution_.weight_packers,
                   {operands_.w, convolution_.operands.w_is_signed,
                    dwords_at(scratch_, convolution_.parts.zero_points)},
                   group, tile, to, sums);
  const int64_t first = group * plan.geometry.group_out_channels() + tile * plan.tile.channels;
  const bool is_last = tile + 1 == plan.channel_tiles;
  const int channels = is_last ? plan.last_channels() : plan.tile.channels;
  set_starts(first, {sums, static_cast<size_t>(channels)},
             dwords_at(scratch, convolution_.parts.start));
}

const std::byte* CallWeights::packed(int64_t group, int64_t tile, std::byte* scratch) const {
  const int32_t* dwords = convolution_.packs_by_tile
                              ? dwords_at(scratch, convolution_.parts.weights)
                              : packed_.dwords.data() + packed_tile(convolution_.plan, group, tile);
  return reinterpret_cast<const std::byte*>(dwords);
}

const int32_t* CallWeights::starts(int64_t channel, std::byte* scratch) const {
  std::byte* of = convolution_.packs_by_tile ? scratch : scratch_;
  return dwords_at(of, convolution_.parts.start) + channel;
}

const int32_t* CallWeights::zero_points(int64_t channel) const {
  return dwords_at(scratch_, convolution_.parts.zero_points) + channel;
}

/// A weight zero point, which kernels may have as words.
int32_t CallWeights::zero_point_of(int32_t stored) const {
  return convolution_.window_sums == jit::WindowSums::words ? jit::zero_point_of_words(stored)
                                                            : stored;
}

/// (x - a)(w - b) summed is xw - b x - a w + a b summed; what does not depend on pixels comes
/// first. Modulo 2^32. Of output channels from `first` on, whose weights have these sums; `starts`
/// is of all channels. x as the kernel has it: signed ones plus 128; without VNNI less its zero
/// point.
void CallWeights::set_starts(int64_t first, std::span<const int32_t> sums, int32_t* starts) const {
  const ConvolutionGeometry& geometry = convolution_.plan.geometry;
  const int32_t* zeros = zero_points(first);
  int64_t taps = geometry.group_channels();
  for (const ConvolutionAxis& axis : geometry.axes) taps *= axis.kernel;
  const auto a =
      static_cast<uint32_t>(operands_.x_zero_point + (convolution_.operands.x_is_signed ? 128 : 0));
  const bool bytes = convolution_.plan.engine == jit::ProductEngine::u8_i8_dot;
  for (size_t m = 0; m < sums.size(); ++m) {
    const auto b = static_cast<uint32_t>(zero_point_of(zeros[m]));
    const uint32_t start = static_cast<uint32_t>(taps) * a * b - a * static_cast<uint32_t>(sums[m]);
    starts[first + static_cast<int64_t>(m)] = bytes ? static_cast<int32_t>(start) : 0;
  }
}

}  // namespace castor::detail
