// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/pack_weights.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/conv/interleave.hpp"

namespace castor::detail {

namespace {

/// The weights of one output channel as packing sees them. K steps that list weights in their
/// order in memory make a filter of one position with more input channels.
struct WeightExtents {
  int64_t channels = 0;  ///< of input
  int64_t k_groups = 0;  ///< of channels
  int64_t slices = 1;
  int64_t in_slice = 1;    ///< positions along the last two axes
  bool is_listed = false;  ///< in an order of their own

  int64_t positions() const { return slices * in_slice; }
  int64_t weights() const { return channels * positions(); }
};

/// Whether listed k steps take adjacent weights; the last one may have too few.
bool are_in_order(const jit::DensePlan& plan, int64_t weights) {
  const int held = jit::channels_of_k_group(plan.engine);
  int64_t next = 0;
  for (const jit::KStepWeights& k_step : plan.k_step_weights) {
    for (int i = 0; i < held; ++i, ++next) {
      if (k_step[static_cast<size_t>(i)] != (next < weights ? next : -1)) return false;
    }
  }
  return true;
}

WeightExtents weight_extents(const jit::DensePlan& plan) {
  WeightExtents extents = {.channels = plan.geometry.group_channels(),
                           .k_groups = plan.k_groups,
                           .slices = plan.slices,
                           .in_slice = plan.rows.kernel * plan.columns.kernel};
  if (plan.k_step_weights.empty()) return extents;
  extents.is_listed = !are_in_order(plan, extents.weights());
  if (extents.is_listed) return extents;
  return {.channels = extents.weights(), .k_groups = plan.k_step_count()};
}

/// How weights are cut into units: along the positions of large filters, else along the k groups.
struct WeightUnits {
  jit::WeightUnit whole;
  jit::WeightUnit last;  ///< of what whole units leave; has no slots where that is nothing
};

WeightUnits weight_units(const WeightExtents& extents) {
  constexpr int max = jit::WeightUnit::max_slots;
  constexpr int64_t vector_bytes = 64;
  if (extents.in_slice > max) {
    return {{.positions = max}, {.positions = static_cast<int>(extents.in_slice % max)}};
  }
  WeightUnits units;
  units.whole.positions = static_cast<int>(extents.in_slice);
  if (extents.slices == 1) {
    units.whole.k_groups = static_cast<int>(std::min(max / extents.in_slice, extents.k_groups));
    units.whole.input_step = units.whole.positions;
  } else if (3 * extents.positions() + extents.in_slice <= vector_bytes) {
    units.whole.input_step = static_cast<int>(extents.positions());
  }
  units.last = units.whole;
  units.last.k_groups = static_cast<int>(extents.k_groups % units.whole.k_groups);
  return units;
}

/// One channel tile, and where it is packed.
struct PackedTile {
  int64_t first = 0;  ///< output channel, of all
  int64_t channels = 0;
  int64_t width = 0;  ///< dwords from one k step to the next
  int32_t* to = nullptr;
  int32_t* sums = nullptr;
};

/// What both packers read.
struct Packing {
  const jit::DensePlan& plan;
  const WeightInput& input;
  WeightExtents extents = weight_extents(plan);

  /// Makes 8-bit weights signed.
  uint8_t flip() const { return input.is_signed ? 0 : 0x80; }
  const std::byte* weights_of(int64_t m) const { return input.w + m * extents.weights(); }
};

/// Packs a tile by loops: k groups of each output channel, then they are transposed.
class LoopPacker {
 public:
  explicit LoopPacker(const Packing& packing)
      : packing_(packing), plan_(packing.plan), extents_(packing.extents) {}

  void pack(const PackedTile& tile) const {
    const int64_t steps = plan_.k_step_count();
    const int64_t in_slice = extents_.in_slice;
    const int64_t at_once = in_slice < max_steps ? max_steps / in_slice * in_slice : max_steps;
    std::array<uint32_t, max_rows * max_steps> dwords;
    for (int64_t row = 0; row < tile.width; row += max_rows) {
      const int64_t rows = std::min(tile.width - row, max_rows);
      for (int64_t step = 0; step < steps; step += at_once) {
        const int64_t count = std::min(steps - step, at_once);
        const KStep first = {step / in_slice / extents_.k_groups,
                             step / in_slice % extents_.k_groups, step % in_slice};
        for (int64_t i = 0; i < rows; ++i) {
          uint32_t* to = dwords.data() + i * max_steps;
          if (row + i >= tile.channels) {
            std::fill_n(to, count, 0);
          } else if (extents_.is_listed) {
            pack_listed(tile.first + row + i, step, count, to);
          } else {
            pack_channel(tile.first + row + i, first, count, to);
          }
        }
        transpose_dwords(reinterpret_cast<const int32_t*>(dwords.data()), max_steps, rows, count,
                         tile.to + step * tile.width + row, tile.width);
      }
    }
    if (plan_.engine != jit::ProductEngine::u8_i8_dot) return;
    for (int64_t i = 0; i < tile.channels; ++i) tile.sums[i] = sum(tile.first + i);
  }

