// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/pack_weights.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "runtime/conv/interleave.hpp"

namespace castor::detail {

namespace {

using jit::PackWeights;
using jit::PackWeightsArguments;

constexpr int64_t rows = PackWeights::channels;  ///< output channels that are packed at once
constexpr int64_t max_loop_slots = 64;           ///< of a unit that loops pack
constexpr int64_t max_shared_k_steps = 128;      ///< of tiles that are packed together
constexpr int64_t vector_bytes = 64;

WeightExtents weight_extents(const jit::DensePlan& plan) {
  const WeightExtents extents = {.channels = plan.geometry.group_channels(),
                                 .k_groups = plan.k_groups,
                                 .slices = plan.slices,
                                 .in_slice = plan.rows.kernel * plan.columns.kernel};
  if (plan.k_step_weights.empty()) return extents;
  const int64_t weights = extents.channels * extents.positions();
  return {.channels = weights,
          .k_groups = plan.weight_k_groups(),
          .is_listed = !plan.has_weights_in_order()};
}

/// Sets the specs of units of at most that many slots.
void set_units(WeightPackers& packers, int64_t max) {
  const WeightExtents& extents = packers.extents;
  const bool is_large = extents.in_slice > max;
  PackWeights& whole = packers.whole.spec;
  whole.positions = static_cast<int>(std::min(extents.in_slice, max));
  if (!is_large && extents.slices == 1) {
    whole.k_groups = static_cast<int>(std::min(max / extents.in_slice, extents.k_groups));
    whole.input_step = whole.positions;
  } else if (3 * extents.positions() + extents.in_slice <= vector_bytes) {
    whole.input_step = static_cast<int>(extents.positions());
  }
  PackWeights& last = packers.last.spec = whole;
  if (is_large) {
    last.positions = static_cast<int>(extents.in_slice % max);
  } else {
    last.k_groups = static_cast<int>(extents.k_groups % whole.k_groups);
  }
}

/// Lists the ranges of units that make up an output channel.
void list_ranges(WeightPackers& packers, int64_t held) {
  const WeightExtents& extents = packers.extents;
  const PackWeights& whole = packers.whole.spec;
  const PackWeights& last = packers.last.spec;
  const auto add = [&](bool is_last, int64_t slice, int64_t position, int64_t k_group,
                       int64_t end) {
    const int64_t held_groups = is_last ? last.k_groups : whole.k_groups;
    const int64_t there = std::min(held * end, extents.channels) - held * k_group;
    packers.ranges.push_back(
        {.is_last = is_last,
         .count = (end - k_group) / held_groups,
         .whole = there / (held * held_groups),
         .channel = held * k_group,
         .position = slice * extents.in_slice + position,
         .k_step = (slice * extents.k_groups + k_group) * extents.in_slice + position});
  };
  const int64_t in_whole = extents.k_groups / whole.k_groups * whole.k_groups;
  for (int64_t slice = 0; slice < extents.slices; ++slice) {
    int64_t position = 0;
    for (; position + whole.positions <= extents.in_slice; position += whole.positions) {
      add(false, slice, position, 0, in_whole);
    }
    if (last.slots() == 0) continue;
    const int64_t at = extents.in_slice - last.positions;
    add(true, slice, at, at > 0 ? 0 : in_whole, extents.k_groups);
  }
}

/// Packs tiles, sixteen output channels at a time and unit by unit: by generated code, or by loops
/// that do the same.
class WeightPacker {
 public:
  WeightPacker(const jit::DensePlan& plan, const WeightPackers& packers, const WeightInput& input)
      : plan_(plan),
        packers_(packers),
        extents_(packers.extents),
        input_(input),
        held_(jit::channels_of_k_group(plan.engine)),
        weights_(extents_.channels * extents_.positions()) {}

  /// Packs a tile of a group to `to`, and the sums of its channels to `sums`.
  void pack_tile(int64_t group, int64_t tile, int32_t* to, int32_t* sums) const;
  /// Packs all tiles: output channels of several groups at once, whose columns are handed out.
  void pack_groups(const DenseWeights<int32_t>& to) const;

 private:
  /// Output channels that are packed at once.
  struct Rows {
    int64_t first = 0;    ///< output channel
    int64_t count = 0;    ///< that there are
    uint64_t to = 0;      ///< address of the first row's k group at k step 0, stored or not
    int64_t step = 0;     ///< bytes from one k step to the next
    uint64_t stored = 0;  ///< a bit for each row that is in the tile
    alignas(64) std::array<int32_t, rows> sums = {};

    int64_t first_stored() const { return std::countr_zero(stored); }
    int64_t stored_count() const { return std::popcount(stored); }
  };
  using Range = WeightPackers::Range;

