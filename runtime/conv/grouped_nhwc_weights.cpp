// SPDX-License-Identifier: Apache-2.0
// Weights for grouped kernels with channels in the lanes, moved to where each output of a place
// finds its taps.
#include <algorithm>
#include <array>

#include "jit/conv/dot_product.hpp"
#include "runtime/conv/grouped_nhwc.hpp"

namespace castor::detail {

namespace {

using jit::GroupedNhwcForm;

/// Taps of one row of a filter, 8 at the most; those behind the last one are 0.
using Bytes = uint64_t;
using Words = std::array<int32_t, GroupedNhwcForm::max_pixels>;

/// The low bits of two numbers as words of a dword.
int32_t pair_of(int32_t low, int32_t high) {
  return static_cast<int32_t>((static_cast<uint32_t>(low) & 0xffff) | static_cast<uint32_t>(high)
                                                                          << 16);
}

uint32_t dword_of(int32_t byte) { return (static_cast<uint32_t>(byte) & 0xff) * 0x01010101; }

int32_t sum_of_bytes(uint32_t bytes) {
  const uint32_t pairs = (bytes & 0x00ff00ff) + (bytes >> 8 & 0x00ff00ff);
  return static_cast<int32_t>((pairs & 0xffff) + (pairs >> 16));
}

/// Byte by byte, modulo 256.
uint32_t difference_of_bytes(uint32_t a, uint32_t b) {
  constexpr uint32_t high = 0x80808080;
  return ((a | high) - (b & ~high)) ^ ((a ^ ~b) & high);
}

/// Packs one output channel at a time to its lane of a vector's record.
class LanePacker {
 public:
  LanePacker(const BoundGroupedNhwc& grouped, const DepthwiseProducts& products, const std::byte* w,
             const std::byte* zero_points)
      : plan_(grouped.plan),
        form_(grouped.plan.form),
        operands_(grouped.operands),
        products_(products),
        w_(w),
        zero_points_(zero_points),
        in_bytes_(jit::product_engine_of(grouped.target) == jit::ProductEngine::u8_i8_dot),
        is_signed_(grouped.operands.w_is_signed),
        channels_(plan_.geometry.group_channels()),
        taps_(plan_.rows.kernel * plan_.columns.kernel) {}

  /// `to` is the channel's lane of the first vector of weights. Returns the sum of the weights less
  /// their zero point.
  int32_t pack(int64_t slice, int64_t m, int32_t* to) {
    filter_ = w_ + (m * channels_ * plan_.slices + slice) * taps_;
    zero_point_ = zero_points_ == nullptr
                      ? 0
                      : number_of(zero_points_[operands_.zero_points_per_channel ? m : 0]);
    // What is taken off here; the rest is left to window sums.
    taken_off_ = zero_point_;
    if (products_.subtracts_window_sums) {
      const int32_t to_signed = is_signed_ ? 0 : 128;
      taken_off_ = products_.signed_input ? to_signed - 128 : to_signed;
    }
    sum_ = 0;
    for (int row = 0; row < form_.rows; ++row) {
      to = form_.parts == 0 ? pack_row(row, to) : pack_row_of_group(row, to);
    }
    if (in_bytes_) pack_zero_points(to);
    return sum_ - static_cast<int32_t>(channels_ * taps_) * (zero_point_ - taken_off_);
  }

 private:
  int32_t number_of(std::byte byte) const {
    return is_signed_ ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
  }

  /// Weights as they are multiplied, one channel's of a row.
  int32_t* pack_row(int row, int32_t* to) {
    const std::byte* weights = filter_ + row * form_.columns;
    Bytes bytes = 0;
    Words words = {};
    int32_t sum = 0;
    for (int column = 0; column < form_.columns; ++column) {
      const int32_t weight = number_of(weights[column]) - taken_off_;
      sum += weight;
      bytes |= Bytes{static_cast<uint8_t>(weight)} << (8 * column);
      words[static_cast<size_t>(column)] = weight;
    }
    sum_ += sum;
    return in_bytes_ ? pack_bytes(bytes, to) : pack_words(words, to);
  }

  int32_t* pack_bytes(Bytes row, int32_t* to) const {
    for (int quad = 0; quad < form_.quads(); ++quad) {
      for (int output = 0; output < form_.outputs; ++output) {
        if (!form_.takes(output, quad)) continue;
        const int bits = 8 * (4 * quad - output * form_.column_stride);
        *to = static_cast<int32_t>(static_cast<uint32_t>(bits < 0 ? row << -bits : row >> bits));
        to += plan_.lanes;
      }
    }
    return to;
  }