 private:
  static constexpr int64_t max_rows = 16;  ///< output channels
  static constexpr int64_t max_steps = 64;

  /// One k step of a filter.
  struct KStep {
    int64_t slice;
    int64_t k_group;
    int64_t position;  ///< in the slice
  };

  /// The sum of an output channel's weights, as the kernel multiplies them: unsigned ones less 128.
  int32_t sum(int64_t m) const {
    const int64_t count = extents_.weights();
    const uint8_t to_unsigned = packing_.flip() ^ 0x80;
    const uint32_t shifted = sum_of_bytes(packing_.weights_of(m), count, to_unsigned);
    return static_cast<int32_t>(shifted - static_cast<uint32_t>(count) * 128);
  }

  /// Output channel `m` at `count` k steps.
  void pack_channel(int64_t m, const KStep& step, int64_t count, uint32_t* to) const {
    const int64_t held = jit::channels_of_k_group(plan_.engine);
    const int64_t in_slice = extents_.in_slice;
    const bool is_one_position = extents_.positions() == 1;  // then channels are adjacent
    const bool has_filters = extents_.slices == 1 && plan_.engine == jit::ProductEngine::u8_i8_dot;
    auto [slice, k_group, position] = step;
    for (int64_t here = 0; count > 0; count -= here, to += here) {
      const int64_t channel = k_group * held;
      const int64_t channels = std::min(held, extents_.channels - channel);
      const std::byte* from =
          packing_.weights_of(m) + channel * extents_.positions() + slice * in_slice + position;
      DwordSource source = {.step = is_one_position ? held : 1};
      for (int64_t i = 0; i < channels; ++i) source.channels[i] = from + i * extents_.positions();
      const int64_t whole =
          position == 0 ? std::min(count / in_slice, extents_.channels / held - k_group) : 0;
      if (whole > 0 && (is_one_position || has_filters)) {
        here = whole * in_slice;
        k_group += whole;
        is_one_position ? interleave(m, source, held, here, to)
                        : interleave_filters(from, in_slice, packing_.flip(), whole, to);
        continue;
      }
      here = std::min(count, in_slice - position);
      interleave(m, source, channels, here, to);
      position += here;
      if (position < in_slice) continue;
      position = 0;
      if (++k_group < extents_.k_groups) continue;
      k_group = 0;
      ++slice;
    }
  }

  void interleave(int64_t m, const DwordSource& source, int64_t channels, int64_t count,
                  uint32_t* to) const {
    if (plan_.engine == jit::ProductEngine::i16_pairs) {
      interleave_words(source, packing_.input.is_signed, packing_.input.zero_points[m], count, to);
    } else {
      interleave_bytes(source, packing_.flip(), count, to);
    }
    const int64_t held = jit::channels_of_k_group(plan_.engine);
    const uint32_t kept = 0xffffffffu >> (32 / held * (held - channels));
    if (channels < held) std::for_each_n(to, count, [&](uint32_t& k_group) { k_group &= kept; });
  }

  void pack_listed(int64_t m, int64_t step, int64_t count, uint32_t* to) const {
    for (int64_t i = 0; i < count; ++i) {
      const jit::KStepWeights& offsets = plan_.k_step_weights[static_cast<size_t>(step + i)];
      DwordSource source;
      int64_t channels = 0;
      for (; channels < jit::channels_of_k_group(plan_.engine); ++channels) {
        const int32_t offset = offsets[static_cast<size_t>(channels)];
        if (offset < 0) break;
        source.channels[channels] = packing_.weights_of(m) + offset;
      }
      interleave(m, source, channels, 1, to + i);
    }
  }

  const Packing& packing_;
  const jit::DensePlan& plan_;
  const WeightExtents& extents_;
};

/// Packs sixteen output channels at a time by generated code. What it would read from past the
/// weights, or what is no whole unit, is copied first.
class UnitPacker {
 public:
  UnitPacker(const Packing& packing, const WeightPackers& code)
      : packing_(packing),
        extents_(packing.extents),
        units_(weight_units(packing.extents)),
        code_(code) {}

