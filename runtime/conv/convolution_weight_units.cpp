// SPDX-License-Identifier: Apache-2.0
// Packing of weights by generated code.
#include <array>
#include <cstring>

#include "runtime/conv/packed_tiles.hpp"

namespace castor::detail {

namespace {

/// Packs sixteen output channels at a time by generated code. What it would read from behind the
/// weights, or what is no whole unit, is copied first.
class UnitPacker {
 public:
  UnitPacker(const jit::ConvPlan& plan, const MovementCode& code, const std::byte* w,
             bool is_signed, const DenseWeights<int32_t>& to)
      : plan_(plan),
        code_(code),
        extents_(weight_extents(plan)),
        units_(weight_units(extents_)),
        w_(w),
        flip_(flip_of(is_signed)),
        to_(to) {}

  void pack() const {
    for_each_tile(plan_, to_.dwords.data(), [&](const PackedTile& tile) { clear_rest(tile); });
    pack_range(0, plan_.geometry.out_channels);
  }

  void pack_tile(const PackedTile& tile) const {
    clear_rest(tile);
    pack_range(tile.first, tile.first + tile.channels);
  }

 private:
  static constexpr int64_t rows = jit::WeightUnit::channels;  ///< output channels

  /// The rest of a tile from a row on, or a part of it.
  struct Piece {
    int32_t* to = nullptr;  ///< tap 0, first row
    int64_t width = 0;
    int64_t first = 0;  ///< row
    int64_t count = 0;
  };
  /// One call's rows, and what is done with all of them.
  struct Rows {
    int64_t first = 0;  ///< output channel
    int64_t count = 0;
    std::array<Piece, rows> pieces = {};
    size_t piece_count = 0;
    std::array<jit::WeightSegment, rows> segments = {};
    alignas(64) std::array<int32_t, rows> sums = {};
  };
  /// Units at the same positions of the filter.
  struct Line {
    const jit::WeightUnit& unit;
    const KernelCode<jit::WeightUnit>& code;
    int64_t slice;
    int64_t position;  ///< in the slice
  };

  /// Lanes without a channel hold zeros.
  void clear_rest(const PackedTile& tile) const {
    if (tile.width == tile.channels) return;
    std::fill_n(tile.to, tile.width * plan_.k_steps(), 0);
  }

  /// Rows from `begin` to `end`, where tiles begin and end.
  void pack_range(int64_t begin, int64_t end) const {
    const int64_t outputs = plan_.geometry.out_channels;
    for (int64_t m = begin; m < end;) {
      // The last ones of all overlap the ones before them.
      const int64_t first = std::max<int64_t>(std::min(m, outputs - rows), 0);
      m = pack_rows(first, std::min(outputs, rows), end);
    }
  }

  /// Rows from `first` on, as many as are in whole tiles in front of `end`, if any are; gives the
  /// row behind them.
  int64_t pack_rows(int64_t first, int64_t count, int64_t end) const {
    Rows of = {.first = first, .count = count};
    int64_t packed = 0;
    while (packed < count && first + packed < end) {
      const PackedTile tile = tile_of(plan_, first + packed, to_.dwords.data());
      const int64_t in_tile = first + packed - tile.first;
      const int64_t here = std::min(count - packed, tile.channels - in_tile);
      const bool is_whole = here == tile.channels || in_tile > 0 || tile.channels > rows;
      if (packed > 0 && !is_whole) break;
      of.pieces[of.piece_count++] = {tile.to + in_tile, tile.width, packed, here};
      packed += here;
    }
    for (int64_t slice = 0; slice < extents_.slices; ++slice) {
      for (int64_t i = 0; i < units_.count; ++i) {
        pack_line(of, {units_.whole, *code_.weights, slice, i * units_.whole.positions});
      }
      if (units_.last.positions == 0) continue;
      pack_line(
          of, {units_.last, *code_.last_weights, slice, extents_.in_slice - units_.last.positions});
    }
    std::copy_n(of.sums.begin(), packed, to_.sums.begin() + first);
    return first + packed;
  }

  void pack_line(Rows& of, const Line& line) const {
    set_segments(of, line);
    const int64_t inputs = inputs_of(line);
    int64_t unit = 0;
    if (of.count == rows) {
      const int64_t whole = std::min(extents_.channels / inputs, readable_units(of, line, inputs));
      if (whole > 0) call(of, line, 0, whole, inputs);
      unit = whole;
      const int64_t left = extents_.channels - unit * inputs;
      const bool is_rest = left > 0 && left < inputs && line.unit.parts == 1;
      if (is_rest && readable_units(of, line, left) > unit) call(of, line, unit++, 1, left);
    }
    for (; unit * inputs < extents_.channels; ++unit) pack_copy(of, line, unit);
  }

  static int64_t inputs_of(const Line& line) { return int64_t{4} * line.unit.parts; }

  void set_segments(Rows& of, const Line& line) const {
    for (size_t i = 0; i < of.piece_count; ++i) {
      const Piece& piece = of.pieces[i];
      const int64_t before = line.slice * extents_.dwords * extents_.in_slice + line.position;
      const int64_t slots = extents_.in_slice * line.unit.parts;  // from one unit to the next
      const int64_t step = 4 * piece.width;
      of.segments[i] = {
          .to = reinterpret_cast<uint64_t>(piece.to + before * piece.width) -
                static_cast<uint64_t>(4 * piece.first),
          .step = step,
          .skip = (slots - line.unit.slots()) * step,
          .lanes = ((uint64_t{1} << piece.count) - 1) << piece.first,
      };
    }
  }