  void pack_rows(int64_t m, int64_t count, int64_t width, int32_t* to, int32_t* sums) const;
  void add_up(Rows& of) const;
  void pack_range(Rows& of, const Range& range) const;
  int64_t units_in_place(const Rows& of, const Range& range) const;
  void pack_copy(Rows& of, const Range& range, int64_t unit) const;
  void copy_row(const std::byte* from, const Range& range, int64_t unit, int64_t input_step,
                std::byte* to) const;
  void call(Rows& of, const Range& range, PackWeightsArguments& arguments, int64_t unit) const;
  void pack_by_loops(const PackWeights& unit, const int32_t* zero_points,
                     const PackWeightsArguments& arguments) const;

  /// Makes 8-bit weights signed.
  uint8_t flip() const { return input_.is_signed || stays_unsigned() || has_pairs() ? 0 : 0x80; }
  bool stays_unsigned() const { return !input_.is_signed && keeps_signs(plan_.engine); }
  /// What k_group_spec takes: signed weights of pairs get 128 off.
  uint8_t k_group_flip() const { return has_pairs() && input_.is_signed ? 0x80 : flip(); }
  bool has_pairs() const { return plan_.engine == jit::ProductEngine::i16_pairs; }
  const WeightPackers::Unit& unit_of(const Range& range) const {
    return range.is_last ? packers_.last : packers_.whole;
  }
  /// Input channels of each unit.
  int64_t inputs_of(const Range& range) const { return held_ * unit_of(range).spec.k_groups; }
  const std::byte* weights_of(int64_t m) const { return input_.w + m * weights_; }
  /// The first weight of a unit of an output channel.
  const std::byte* weights_of(int64_t m, const Range& range, int64_t unit) const {
    const int64_t channel = range.channel + unit * inputs_of(range);
    return weights_of(m) + channel * extents_.positions() + range.position;
  }