  void pack(const PackedTile& tile) const {
    if (tile.width > tile.channels) {  // lanes without a channel hold zeros
      std::fill_n(tile.to, tile.width * packing_.plan.k_step_count(), 0);
    }
    const int64_t outputs = packing_.plan.geometry.out_channels;
    for (int64_t row = 0; row < tile.channels; row += rows) {
      // The last ones of all overlap the ones before them.
      const int64_t m = tile.first + row;
      const int64_t first = std::max<int64_t>(std::min(m, outputs - rows), 0);
      const int64_t stored = std::min(tile.channels - row, rows);
      Rows of = {
          .first = first,
          .count = std::min(outputs, rows),
          .to = reinterpret_cast<uint64_t>(tile.to + row) - static_cast<uint64_t>(4 * (m - first)),
          .step = 4 * tile.width,
          .stored = ((uint64_t{1} << stored) - 1) << (m - first)};
      pack_rows(of);
      std::copy_n(of.sums.begin() + (m - first), stored, tile.sums + row);
    }
  }

 private:
  static constexpr int64_t rows = jit::WeightUnit::channels;  ///< output channels
  static constexpr int64_t row_bytes = 64;                    ///< of copies

  /// Output channels that are packed at once.
  struct Rows {
    int64_t first = 0;    ///< output channel
    int64_t count = 0;    ///< that there are
    uint64_t to = 0;      ///< address of the first row's k group at k step 0, stored or not
    int64_t step = 0;     ///< bytes from one k step to the next
    uint64_t stored = 0;  ///< a bit for each row that is in the tile
    alignas(64) std::array<int32_t, rows> sums = {};
  };
  /// Units at the same positions of the filter.
  struct Line {
    const jit::WeightUnit& unit;
    const KernelCode<jit::WeightUnit>& code;
    int64_t slice;
    int64_t position;  ///< in the slice
    int64_t k_group;   ///< the first one
    int64_t end;       ///< k group after the last one
    int64_t inputs() const { return int64_t{4} * unit.k_groups; }
  };
  /// Where the code reads units.
  struct Source {
    const std::byte* first;
    int64_t channel_step;  ///< bytes from one output channel to the next
    int64_t input_step;    ///< bytes from one input channel to the next
  };

  void pack_rows(Rows& of) const {
    const int64_t in_slice = extents_.in_slice;
    const int64_t k_groups = extents_.k_groups;
    const bool has_last = units_.last.slots() > 0;
    for (int64_t slice = 0; slice < extents_.slices; ++slice) {
      const int64_t positions = units_.whole.positions;
      const int64_t whole = k_groups / units_.whole.k_groups * units_.whole.k_groups;
      for (int64_t at = 0; at + positions <= in_slice; at += positions) {
        pack_line(of, {units_.whole, *code_.whole, slice, at, 0, whole});
      }
      if (has_last && units_.last.positions < positions) {
        const int64_t at = in_slice - units_.last.positions;
        pack_line(of, {units_.last, *code_.last, slice, at, 0, k_groups});
      } else if (has_last) {
        pack_line(of, {units_.last, *code_.last, slice, 0, whole, k_groups});
      }
    }
  }

  void pack_line(Rows& of, const Line& line) const {
    const int64_t inputs = line.inputs();
    const int64_t channels = std::min(4 * line.end, extents_.channels) - 4 * line.k_group;
    const int64_t readable = of.count == rows ? readable_units(of, line) : 0;
    int64_t unit = std::min(channels / inputs, readable);
    if (unit > 0) call(of, line, source_of(of, line, 0), 0, unit);
    for (; unit * inputs < channels; ++unit) {
      pack_copy(of, line, unit, std::min(inputs, channels - unit * inputs));
    }
  }

  /// Packs units one after the other, from `unit` on.
  void call(Rows& of, const Line& line, const Source& from, int64_t unit, int64_t count) const {
    const int64_t slots = extents_.in_slice * line.unit.k_groups;  // from one unit to the next
    const int64_t before =
        (line.slice * extents_.k_groups + line.k_group) * extents_.in_slice + line.position;
    jit::WeightPacking packing;
    packing.source = from.first;
    packing.channel_step = from.channel_step;
    for (int64_t i = 1; i < 4; ++i) packing.inputs[i - 1] = i * from.input_step;
    packing.unit_step = line.inputs() * from.input_step;
    packing.units = count;
    packing.to = of.to + static_cast<uint64_t>((before + unit * slots) * of.step);
    packing.step = of.step;
    packing.skip = (slots - line.unit.slots()) * of.step;
    packing.lanes = of.stored;
    packing.sums = of.sums.data();
    packing.flips = packing_.flip() * 0x01010101u;
    line.code.call(&packing);
  }

  Source source_of(const Rows& of, const Line& line, int64_t unit) const {
    const int64_t channel = 4 * line.k_group + unit * line.inputs();
    const int64_t position = line.slice * extents_.in_slice + line.position;
    return {packing_.weights_of(of.first) + channel * extents_.positions() + position,
            extents_.weights(), extents_.positions()};
  }

