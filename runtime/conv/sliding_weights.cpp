// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/sliding_weights.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace castor::detail {

namespace {

using jit::GroupedNhwcForm;

/// Up to 8 taps of a row of a filter; those after the last one are 0.
constexpr int taps_at_once = 8;
using Bytes = uint64_t;
using Words = std::array<int32_t, taps_at_once>;

/// The low bits of two numbers as words of a dword.
int32_t pair_of(int32_t low, int32_t high) {
  return static_cast<int32_t>((static_cast<uint32_t>(low) & 0xffff) | static_cast<uint32_t>(high)
                                                                          << 16);
}

Bytes all_of(int32_t byte) { return static_cast<uint8_t>(byte) * Bytes{0x0101010101010101}; }
/// Of `count` bytes all bits, 1 to 8.
Bytes bits_of(int64_t count) { return ~Bytes{0} >> (8 * (taps_at_once - count)); }

/// Sums of neighbouring bytes in four words, which may be added up while words hold them.
Bytes pairs_of(Bytes bytes) {
  constexpr Bytes even = 0x00ff00ff00ff00ff;
  return (bytes & even) + (bytes >> 8 & even);
}
int64_t sum_of_words(Bytes words) { return static_cast<int64_t>(words * 0x0001000100010001 >> 48); }

/// Byte by byte, modulo 256.
Bytes difference_of_bytes(Bytes a, Bytes b) {
  constexpr Bytes high = 0x8080808080808080;
  return ((a | high) - (b & ~high)) ^ ((a ^ ~b) & high);
}

/// A number of nine bits as the sum of three signed bytes.
int32_t split(int32_t left) {
  uint32_t bytes = 0;
  for (int i = 0; i < 3; ++i) {
    const int32_t part = std::clamp(left, -128, 127);
    bytes |= (static_cast<uint32_t>(part) & 0xff) << (8 * i);
    left -= part;
  }
  return static_cast<int32_t>(bytes);
}

/// Where the weights of a row's taps go, for each output of a place that takes them.
class RowLayout {
 public:
  RowLayout(const GroupedNhwcForm& form, int lanes) : form_(form), lanes_(lanes) {}