  const jit::DensePlan& plan_;
  const WeightPackers& packers_;
  const WeightExtents& extents_;
  const WeightInput& input_;
  const int64_t held_;     ///< channels of a k group
  const int64_t weights_;  ///< of an output channel
};

void WeightPacker::pack_tile(int64_t group, int64_t tile, int32_t* to, int32_t* sums) const {
  const int channels = plan_.channels_of(tile);
  const int64_t width = plan_.packed_width(channels);
  if (width > channels) {  // lanes without a channel hold zeros
    std::fill_n(to, width * plan_.weight_k_groups(), 0);
  }
  const int64_t m = group * plan_.geometry.group_out_channels() + tile * plan_.tile.channels;
  for (int64_t row = 0; row < channels; row += rows) {
    pack_rows(m + row, std::min(channels - row, rows), width, to + row, sums + row);
  }
}

void WeightPacker::pack_groups(const DenseWeights<int32_t>& to) const {
  std::array<int32_t, rows * max_shared_k_steps> packed;
  const int64_t outputs = plan_.geometry.out_channels;
  const int64_t in_group = plan_.geometry.group_out_channels();
  const int64_t k_steps = plan_.weight_k_groups();
  int32_t* tile = to.k_groups.data();
  for (int64_t m = 0, width = 0; m < outputs; tile += width * k_steps) {
    width = plan_.channels_of((m % in_group) / plan_.tile.channels);
    for (int64_t channel = 0; channel < width; ++channel, ++m) {
      const int64_t row = m % rows;
      if (row == 0) {
        pack_rows(m, std::min(outputs - m, rows), rows, packed.data(), to.sums.data() + m);
      }
      for (int64_t k_step = 0; k_step < k_steps; ++k_step) {
        tile[k_step * width + channel] = packed[static_cast<size_t>(k_step * rows + row)];
      }
    }
  }
}

/// Packs at most sixteen output channels from that one on, to columns of a tile of that width.
void WeightPacker::pack_rows(int64_t m, int64_t count, int64_t width, int32_t* to,
                             int32_t* sums) const {
  const int64_t outputs = plan_.geometry.out_channels;
  // The last ones of all overlap the ones before them.
  const int64_t first = std::max<int64_t>(std::min(m, outputs - rows), 0);
  Rows of = {.first = first,
             .count = std::min(outputs, rows),
             .to = reinterpret_cast<uint64_t>(to) - static_cast<uint64_t>(4 * (m - first)),
             .step = 4 * width,
             .stored = ((uint64_t{1} << count) - 1) << (m - first)};
  for (const Range& range : packers_.ranges) pack_range(of, range);
  const bool code_adds_up = packers_.whole.code != nullptr && !stays_unsigned();
  const bool needs_sums = !subtracts_from_pixels(plan_);
  if (needs_sums && !code_adds_up) add_up(of);
  std::copy_n(of.sums.begin() + (m - first), count, sums);
}

/// The sums that code leaves: of weights as the kernel multiplies them, but for zero points that
/// i16 pairs are without.
void WeightPacker::add_up(Rows& of) const {
  for (int64_t row = of.first_stored(); row < of.first_stored() + of.stored_count(); ++row) {
    const uint8_t to_unsigned = input_.is_signed ? 0x80 : 0;
    const uint32_t sum = sum_of_bytes(weights_of(of.first + row), weights_, to_unsigned);
    const bool is_shifted = input_.is_signed || flip() != 0;
    const uint32_t shift = is_shifted ? static_cast<uint32_t>(weights_) * 128 : 0;
    of.sums[static_cast<size_t>(row)] = static_cast<int32_t>(sum - shift);
  }
}

/// What code would read from past the weights, or what is no whole unit, is copied first.
void WeightPacker::pack_range(Rows& of, const Range& range) const {
  const int64_t in_place = units_in_place(of, range);
  if (in_place > 0) {
    PackWeightsArguments arguments = {.source = weights_of(of.first, range, 0),
                                      .channel_step = weights_,
                                      .input_step = extents_.positions(),
                                      .units = in_place};
    call(of, range, arguments, 0);
  }
  for (int64_t unit = in_place; unit < range.count; ++unit) pack_copy(of, range, unit);
}

/// Units from the first on that are packed from where they are.
int64_t WeightPacker::units_in_place(const Rows& of, const Range& range) const {
  const auto& [spec, code] = unit_of(range);
  if (extents_.is_listed || (code != nullptr && of.count < rows)) return 0;
  const int64_t step = extents_.positions();
  const int64_t unit_step = inputs_of(range) * step;
  int64_t read = unit_step + interleave_slack;
  if (code != nullptr) read = (spec.is_one_vector() ? 0 : 3 * step) + spec.bytes_read();
  const int64_t left =
      weights_of(plan_.geometry.out_channels) - weights_of(of.first + of.count - 1, range, 0);
  int64_t units = range.whole;
  while (units > 0 && (units - 1) * unit_step + read > left) --units;
  return units;
}

/// Packs a copy of one unit, where weights that are not there are 0.
void WeightPacker::pack_copy(Rows& of, const Range& range, int64_t unit) const {
  const auto& [spec, code] = unit_of(range);
  const int64_t row_bytes = code != nullptr ? vector_bytes : 4 * max_loop_slots;
  const int64_t input_step = spec.is_one_vector() ? spec.input_step : row_bytes / 4;
  alignas(64) std::array<std::byte, rows * 4 * max_loop_slots + interleave_slack> copy;
  for (int64_t row = of.first_stored(); row < of.first_stored() + of.stored_count(); ++row) {
    const int64_t m = of.first + row;
    const int32_t zero = has_pairs() ? input_.zero_points[m] : flip();
    std::byte* to = copy.data() + row * row_bytes;
    std::fill_n(to, row_bytes, static_cast<std::byte>(zero));
    copy_row(weights_of(m, range, unit), range, unit, input_step, to);
  }
  PackWeightsArguments arguments = {
      .source = copy.data(), .channel_step = row_bytes, .input_step = input_step};
  call(of, range, arguments, unit);
}

/// Copies the weights of one output channel's unit that there are.
void WeightPacker::copy_row(const std::byte* from, const Range& range, int64_t unit,
                            int64_t input_step, std::byte* to) const {
  const PackWeights& spec = unit_of(range).spec;
  const int64_t inputs = inputs_of(range);
  const int64_t first = range.channel + unit * inputs;
  if (extents_.is_listed) {
    const jit::KStepWeights* k_step = plan_.k_step_weights.data() + first / held_;
    for (int64_t slot = 0; slot < spec.k_groups; ++slot, ++k_step, to += held_) {
      for (size_t i = 0; i < static_cast<size_t>(held_); ++i) {
        if ((*k_step)[i] >= 0) to[i] = from[(*k_step)[i] - first];
      }
    }
    return;
  }
  const int64_t there = std::min(inputs, extents_.channels - first);
  const int64_t step = extents_.positions();
  const int64_t runs = input_step == step ? 1 : there;
  const int64_t bytes = (input_step == step ? (there - 1) * step : 0) + spec.positions;
  for (int64_t i = 0; i < runs; ++i) {
    std::memcpy(to + i * input_step, from + i * step, static_cast<size_t>(bytes));
  }
}

/// Packs units from that one on; `arguments` say where they are read.
void WeightPacker::call(Rows& of, const Range& range, PackWeightsArguments& arguments,
                        int64_t unit) const {
  const auto& [spec, code] = unit_of(range);
  const int64_t k_step = range.k_step + unit * spec.k_groups * extents_.in_slice;
  arguments.to = of.to + static_cast<uint64_t>(k_step * of.step);
  arguments.step = of.step;
  arguments.unit_step = inputs_of(range) * arguments.input_step;
  arguments.skip = (extents_.in_slice - spec.positions) * of.step;
  arguments.lanes = of.stored;
  arguments.sums = of.sums.data();
  arguments.flips = in_all_bytes(flip());
  if (code != nullptr) return code->call(&arguments);
  pack_by_loops(spec, has_pairs() ? input_.zero_points + of.first : nullptr, arguments);
}

/// Weights of sixteen output channels are transposed, then those of each k group are joined, less
/// the zero points of its channels if there are any.
void WeightPacker::pack_by_loops(const PackWeights& unit, const int32_t* zero_points,
                                 const PackWeightsArguments& arguments) const {
  std::array<std::byte, rows * 4 * max_loop_slots> columns;  // a row for each weight
  const int64_t first = std::countr_zero(arguments.lanes);
  const int64_t count = std::popcount(arguments.lanes);
  const KGroupSpec spec = k_group_spec(plan_.engine, held_, k_group_flip(), 0);
  std::array<int16_t, rows> zeros = {};
  for (int64_t row = 0; row < count && zero_points != nullptr; ++row) {
    const auto zero = static_cast<int16_t>(zero_points[first + row] + k_group_flip());
    zeros[static_cast<size_t>(row)] = zero;
  }
  // Weights of a unit are adjacent, or those of each input channel are.
  const int64_t runs = arguments.input_step == unit.positions ? 1 : held_ * unit.k_groups;
  const int64_t run = held_ * unit.slots() / runs;
  const std::byte* from = arguments.source + first * arguments.channel_step;
  auto* to = reinterpret_cast<std::byte*>(arguments.to) + sizeof(int32_t) * first;
  for (int64_t left = arguments.units; left > 0; --left) {
    for (int64_t i = 0; i < runs; ++i) {
      transpose_bytes(from + i * arguments.input_step, arguments.channel_step, count, run,
                      columns.data() + i * run * rows);
    }
    join_elements({columns.data(), unit.positions, unit.slots()}, spec, zeros,
                  {to, arguments.step, count});
    from += arguments.unit_step;
    to += unit.slots() * arguments.step + arguments.skip;
  }
}

}  // namespace

Result<WeightPackers> find_weight_packers(const jit::DensePlan& plan, const jit::Target& target,
                                          CodeCache& cache) {
  const bool has_code = multiplies_bytes(plan.engine) && fits(PackWeights(), target);
  WeightPackers packers;
  packers.extents = weight_extents(plan);
  set_units(packers, has_code ? PackWeights::max_slots : max_loop_slots);
  list_ranges(packers, jit::channels_of_k_group(plan.engine));
  for (WeightPackers::Unit* unit : {&packers.whole, &packers.last}) {
    if (!has_code || unit->spec.slots() == 0) continue;
    auto code = cache.get(unit->spec, target);
    if (!code.ok()) return code.error();
    unit->code = std::move(code).value();
  }
  return packers;
}

size_t packed_k_groups(const jit::DensePlan& plan) {
  return static_cast<size_t>(plan.geometry.groups * plan.packed_group_width() *
                             plan.weight_k_groups());
}

int64_t tile_k_groups(const jit::DensePlan& plan) {
  return plan.packed_width(plan.tile.channels) * plan.weight_k_groups();
}

int64_t packed_tile(const jit::DensePlan& plan, int64_t group, int64_t tile) {
  return group * plan.packed_group_width() * plan.weight_k_groups() + tile * tile_k_groups(plan);
}

bool packs_groups_at_once(const jit::DensePlan& plan) {
  return plan.is_pixel_vectorised() && plan.geometry.groups > 1 &&
         plan.geometry.group_out_channels() < rows && plan.weight_k_groups() <= max_shared_k_steps;
}

void pack_weights(const jit::DensePlan& plan, const WeightPackers& packers,
                  const WeightInput& input, const DenseWeights<int32_t>& to) {
  const WeightPacker packer(plan, packers, input);
  if (packs_groups_at_once(plan)) return packer.pack_groups(to);
  for (int64_t group = 0; group < plan.geometry.groups; ++group) {
    for (int64_t tile = 0; tile < plan.channel_tiles; ++tile) {
      const int64_t first = group * plan.geometry.group_out_channels() + plan.first_channel(tile);
      packer.pack_tile(group, tile, to.k_groups.data() + packed_tile(plan, group, tile),
                       to.sums.data() + first);
    }
  }
}

void pack_weight_tile(const jit::DensePlan& plan, const WeightPackers& packers,
                      const WeightInput& input, int64_t group, int64_t tile, int32_t* to,
                      int32_t* sums) {
  WeightPacker(plan, packers, input).pack_tile(group, tile, to, sums);
}

}  // namespace castor::detail