  int32_t* pack_words(const Words& row, int32_t* to) const {
    const auto word = [&](int tap) {
      return tap < 0 || tap >= form_.columns ? 0 : row[static_cast<size_t>(tap)];
    };
    for (int quad = 0; quad < form_.quads(); ++quad) {
      for (int output = 0; output < form_.outputs; ++output) {
        if (!form_.takes(output, quad)) continue;
        const int tap = 4 * quad - output * form_.column_stride;
        to[0] = pair_of(word(tap), word(tap + 2));
        to[plan_.lanes] = pair_of(word(tap + 1), word(tap + 3));
        to += 2 * plan_.lanes;
      }
    }
    return to;
  }

  /// By column, then by part.
  int32_t* pack_row_of_group(int row, int32_t* to) {
    for (int column = 0; column < form_.columns; ++column) {
      const std::byte* weights = filter_ + row * form_.columns + column;
      for (int64_t first = 0; first < channels_; first += plan_.held) {
        const int64_t count = std::min<int64_t>(channels_ - first, plan_.held);
        const std::byte* from = weights + first * plan_.slices * taps_;
        *to = in_bytes_ ? bytes_of_channels(from, count) : words_of_channels(from, count);
        to += plan_.lanes;
      }
    }
    return to;
  }

  /// Weights of up to four channels, all at the same time.
  int32_t bytes_of_channels(const std::byte* from, int64_t count) {
    const int64_t step = plan_.slices * taps_;
    const auto byte = [&](int i) { return std::to_integer<uint32_t>(from[i * step]) << (8 * i); };
    uint32_t bytes = byte(0);
    if (count == 4) {
      bytes |= byte(1) | byte(2) | byte(3);
    } else {
      for (int i = 1; i < count; ++i) bytes |= byte(i);
    }
    const uint32_t there = 0xffffffffu >> (8 * (4 - count));
    const int32_t flip = is_signed_ ? 0x80 : 0;  // to unsigned bytes
    sum_ += sum_of_bytes((bytes ^ dword_of(flip)) & there) -
            static_cast<int32_t>(count) * (flip + taken_off_);
    return static_cast<int32_t>(difference_of_bytes(bytes, dword_of(taken_off_)) & there);
  }

  int32_t words_of_channels(const std::byte* from, int64_t count) {
    const int32_t low = number_of(from[0]) - taken_off_;
    const int32_t high = count > 1 ? number_of(from[plan_.slices * taps_]) - taken_off_ : 0;
    sum_ += low + high;
    return pair_of(low, high);
  }

  /// What is left of the zero point, in the bytes of taps that there are.
  void pack_zero_points(int32_t* to) const {
    const auto byte = static_cast<uint8_t>(zero_point_ - taken_off_);
    const Bytes all = byte * Bytes{0x0101010101010101};
    if (form_.parts == 0) {
      pack_bytes(all >> (8 * (GroupedNhwcForm::max_pixels - form_.columns)), to);
      return;
    }
    for (int64_t first = 0; first < channels_; first += plan_.held, to += plan_.lanes) {
      const int64_t count = std::min<int64_t>(channels_ - first, plan_.held);
      *to = static_cast<int32_t>(static_cast<uint32_t>(all) >> (8 * (4 - count)));
    }
  }

  const jit::GroupedNhwcPlan& plan_;
  const GroupedNhwcForm& form_;
  const ConvolutionOperands& operands_;
  const DepthwiseProducts& products_;
  const std::byte* w_;
  const std::byte* zero_points_;
  const bool in_bytes_;
  const bool is_signed_;
  const int64_t channels_;  ///< of a group
  const int64_t taps_;      ///< of a slice
  const std::byte* filter_ = nullptr;
  int32_t zero_point_ = 0;
  int32_t taken_off_ = 0;
  int32_t sum_ = 0;
};

/// Says of each lane which of a pixel's bytes it has.
class OrderPacker {
 public:
  explicit OrderPacker(const BoundGroupedNhwc& grouped)
      : plan_(grouped.plan),
        target_(grouped.target),
        channels_(plan_.geometry.group_channels()),
        outputs_(plan_.geometry.group_out_channels()) {}