  /// Units from the first on of which the code reads nothing past the weights.
  int64_t readable_units(const Rows& of, const Line& line) const {
    const Source from = source_of(of, line, 0);
    const std::byte* end = packing_.weights_of(packing_.plan.geometry.out_channels);
    const int64_t left = end - from.first - (rows - 1) * from.channel_step;
    const int64_t last_input = line.unit.is_one_vector() ? 0 : 3;
    const int64_t read = last_input * from.input_step + line.unit.bytes_read();
    return left < read ? 0 : (left - read) / (line.inputs() * from.input_step) + 1;
  }

  /// Packs a copy of one unit, with zeros for all but its first `inputs` channels.
  void pack_copy(Rows& of, const Line& line, int64_t unit, int64_t inputs) const {
    const Source from = source_of(of, line, unit);
    std::array<std::byte, rows * row_bytes> copy;
    copy.fill(std::byte{packing_.flip()});
    const int64_t step = line.unit.is_one_vector() ? line.unit.input_step : row_bytes / 4;
    const bool is_adjacent = step == from.input_step;
    const int64_t pieces = is_adjacent ? 1 : inputs;
    const auto bytes = static_cast<size_t>(is_adjacent ? (inputs - 1) * step : 0) +
                       static_cast<size_t>(line.unit.positions);
    for (int64_t row = 0; row < of.count; ++row) {
      for (int64_t i = 0; i < pieces; ++i) {
        std::memcpy(copy.data() + row * row_bytes + i * step,
                    from.first + row * from.channel_step + i * from.input_step, bytes);
      }
    }
    call(of, line, {copy.data(), row_bytes, step}, unit, 1);
  }

  const Packing& packing_;
  const WeightExtents& extents_;
  const WeightUnits units_;
  const WeightPackers& code_;
};

void pack_tile(const Packing& packing, const WeightPackers& code, const PackedTile& tile) {
  if (code.whole == nullptr) return LoopPacker(packing).pack(tile);
  UnitPacker(packing, code).pack(tile);
}

/// The tile of a group, packed to `to`, its sums to `sums`.
PackedTile tile_of(const jit::DensePlan& plan, int64_t group, int64_t tile, int32_t* to,
                   int32_t* sums) {
  const bool is_last = tile + 1 == plan.channel_tiles;
  const int channels = is_last ? plan.last_channels() : plan.tile.channels;
  return {.first = group * plan.geometry.group_out_channels() + tile * plan.tile.channels,
          .channels = channels,
          .width = plan.packed_width(channels),
          .to = to,
          .sums = sums};
}

}  // namespace

Result<WeightPackers> find_weight_packers(const jit::DensePlan& plan, const jit::Target& target,
                                          CodeCache& cache) {
  WeightPackers found;
  const WeightExtents extents = weight_extents(plan);
  if (plan.engine != jit::ProductEngine::u8_i8_dot || extents.is_listed) return found;
  const auto find = [&](const jit::WeightUnit& unit, KernelCodePtr<jit::WeightUnit>& to) -> Status {
    if (!fits(unit, target)) return {};
    auto code = cache.get(unit, target);
    if (!code.ok()) return code.error();
    to = std::move(code).value();
    return {};
  };
  const WeightUnits units = weight_units(extents);
  if (Status status = find(units.whole, found.whole); !status) return status.error();
  if (Status status = find(units.last, found.last); !status) return status.error();
  return found;
}

size_t packed_dwords(const jit::DensePlan& plan) {
  return static_cast<size_t>(plan.geometry.groups * plan.packed_group_width() *
                             plan.k_step_count());
}

int64_t tile_dwords(const jit::DensePlan& plan) {
  return plan.packed_width(plan.tile.channels) * plan.k_step_count();
}

int64_t packed_tile(const jit::DensePlan& plan, int64_t group, int64_t tile) {
  return group * plan.packed_group_width() * plan.k_step_count() + tile * tile_dwords(plan);
}

void pack_weights(const jit::DensePlan& plan, const WeightPackers& code, const WeightInput& input,
                  const DenseWeights<int32_t>& to) {
  const Packing packing = {plan, input};
  int32_t* sums = to.sums.data();
  for (int64_t group = 0; group < plan.geometry.groups; ++group) {
    for (int64_t i = 0; i < plan.channel_tiles; ++i) {
      int32_t* dwords = to.dwords.data() + packed_tile(plan, group, i);
      const PackedTile tile = tile_of(plan, group, i, dwords, sums);
      pack_tile(packing, code, tile);
      sums += tile.channels;
    }
  }
}

void pack_weight_tile(const jit::DensePlan& plan, const WeightPackers& code,
                      const WeightInput& input, int64_t group, int64_t tile, int32_t* to,
                      int32_t* sums) {
  pack_tile({plan, input}, code, tile_of(plan, group, tile, to, sums));
}

}  // namespace castor::detail