  /// Up to 8 taps, from `first` on. Return where the next weights go.
  int32_t* put_bytes(int first, Bytes row, int32_t* to) const {
    if (form_.outputs == 1) {
      *to = static_cast<int32_t>(static_cast<uint32_t>(row));
      if (form_.columns - first <= 4) return to + lanes_;
      to[lanes_] = static_cast<int32_t>(static_cast<uint32_t>(row >> 32));
      return to + 2 * lanes_;
    }
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

  int32_t* put_words(int first, const Words& row, int32_t* to) const {
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

 private:
  /// Quads of the taps from `first` on.
  int quads_from(int first) const { return std::min(form_.quads() - first / 4, taps_at_once / 4); }

  const GroupedNhwcForm& form_;
  const int64_t lanes_;
};

/// Packs one output channel at a time to its lane of a panel.
class LanePacker {
 public:
  /// `form` says how the taps of a row are laid out. `held`: channels of a k group.
  LanePacker(const GroupedNhwcForm& form, int lanes, int held, const SlidingProducts& products,
             const WeightData& from)
      : form_(form),
        layout_(form, lanes),
        lanes_(lanes),
        held_(held),
        products_(products),
        from_(from) {}

  template <class Plan>
  void set_layer(const BoundSliding<Plan>& bound) {
    operands_ = bound.operands;
    in_bytes_ = !bound.plan.form.has_words();
    channels_ = bound.plan.geometry.group_channels();
    taps_ = bound.plan.rows.kernel * bound.plan.columns.kernel;
    channel_step_ = bound.plan.slices * taps_;
    end_ = from_.weights + bound.plan.geometry.out_channels * channels_ * channel_step_;
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
    taken_off_all_ = all_of(taken_off_);
    flip_all_ = operands_.w_is_signed ? all_of(0x80) : 0;
    sum_ = 0;
    if (form_.parts == 0) {
      to = in_bytes_ ? pack_rows_of_bytes(to) : pack_rows_of_words(to);
    } else {
      for (int row = 0; row < form_.rows; ++row) to = pack_row_of_group(row, to);
    }
    if (in_bytes_) pack_zero_points(to);
    const int64_t flip = operands_.w_is_signed ? 128 : 0;
    return static_cast<int32_t>(sum_ - channels_ * taps_ * (zero_point_ + flip));
  }

 private:
  int32_t weight_of(std::byte byte) const { return number_of(byte, operands_.w_is_signed); }

  /// The rows of one channel: bytes as they are multiplied. For weights that calls bring this takes
  /// as long as a small layer itself: other cases are kept out of the code.
  int32_t* pack_rows_of_bytes(int32_t* to) {
    const int columns = form_.columns;
    const std::byte* row = filter_;
    Bytes pairs = 0;  // of 32 times 8 bytes at the most
    for (int rows = form_.rows; rows > 0; --rows, row += columns) {
      for (int first = 0; first < columns; first += taps_at_once) {
        const int count = std::min(columns - first, taps_at_once);
        const Bytes taps = load(row + first, count);
        pairs += pairs_of(unsigned_bytes(taps, count));
        to = layout_.put_bytes(first, less_zero_point(taps, count), to);
      }
      if (splits_last_) to[-1] = split(weight_of(row[columns - 1]) - zero_point_);
    }
    sum_ = sum_of_words(pairs);
    return to;
  }

  [[gnu::noinline]] int32_t* pack_rows_of_words(int32_t* to) {
    const std::byte* row = filter_;
    for (int rows = form_.rows; rows > 0; --rows, row += form_.columns) {
      for (int first = 0; first < form_.columns; first += taps_at_once) {
        const int count = std::min(form_.columns - first, taps_at_once);
        const Bytes taps = load(row + first, count);
        add_to_sum(taps, count);
        to = layout_.put_words(first, words_of(taps, count), to);
      }
    }
    return to;
  }

  /// At least so many bytes.
  Bytes load(const std::byte* from, int count) const {
    Bytes bytes = 0;
    const bool has_all = end_ - from >= taps_at_once;
    has_all ? std::memcpy(&bytes, from, taps_at_once)
            : std::memcpy(&bytes, from, static_cast<size_t>(count));
    return bytes;
  }

  Bytes unsigned_bytes(Bytes bytes, int64_t count) const {
    return (bytes ^ flip_all_) & bits_of(count);
  }
  void add_to_sum(Bytes bytes, int64_t count) {
    sum_ += sum_of_words(pairs_of(unsigned_bytes(bytes, count)));
  }
  /// Less what is taken off, all bytes at the same time.
  Bytes less_zero_point(Bytes bytes, int64_t count) const {
    return difference_of_bytes(bytes, taken_off_all_) & bits_of(count);
  }

  Words words_of(Bytes bytes, int count) const {
    Words words = {};
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      words[i] = weight_of(static_cast<std::byte>(bytes >> (8 * i) & 0xff)) - taken_off_;
    }
    return words;
  }

  /// By column, then by part.
  [[gnu::noinline]] int32_t* pack_row_of_group(int row, int32_t* to) {
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

  /// Weights of up to four channels.
  int32_t bytes_of_channels(const std::byte* from, int64_t count) {
    const auto byte = [&](int i) {
      return std::to_integer<Bytes>(from[i * channel_step_]) << (8 * i);
    };
    Bytes bytes = byte(0);
    if (count == 4) {
      bytes |= byte(1) | byte(2) | byte(3);
    } else {
      for (int i = 1; i < count; ++i) bytes |= byte(i);
    }
    add_to_sum(bytes, count);
    return static_cast<int32_t>(static_cast<uint32_t>(less_zero_point(bytes, count)));
  }

  int32_t words_of_channels(const std::byte* from, int64_t count) {
    Bytes bytes = std::to_integer<Bytes>(from[0]);
    if (count > 1) bytes |= std::to_integer<Bytes>(from[channel_step_]) << 8;
    add_to_sum(bytes, count);
    const Words words = words_of(bytes, static_cast<int>(count));
    return pair_of(words[0], words[1]);
  }

  /// What is left of the zero point, in the bytes of taps that there are.
  void pack_zero_points(int32_t* to) const {
    const Bytes all = all_of(zero_point_ - taken_off_);
    if (form_.parts == 0) {
      for (int first = 0; first < form_.columns; first += taps_at_once) {
        const int count = std::min(form_.columns - first, taps_at_once);
        to = layout_.put_bytes(first, all & bits_of(count), to);
      }
      return;
    }
    for (int64_t first = 0; first < channels_; first += held_, to += lanes_) {
      const int64_t count = std::min<int64_t>(channels_ - first, held_);
      *to = static_cast<int32_t>(static_cast<uint32_t>(all & bits_of(count)));
    }
  }

  const GroupedNhwcForm& form_;
  const RowLayout layout_;
  const int64_t lanes_;
  const int held_;
  const SlidingProducts& products_;
  const WeightData& from_;
  ConvolutionOperands operands_;
  bool in_bytes_ = true;
  bool splits_last_ = false;
  int64_t channels_ = 1;            ///< of a group
  int64_t taps_ = 0;                ///< of a slice
  int64_t channel_step_ = 0;        ///< from a channel of a group to the next: all slices
  const std::byte* end_ = nullptr;  ///< of all weights
  const std::byte* filter_ = nullptr;
  int32_t zero_point_ = 0;
  int32_t taken_off_ = 0;
  // No stores of dwords alias these.
  Bytes taken_off_all_ = 0;
  Bytes flip_all_ = 0;  ///< makes unsigned bytes
  int64_t sum_ = 0;     ///< of these
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
  const int64_t outputs_;   ///< output channels of a group
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

void pack_weights(const BoundDepthwise& bound, const SlidingProducts& products,
                  const WeightData& from, const PackedPanels<int32_t>& to) {
  const jit::DepthwisePlan& plan = bound.plan;
  const GroupedNhwcForm one_output = {.rows = plan.form.rows,
                                      .columns = static_cast<int>(plan.columns.kernel)};
  LanePacker packer(one_output, 1, 1, products, from);
  packer.set_layer(bound);
  if (products.subtracts_window_sums && !products.signed_input && plan.form.repeats_last_tap) {
    packer.split_last_tap();
  }
  const size_t panel_size = panel_dwords(plan);
  int32_t* panel = to.panels.data();
  int32_t* sum = to.sums.data();
  for (int64_t slice = 0; slice < plan.slices; ++slice) {
    for (int64_t m = 0; m < plan.geometry.out_channels; ++m, panel += panel_size) {
      *sum++ = packer.pack(slice, m, panel);
    }
  }
}

void pack_weights(const BoundGroupedNhwc& bound, const SlidingProducts& products,
                  const WeightData& from, const PackedPanels<int32_t>& to) {
  const jit::GroupedNhwcPlan& plan = bound.plan;
  LanePacker packer(plan.form, plan.lanes, plan.held, products, from);
  packer.set_layer(bound);
  OrderPacker orders(bound);
  const size_t panel_size = panel_dwords(plan);
  std::ranges::fill(to.panels, 0);
  int32_t* panel = to.panels.data();
  for (int64_t slice = 0; slice < plan.slices; ++slice) {
    int32_t* sums = to.sums.data() + slice * plan.geometry.out_channels;
    for (const jit::NhwcVector& vector : plan.vectors) {
      orders.pack(vector, panel);
      int32_t* weights = panel + plan.form.orders() * plan.lanes;
      for (int lane = 0; lane < vector.channels(); ++lane) {
        const int64_t m = vector.channel + lane;
        sums[m] = packer.pack(slice, m, weights + lane);
      }
      panel += panel_size;
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
