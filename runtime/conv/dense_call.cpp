// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/dense_call.hpp"

#include <algorithm>

#include "ir/support/integer_math.hpp"

namespace castor::detail {

void CallWeights::prepare() {
  const jit::DensePlan& plan = convolution_.plan;
  int32_t* zeros = zero_points();
  const auto channels = static_cast<size_t>(plan.geometry.out_channels);
  set_weight_zero_points(convolution_, operands_.w_zero_points, {zeros, channels});
  if (!convolution_.packed.empty()) {
    packed_ = packed_weights(plan, convolution_.packed.data());
  } else if (!convolution_.packs_by_tile) {
    const auto to = packed_weights(plan, int32_at(scratch_, convolution_.parts.weights));
    pack_weights(plan, convolution_.weight_packers,
                 {operands_.w, convolution_.operands.w_is_signed, zeros}, to);
    packed_ = {to.k_groups, to.sums};
  }
  if (convolution_.window_sums == jit::WindowSums::i16_pairs) {
    std::transform(zeros, zeros + channels, zeros, jit::pair_of_zero_point);
  }
  if (!convolution_.packs_by_tile) {
    set_starts(0, packed_.sums, int32_at(scratch_, convolution_.parts.start));
  }
}

void CallWeights::prepare_tile(int64_t group, int64_t tile, std::byte* scratch) const {
  if (!convolution_.packs_by_tile) return;
  const jit::DensePlan& plan = convolution_.plan;
  int32_t* to = int32_at(scratch, convolution_.parts.weights);
  int32_t* sums = to + tile_k_groups(plan);
  pack_weight_tile(plan, convolution_.weight_packers,
                   {operands_.w, convolution_.operands.w_is_signed, zero_points()}, group, tile, to,
                   sums);
  const int channels = plan.channels_of(tile);
  set_starts(first_channel(group, tile), {sums, static_cast<size_t>(channels)},
             int32_at(scratch, convolution_.parts.start));
}

void CallWeights::set_arguments(int64_t group, int64_t tile, std::byte* scratch,
                                jit::DenseArguments& arguments) const {
  const bool by_tile = convolution_.packs_by_tile;
  const int64_t channel = first_channel(group, tile);
  const jit::DensePlan& plan = convolution_.plan;
  arguments.weights = by_tile ? scratch + convolution_.parts.weights
                              : reinterpret_cast<const std::byte*>(packed_.k_groups.data()) +
                                    jit::k_group_bytes * packed_tile(plan, group, tile);
  arguments.start = int32_at(by_tile ? scratch : scratch_, convolution_.parts.start) + channel;
  arguments.weight_zero_points = zero_points() + channel;
}

/// Signed ones have 128 added, unless the engine keeps signs.
int32_t CallWeights::padding() const {
  const jit::DensePlan& plan = convolution_.plan;
  if (subtracts_from_pixels(plan)) return 0;
  const bool has_sign_flip = takes_u8_by_i8(plan.engine) && convolution_.operands.x_is_signed;
  return operands_.x_zero_point + (has_sign_flip ? 128 : 0);
}

/// (x - a)(w - b) summed is xw - b x - a w + a b summed; what does not depend on pixels comes
/// first. Modulo 2^32. Of output channels from `first` on, whose weights have these sums; `starts`
/// is of all channels.
void CallWeights::set_starts(int64_t first, std::span<const int32_t> sums, int32_t* starts) const {
  const ConvolutionGeometry& geometry = convolution_.plan.geometry;
  const int32_t* zeros = zero_points() + first;
  const auto products = static_cast<uint32_t>(jit::products_of_output(geometry));
  const auto a = static_cast<uint32_t>(padding());
  const bool has_pairs = convolution_.window_sums == jit::WindowSums::i16_pairs;
  for (size_t m = 0; m < sums.size(); ++m) {
    const auto b = static_cast<uint32_t>(has_pairs ? jit::zero_point_of_pair(zeros[m]) : zeros[m]);
    const uint32_t start = products * a * b - a * static_cast<uint32_t>(sums[m]);
    starts[first + static_cast<int64_t>(m)] = static_cast<int32_t>(start);
  }
}

}  // namespace castor::detail