  /// Packs units that have `inputs` input channels each. Segments have come to the first one.
  void call(Rows& of, const Line& line, int64_t unit, int64_t count, int64_t inputs) const {
    jit::WeightPacking packing;
    packing.source = source_of(of.first, line, unit);
    packing.channel_step = extents_.channels * extents_.positions();
    for (int64_t i = 1; i < 4; ++i)
      packing.inputs[i - 1] = std::min(i, inputs - 1) * extents_.positions();
    packing.unit_step = inputs_of(line) * extents_.positions();
    packing.units = count;
    packing.segments = of.segments.data();
    packing.segment_count = static_cast<int64_t>(of.piece_count);
    packing.sums = of.sums.data();
    packing.flips = flip_ * 0x01010101u;
    packing.kept = inputs < 4 ? 0xffffffffu >> (8 * (4 - inputs)) : 0xffffffffu;
    line.code.call(&packing);
  }

  /// The first weight of an output channel's unit.
  const std::byte* source_of(int64_t m, const Line& line, int64_t unit) const {
    return w_ + (m * extents_.channels + unit * inputs_of(line)) * extents_.positions() +
           line.slice * extents_.in_slice + line.position;
  }

  /// Units from the first on of which the code reads nothing behind the weights.
  int64_t readable_units(const Rows& of, const Line& line, int64_t inputs) const {
    const std::byte* end =
        w_ + plan_.geometry.out_channels * extents_.channels * extents_.positions();
    const int64_t left = end - source_of(of.first + rows - 1, line, 0);
    const int64_t last_input = line.unit.is_one_vector() ? 0 : std::min<int64_t>(inputs, 4) - 1;
    const int64_t read = last_input * extents_.positions() + jit::bytes_read(line.unit);
    return left < read ? 0 : (left - read) / (inputs_of(line) * extents_.positions()) + 1;
  }

  /// Packs a copy of one unit, with zeros for channels that are not there, to a place of its own,
  /// and copies from there what there is.
  void pack_copy(Rows& of, const Line& line, int64_t unit) const {
    constexpr int64_t row_bytes = 64;
    constexpr int64_t lanes = rows;
    std::array<std::byte, rows * row_bytes> source;
    alignas(64) std::array<int32_t, jit::WeightUnit::max_slots * lanes> packed;
    source.fill(std::byte{flip_});
    const int64_t inputs = std::min(inputs_of(line), extents_.channels - unit * inputs_of(line));
    for (int64_t row = 0; row < of.count; ++row) {
      copy_unit(line, source_of(of.first + row, line, unit), inputs,
                source.data() + row * row_bytes);
    }
    jit::WeightSegment all = {.to = reinterpret_cast<uint64_t>(packed.data()),
                              .step = 4 * lanes,
                              .skip = 0,
                              .lanes = 0xffff};
    jit::WeightPacking packing;
    packing.source = source.data();
    packing.channel_step = row_bytes;
    for (int64_t i = 1; i < 4; ++i) packing.inputs[i - 1] = i * row_bytes / 4;
    packing.units = 1;
    packing.segments = &all;
    packing.segment_count = 1;
    packing.sums = of.sums.data();
    packing.flips = flip_ * 0x01010101u;
    packing.kept = 0xffffffff;
    line.code.call(&packing);
    const int64_t parts =
        std::min<int64_t>(line.unit.parts, extents_.dwords - unit * line.unit.parts);
    const int64_t before =
        (line.slice * extents_.dwords + unit * line.unit.parts) * extents_.in_slice;
    for (size_t i = 0; i < of.piece_count; ++i) {
      const Piece& piece = of.pieces[i];
      int32_t* to = piece.to + (before + line.position) * piece.width;
      for (int64_t slot = 0; slot < parts * line.unit.positions; ++slot) {
        std::copy_n(packed.data() + slot * lanes + piece.first, piece.count,
                    to + slot * piece.width);
      }
    }
  }

  /// The weights of one output channel as the code reads a unit.
  void copy_unit(const Line& line, const std::byte* from, int64_t inputs, std::byte* to) const {
    const auto positions = static_cast<size_t>(line.unit.positions);
    if (line.unit.positions == extents_.positions()) {
      std::memcpy(to, from, positions * static_cast<size_t>(inputs));
      return;
    }
    const int64_t step = line.unit.is_one_vector() ? line.unit.input_step : 16;
    for (int64_t i = 0; i < inputs; ++i) {
      std::memcpy(to + i * step, from + i * extents_.positions(), positions);
    }
  }

  const jit::ConvPlan& plan_;
  const MovementCode& code_;
  const WeightExtents extents_;
  const WeightUnits units_;
  const std::byte* w_;
  const uint8_t flip_;
  const DenseWeights<int32_t>& to_;
};

}  // namespace

void pack_weight_units(const jit::ConvPlan& plan, const MovementCode& code, const std::byte* w,
                       bool is_signed, const PackedTile& tile, const DenseWeights<int32_t>& to) {
  UnitPacker(plan, code, w, is_signed, to).pack_tile(tile);
}

void pack_weight_units(const jit::ConvPlan& plan, const MovementCode& code, const std::byte* w,
                       bool is_signed, const DenseWeights<int32_t>& to) {
  UnitPacker(plan, code, w, is_signed, to).pack();
}

}  // namespace castor::detail