  /// Orders of a vector.
  void pack(const jit::NhwcVector& vector, int32_t* to) {
    const jit::GroupedNhwcForm& form = plan_.form;
    to_ = to;
    const int64_t group = vector.channel / outputs_;
    int64_t first = group * channels_ - vector.input;        // channel of the lane's group
    int64_t left = (group + 1) * outputs_ - vector.channel;  // lanes that the group has
    for (int lane = 0; lane < plan_.lanes; ++lane, --left) {
      if (left == 0) {
        first += channels_;
        left = outputs_;
      }
      if (form.repeats) set_pixels(lane, first);
      for (int part = 0; part < form.parts; ++part) set_channels(part, lane, first);
    }
  }

 private:
  static constexpr int absent = 0x80;  ///< a byte of 0

  void set(int part, int dword, const std::array<int, 4>& bytes) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value |= static_cast<uint32_t>(bytes[i] & 0xff) << (8 * i);
    to_[part * plan_.lanes + dword] = static_cast<int32_t>(value);
  }

  /// Channels of a group: bytes, or the lower bytes of words.
  void set_channels(int part, int lane, int64_t first) {
    const auto at = [&](int i) {
      const int64_t channel = int64_t{part} * plan_.held + i;
      const int64_t byte = first + channel;
      const bool is_there = channel < channels_ && byte < GroupedNhwcForm::pixel_bytes;
      return is_there ? static_cast<int>(byte) : absent;
    };
    if (plan_.held == 4) return set(part, lane, {at(0), at(1), at(2), at(3)});
    set(part, lane, {at(0), absent, at(1), absent});
  }

  /// A channel of four pixels, as shuffles move them.
  void set_pixels(int lane, int64_t channel) {
    const int c = static_cast<int>(channel) % plan_.lanes;  // lanes that are not there have any
    auto* bytes = reinterpret_cast<uint8_t*>(to_);
    if (target_.supports(jit::Feature::avx512_vbmi)) {
      return set(0, lane, {c, 16 + c, 32 + c, 48 + c});
    }
    for (int part = 0; part < plan_.lanes / 4; ++part) {
      uint8_t* of_part = bytes + 16 * part;
      if (plan_.lanes == 16) {
        of_part[lane] = static_cast<uint8_t>(c);
      } else {
        of_part[2 * lane] = static_cast<uint8_t>(c);
        of_part[2 * lane + 1] = static_cast<uint8_t>(8 + c);
      }
    }
  }

  const jit::GroupedNhwcPlan& plan_;
  const jit::Target& target_;
  const int64_t channels_;  ///< of a group
  const int64_t outputs_;   ///< likewise
  int32_t* to_ = nullptr;
};

}  // namespace

size_t record_dwords(const BoundGroupedNhwc& grouped) {
  const auto vectors = static_cast<size_t>(jit::record_vectors(grouped.plan.form, grouped.target));
  return vectors * static_cast<size_t>(grouped.plan.lanes);
}

size_t weight_dwords(const BoundGroupedNhwc& grouped) {
  return record_dwords(grouped) * vector_count(grouped);
}

size_t packed_dwords(const BoundGroupedNhwc& grouped) {
  constexpr size_t to_next_line = 15;
  const auto sums = static_cast<size_t>(grouped.plan.slices * grouped.plan.geometry.out_channels);
  return to_next_line + weight_dwords(grouped) + sums;
}

void pack_weights(const BoundGroupedNhwc& grouped, const DepthwiseProducts& products,
                  const std::byte* w, const std::byte* zero_points, const PackedNhwc<int32_t>& to) {
  const jit::GroupedNhwcPlan& plan = grouped.plan;
  LanePacker packer(grouped, products, w, zero_points);
  OrderPacker orders(grouped);
  const size_t record_size = record_dwords(grouped);
  std::ranges::fill(to.records, 0);
  int32_t* record = to.records.data();
  for (int64_t slice = 0; slice < plan.slices; ++slice) {
    int32_t* sums = to.sums.data() + slice * plan.geometry.out_channels;
    for (const jit::NhwcVector& vector : plan.vectors) {
      orders.pack(vector, record);
      int32_t* weights = record + plan.form.orders() * plan.lanes;
      for (int lane = 0; lane < vector.channels(); ++lane) {
        const int64_t m = vector.channel + lane;
        sums[m] = packer.pack(slice, m, weights + lane);
      }
      record += record_size;
    }
  }
}

}  // namespace castor::detail
