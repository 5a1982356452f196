// SPDX-License-Identifier: Apache-2.0
// Weights for kernels with channels in the lanes: those of each channel as the other layout has
// them, moved to where each output of a place finds its taps.
#include <algorithm>
#include <array>

#include "runtime/depthwise_nhwc.hpp"

namespace castor::detail {

namespace {

constexpr int lanes = jit::DepthwiseNhwcForm::lanes;

/// Taps of one row of a filter, 8 at the most; those behind the last one are 0.
using Bytes = uint64_t;
using Words = std::array<uint16_t, jit::DepthwiseNhwcForm::most_pixels>;

/// Turns the weights of one vector of channels around.
class VectorPacker {
 public:
  explicit VectorPacker(const BoundDepthwiseNhwc& depthwise)
      : form_(depthwise.plan.form),
        dwords_(depthwise.filter.plan.form.dwords),
        in_bytes_(depthwise.target.supports(jit::Feature::avx512_vnni)) {}

  /// One channel: `from` has its weights, `to` is its lane of the first vector.
  void pack(const int32_t* from, int32_t* to) const {
    const int rows = form_.rows + (in_bytes_ ? 1 : 0);  // with the zero points
    for (int row = 0; row < rows; ++row) {
      if (in_bytes_) {
        to = pack_bytes(bytes_of(from), to);
        from += dwords_;
      } else {
        to = pack_words(words_of(from), to);
        from += 2 * dwords_;
      }
    }
  }

 private:
  Bytes bytes_of(const int32_t* from) const {
    Bytes bytes = static_cast<uint32_t>(from[0]);
    if (dwords_ > 1) bytes |= Bytes{static_cast<uint32_t>(from[1])} << 32;
    return bytes;
  }

  /// Dwords of even words and of odd ones.
  Words words_of(const int32_t* from) const {
    Words words = {};
    for (int tap = 0; tap < form_.columns; ++tap) {
      const auto dword = static_cast<uint32_t>(from[tap / 4 * 2 + tap % 2]);
      words[static_cast<size_t>(tap)] = static_cast<uint16_t>(dword >> (tap % 4 / 2 * 16));
    }
    return words;
  }

  int32_t* pack_bytes(Bytes row, int32_t* to) const {
    for (int quad = 0; quad < form_.quads(); ++quad) {
      for (int output = 0; output < form_.outputs; ++output) {
        if (!form_.takes(output, quad)) continue;
        const int bits = 8 * (4 * quad - output * form_.column_stride);
        *to = static_cast<int32_t>(static_cast<uint32_t>(bits < 0 ? row << -bits : row >> bits));
        to += lanes;
      }
    }
    return to;
  }

  int32_t* pack_words(const Words& row, int32_t* to) const {
    for (int quad = 0; quad < form_.quads(); ++quad) {
      for (int output = 0; output < form_.outputs; ++output) {
        if (!form_.takes(output, quad)) continue;
        const int tap = 4 * quad - output * form_.column_stride;
        to[0] = pair_of(row, tap);
        to[lanes] = pair_of(row, tap + 1);
        to += 2 * lanes;
      }
    }
    return to;
  }

  int32_t pair_of(const Words& row, int tap) const {
    return static_cast<int32_t>(word_of(row, tap) | word_of(row, tap + 2) << 16);
  }
  uint32_t word_of(const Words& row, int tap) const {
    return tap < 0 || tap >= form_.columns ? 0 : row[static_cast<size_t>(tap)];
  }

  const jit::DepthwiseNhwcForm& form_;
  const int dwords_;
  const bool in_bytes_;
};

int64_t vector_lanes(const jit::DepthwiseNhwcPlan& plan) {
  return std::min<int64_t>(plan.geometry.channels, lanes);
}

}  // namespace

int64_t first_channel(const jit::DepthwiseNhwcPlan& plan, int64_t vector) {
  return std::min(vector * lanes, plan.geometry.channels - vector_lanes(plan));
}

size_t weight_dwords(const BoundDepthwiseNhwc& depthwise) {
  const jit::DepthwiseNhwcPlan& plan = depthwise.plan;
  const auto vectors = static_cast<size_t>(jit::weight_vectors(plan.form, depthwise.target));
  return vectors * lanes * static_cast<size_t>(plan.channel_vectors());
}

size_t packed_dwords(const BoundDepthwiseNhwc& depthwise) {
  constexpr size_t to_next_line = 15;
  return to_next_line + weight_dwords(depthwise) + packed_dwords(depthwise.filter);
}

size_t start_dwords(const BoundDepthwiseNhwc& depthwise) {
  return static_cast<size_t>(depthwise.plan.channel_vectors()) * lanes;
}

void pack_weights(const BoundDepthwiseNhwc& depthwise, const DepthwiseProducts& products,
                  const std::byte* w, const std::byte* zero_points, const PackedNhwc<int32_t>& to) {
  const jit::DepthwiseNhwcPlan& plan = depthwise.plan;
  pack_weights(depthwise.filter, products, w, zero_points,
               DepthwiseWeights<int32_t>{to.by_channel, to.sums});
  const int record = jit::weight_dwords(depthwise.filter.plan.form, depthwise.target);
  const int64_t vector_dwords = jit::weight_vectors(plan.form, depthwise.target) * lanes;
  const VectorPacker packer(depthwise);
  for (int64_t vector = 0; vector < plan.channel_vectors(); ++vector) {
    const int32_t* from = to.by_channel.data() + first_channel(plan, vector) * record;
    int32_t* vectors = to.weights.data() + vector * vector_dwords;
    for (int64_t lane = 0; lane < vector_lanes(plan); ++lane) {
      packer.pack(from + lane * record, vectors + lane);
    }
  }
}

void set_starts(const BoundDepthwiseNhwc& depthwise, const DepthwiseProducts& products,
                const std::byte* x_zero_point, std::span<const int32_t> sums,
                std::span<int32_t> starts) {
  const jit::DepthwiseNhwcPlan& plan = depthwise.plan;
  const auto count = static_cast<size_t>(vector_lanes(plan));
  for (int64_t vector = 0; vector < plan.channel_vectors(); ++vector) {
    const auto first = static_cast<size_t>(first_channel(plan, vector));
    set_starts(depthwise.filter, products, x_zero_point, sums.subspan(first, count),
               starts.subspan(static_cast<size_t>(vector) * lanes, count));
  }
}

}  // namespace castor::detail
