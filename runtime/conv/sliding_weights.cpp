// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/sliding_weights.hpp"

#include <algorithm>
#include <array>

namespace castor::detail {

namespace {

using jit::GroupedNhwcForm;

/// Up to 8 taps of a row of a filter; those after the last one are 0.
constexpr int taps_at_once = 8;
using Bytes = uint64_t;
using Words = std::array<int32_t, taps_at_once>;

int32_t number_of(std::byte byte, bool is_signed) {
  return is_signed ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
}

/// Of an output channel's weights.
int32_t zero_point_of(const ConvolutionOperands& operands, const WeightData& from, int64_t m) {
  if (from.zero_points == nullptr) return 0;
  return number_of(from.zero_points[operands.zero_points_per_channel ? m : 0],
                   operands.w_is_signed);
}

struct WeightRange {
  int32_t min = 0;
  int32_t max = 0;
};

WeightRange range_of(const std::byte* weights, int64_t count, bool is_signed) {
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

/// Packs one output channel at a time to its lane of a record.
class LanePacker {
 public:
  /// `form` says how the taps of a row are laid out. `held`: channels of a k group.
  LanePacker(const GroupedNhwcForm& form, int lanes, int held, const SlidingProducts& products,
             const WeightData& from)
      : form_(form), lanes_(lanes), held_(held), products_(products), from_(from) {}

  template <class Plan>
  void set_layer(const BoundSliding<Plan>& bound) {
    operands_ = bound.operands;
    in_bytes_ = !bound.plan.form.has_words();
    channels_ = bound.plan.geometry.group_channels();
    taps_ = bound.plan.rows.kernel * bound.plan.columns.kernel;
    channel_step_ = bound.plan.slices * taps_;
  }
  /// The last tap of each row is alone in its dword, and no window sums are made of it.
  void split_last_tap() { splits_last_ = true; }

  /// `to` is the channel's lane of the first weights. Returns the sum of the weights less their
  /// zero point.
  int32_t pack(int64_t slice, int64_t m, int32_t* to) {
    filter_ = from_.weights + m * channels_ * channel_step_ + slice * taps_;
    zero_point_ = zero_point_of(operands_, from_, m);
    // What is taken off here; the rest is left to window sums.
    taken_off_ = zero_point_;
    if (products_.subtracts_window_sums) {
      const int32_t to_signed = operands_.w_is_signed ? 0 : 128;
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
  int32_t weight_of(std::byte byte) const { return number_of(byte, operands_.w_is_signed); }

  /// Weights as they are multiplied, one channel's of a row.
  int32_t* pack_row(int row, int32_t* to) {
    const std::byte* weights = filter_ + row * form_.columns;
    for (int first = 0; first < form_.columns; first += taps_at_once) {
      Bytes bytes = 0;
      Words words = {};
      const int count = std::min(form_.columns - first, taps_at_once);
      for (int i = 0; i < count; ++i) {
        const int32_t weight = weight_of(weights[first + i]) - taken_off_;
        sum_ += weight;
        bytes |= Bytes{static_cast<uint8_t>(weight)} << (8 * i);
        words[static_cast<size_t>(i)] = weight;
      }
      to = in_bytes_ ? pack_bytes(first, bytes, to) : pack_words(first, words, to);
    }
    if (splits_last_) to[-1] = split(weight_of(weights[form_.columns - 1]) - zero_point_);
    return to;
  }

  /// Quads of the taps from `first` on.
  int quads_from(int first) const { return std::min(form_.quads() - first / 4, taps_at_once / 4); }

  int32_t* pack_bytes(int first, Bytes row, int32_t* to) const {
    for (int quad = 0; quad < quads_from(first); ++quad) {
      for (int output = 0; output < form_.outputs; ++output) {
        if (!form_.takes(output, quad)) continue;
        const int bits = 8 * (4 * quad - output * form_.column_stride);
        *to = static_cast<int32_t>(static_cast<uint32_t>(bits < 0 ? row << -bits : row >> bits));
        to += lanes_;
      }
    }
    return to;
  }

  int32_t* pack_words(int first, const Words& row, int32_t* to) const {
    const auto word = [&](int tap) {
      return tap < 0 || tap >= taps_at_once ? 0 : row[static_cast<size_t>(tap)];
    };
    for (int quad = 0; quad < quads_from(first); ++quad) {
      for (int output = 0; output < form_.outputs; ++output) {
        if (!form_.takes(output, quad)) continue;
        const int tap = 4 * quad - output * form_.column_stride;
        to[0] = pair_of(word(tap), word(tap + 2));
        to[lanes_] = pair_of(word(tap + 1), word(tap + 3));
        to += 2 * lanes_;
      }
    }
    return to;
  }

  /// A number of nine bits as the sum of three signed bytes.
  static int32_t split(int32_t left) {
    uint32_t bytes = 0;
    for (int i = 0; i < 3; ++i) {
      const int32_t part = std::clamp(left, -128, 127);
      bytes |= (static_cast<uint32_t>(part) & 0xff) << (8 * i);
      left -= part;
    }
    return static_cast<int32_t>(bytes);
  }

  /// By column, then by part.
  int32_t* pack_row_of_group(int row, int32_t* to) {
    for (int column = 0; column < form_.columns; ++column) {
      const std::byte* weights = filter_ + row * form_.columns + column;
      for (int64_t first = 0; first < channels_; first += held_) {
        const int64_t count = std::min<int64_t>(channels_ - first, held_);
        const std::byte* from = weights + first * channel_step_;
        *to = in_bytes_ ? bytes_of_channels(from, count) : words_of_channels(from, count);
        to += lanes_;
      }
    }
    return to;
  }

  /// Weights of up to four channels, all at the same time.
  int32_t bytes_of_channels(const std::byte* from, int64_t count) {
    const auto byte = [&](int i) {
      return std::to_integer<uint32_t>(from[i * channel_step_]) << (8 * i);
    };
    uint32_t bytes = byte(0);
    if (count == 4) {
      bytes |= byte(1) | byte(2) | byte(3);
    } else {
      for (int i = 1; i < count; ++i) bytes |= byte(i);
    }
    const uint32_t there = 0xffffffffu >> (8 * (4 - count));
    const int32_t flip = operands_.w_is_signed ? 0x80 : 0;  // to unsigned bytes
    sum_ += sum_of_bytes((bytes ^ dword_of(flip)) & there) -
            static_cast<int32_t>(count) * (flip + taken_off_);
    return static_cast<int32_t>(difference_of_bytes(bytes, dword_of(taken_off_)) & there);
  }

  int32_t words_of_channels(const std::byte* from, int64_t count) {
    const int32_t low = weight_of(from[0]) - taken_off_;
    const int32_t high = count > 1 ? weight_of(from[channel_step_]) - taken_off_ : 0;
    sum_ += low + high;
    return pair_of(low, high);
  }

  /// What is left of the zero point, in the bytes of taps that there are.
  void pack_zero_points(int32_t* to) const {
    const auto byte = static_cast<uint8_t>(zero_point_ - taken_off_);
    const Bytes all = byte * Bytes{0x0101010101010101};
    if (form_.parts == 0) {
      for (int first = 0; first < form_.columns; first += taps_at_once) {
        const int count = std::min(form_.columns - first, taps_at_once);
        to = pack_bytes(first, all >> (8 * (taps_at_once - count)), to);
      }
      return;
    }
    for (int64_t first = 0; first < channels_; first += held_, to += lanes_) {
      const int64_t count = std::min<int64_t>(channels_ - first, held_);
      *to = static_cast<int32_t>(static_cast<uint32_t>(all) >> (8 * (4 - count)));
    }
  }

  const GroupedNhwcForm& form_;
  const int lanes_;
  const int held_;
  const SlidingProducts& products_;
  const WeightData& from_;
  ConvolutionOperands operands_;
  bool in_bytes_ = true;
  bool splits_last_ = false;
  int64_t channels_ = 1;      ///< of a group
  int64_t taps_ = 0;          ///< of a slice
  int64_t channel_step_ = 0;  ///< from a channel of a group to the next: all slices
  const std::byte* filter_ = nullptr;
  int32_t zero_point_ = 0;
  int32_t taken_off_ = 0;
  int32_t sum_ = 0;
};

/// Says of each lane which of a pixel's bytes it has.
class OrderPacker {
 public:
  explicit OrderPacker(const BoundGroupedNhwc& bound)
      : plan_(bound.plan),
        target_(bound.target),
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

/// What a sum of weights less their zero points gives times the input's zero point, less.
class FirstSums {
 public:
  FirstSums(const ConvolutionOperands& operands, const SlidingProducts& products,
            const std::byte* x_zero_point) {
    const bool is_signed = operands.x_is_signed;
    const int32_t zero = x_zero_point == nullptr ? 0 : number_of(*x_zero_point, is_signed);
    const bool flips = is_signed && !products.signed_input;
    as_multiplied_ = static_cast<uint32_t>(zero + (flips ? 128 : 0));
  }
  int32_t of(int32_t sum) const {
    return static_cast<int32_t>(0 - as_multiplied_ * static_cast<uint32_t>(sum));
  }

 private:
  uint32_t as_multiplied_ = 0;
};

}  // namespace

std::vector<SlidingProducts> possible_products(const ConvolutionOperands& operands,
                                               jit::ProductEngine engine) {
  std::vector<SlidingProducts> all = {{}};
  if (engine == jit::ProductEngine::i16_pairs ||
      (operands.w_zero_point < 0 && operands.w_is_signed))
    return all;
  all.push_back({.signed_input = operands.x_is_signed, .subtracts_window_sums = true});
  if (operands.x_is_signed) all.push_back({.signed_input = true});
  return all;
}

SlidingProducts products_of(const ConvolutionGeometry& geometry,
                            const ConvolutionOperands& operands, jit::ProductEngine engine,
                            const WeightData& from) {
  if (engine == jit::ProductEngine::i16_pairs ||
      (operands.w_is_signed && from.zero_points == nullptr))
    return {};
  int64_t of_channel = geometry.group_channels();
  for (const ConvolutionAxis& axis : geometry.axes) of_channel *= axis.kernel;
  const bool differ = from.zero_points != nullptr && operands.zero_points_per_channel;
  const int64_t count = differ ? geometry.out_channels : 1;  // of zero points
  const int64_t weights = differ ? of_channel : of_channel * geometry.out_channels;  // of each
  int32_t min = 0;  // of the differences
  int32_t max = 0;
  for (int64_t m = 0; m < count; ++m) {
    const WeightRange range = range_of(from.weights + m * weights, weights, operands.w_is_signed);
    const int32_t zero_point = zero_point_of(operands, from, m);
    min = std::min(min, range.min - zero_point);
    max = std::max(max, range.max - zero_point);
  }
  if (min >= -128 && max <= 127) return {};
  return {.signed_input = operands.x_is_signed,
          .subtracts_window_sums = !operands.x_is_signed || min < 0 || max > 255};
}

void pack_weights(const BoundDepthwise& bound, const SlidingProducts& products,
                  const WeightData& from, const PackedRecords<int32_t>& to) {
  const jit::DepthwisePlan& plan = bound.plan;
  const GroupedNhwcForm one_output = {.rows = plan.form.rows,
                                      .columns = static_cast<int>(plan.columns.kernel)};
  LanePacker packer(one_output, 1, 1, products, from);
  packer.set_layer(bound);
  if (products.subtracts_window_sums && !products.signed_input && plan.form.repeats_last_tap) {
    packer.split_last_tap();
  }
  const size_t record_size = record_dwords(plan);
  int32_t* record = to.records.data();
  int32_t* sum = to.sums.data();
  for (int64_t slice = 0; slice < plan.slices; ++slice) {
    for (int64_t m = 0; m < plan.geometry.out_channels; ++m, record += record_size) {
      *sum++ = packer.pack(slice, m, record);
    }
  }
}

void pack_weights(const BoundGroupedNhwc& bound, const SlidingProducts& products,
                  const WeightData& from, const PackedRecords<int32_t>& to) {
  const jit::GroupedNhwcPlan& plan = bound.plan;
  LanePacker packer(plan.form, plan.lanes, plan.held, products, from);
  packer.set_layer(bound);
  OrderPacker orders(bound);
  const size_t record_size = record_dwords(plan);
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

void set_starts(const BoundDepthwise& bound, const SlidingProducts& products,
                const std::byte* x_zero_point, std::span<const int32_t> sums,
                std::span<int32_t> starts) {
  const FirstSums first(bound.operands, products, x_zero_point);
  for (size_t i = 0; i < starts.size(); ++i) starts[i] = first.of(sums[i]);
}

void set_starts(const BoundGroupedNhwc& bound, const SlidingProducts& products,
                const std::byte* x_zero_point, std::span<const int32_t> sums,
                std::span<jit::NhwcVector> starts) {
  const FirstSums first(bound.operands, products, x_zero_point);
  const auto channels = static_cast<size_t>(bound.plan.geometry.out_channels);
  const size_t count = bound.plan.vectors.size();
  for (size_t i = 0; i < starts.size(); ++i) {
    jit::NhwcVector vector = bound.plan.vectors[i % count];
    const size_t from = i / count * channels + static_cast<size_t>(vector.channel);
    for (size_t lane = 0; lane < static_cast<size_t>(vector.channels()); ++lane) {
      vector.start[lane] = first.of(sums[from + lane]);
    }
    starts[i] = vector;
  }
}

}  // namespace castor::detail
