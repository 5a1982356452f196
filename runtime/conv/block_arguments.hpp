// SPDX-License-Identifier: Apache-2.0
// One call of a dense convolution, and the arguments of its kernels for the tiles of a block.
// Inside runtime/conv only.
#pragma once

#include <algorithm>
#include <optional>

#include "ir/support/integer_math.hpp"
#include "runtime/conv/convolution_output.hpp"
#include "runtime/conv/dense_call.hpp"
#include "runtime/conv/interleave.hpp"
#include "runtime/conv/padded_slices.hpp"

namespace castor::detail {

/// One call: what all tasks read.
struct DenseCall {
  DenseCall(const BoundDense& bound_convolution, size_t scratch, const ConvolutionStep& step,
            const CallMemory& memory)
      : bound(bound_convolution),
        operands(operands_of(step, memory)),
        weights(bound,
                {operands[1], data_of(bound.operands.w_zero_point, operands), x_zero_point()},
                memory.scratch + scratch),
        output(bound.plan.geometry, step, memory),
        profile(memory.profile),
        nest(step.nest) {
    const WorkTimer timer(profile, nest, Work::pack_weights);
    weights.prepare();
    if (!bound.packed.empty() || bound.packs_by_tile) return;
    timer.done([&] {
      return packing_amount(bound.plan.geometry, static_cast<int64_t>(packed_k_groups(bound.plan)));
    });
  }

  int32_t x_zero_point() const {
    return input_zero_point(bound.operands, data_of(bound.operands.x_zero_point, operands));
  }

  const BoundDense& bound;
  const CallOperands operands;
  CallWeights weights;
  const ConvolutionOutput output;
  CallProfile* const profile;  ///< null: nobody asks
  const size_t nest;
};

/// Consecutive tiles of channels.
struct ChannelTiles {
  int64_t first = 0;
  int64_t count = 0;
};

/// The arguments of kernels for the tiles of a block.
class BlockArguments {
 public:
  BlockArguments(const DenseCall& call, const PackedBlock& block)
      : call_(call),
        bound_(call.bound),
        plan_(call.bound.plan),
        block_(block),
        slices_(call.bound, block.place.outer) {}

  /// The output channels of some tiles, at the block's first pixel.
  OutputPiece piece_of(const ChannelTiles& tiles) const {
    const BlockPlace& place = block_.place;
    const int64_t first = plan_.first_channel(tiles.first);
    return {.image = place.image,
            .channel = place.group * plan_.geometry.group_out_channels() + first,
            .channels = plan_.first_channel(tiles.first + tiles.count) - first,
            .pixel = (place.outer * plan_.rows.output + place.row) * plan_.columns.output +
                     place.column};
  }
  /// First values of a tile's accumulators, where slices are left out.
  std::optional<TileStarts> inner_starts(int64_t tile) const {
    if (!slices_.leaves_padding_out()) return std::nullopt;
    jit::DenseArguments arguments;
    call_.weights.set_arguments(block_.place.group, tile, block_.scratch, arguments);
    return slices_.starts_of(arguments, plan_.channels_of(tile), call_.weights.padding());
  }

  /// The arguments of all pixel tiles of some tiles of channels. They may point to `starts`, which
  /// are there where slices are left out.
  jit::DenseArguments of_tiles(const ChannelTiles& tiles,
                               const std::optional<TileStarts>& starts) const {
    const BlockPlace& place = block_.place;
    jit::DenseArguments arguments = k_steps_of(plan_, block_);
    call_.weights.set_arguments(place.group, tiles.first, block_.scratch, arguments);
    arguments.channel_tiles = tiles.count;
    arguments.weight_tile_bytes = jit::k_group_bytes * tile_k_groups(plan_);
    if (starts) slices_.leave_padding_out(plan_.channels_of(tiles.first), *starts, arguments);
    arguments.window_sums = window_sums(bound_, block_);
    if (!bound_.input_code) return arguments;
    const ConvolutionGeometry& geometry = plan_.geometry;
    const int64_t input_channel =
        place.image * geometry.channels + place.group * geometry.group_channels();
    arguments.input_step = plan_.rows.input * plan_.columns.input;
    arguments.zero_point_bytes = in_all_bytes(static_cast<uint8_t>(call_.weights.zero_point()));
    arguments.input = call_.operands[0] + input_channel * arguments.input_step +
                      place.row * plan_.columns.input + place.column;
    return arguments;
  }

  /// Each pixel tile prefetches its part of the weights that follow; after the last ones, the first
  /// line of its own, again and again.
  void set_prefetch(const ChannelTiles& channels, const BoundTiles& of, const PixelTiles& tiles,
                    jit::DenseArguments& arguments) const {
    const jit::DenseTile& tile = of.run.tile;
    if (!tile.prefetches_weights) return;
    const int64_t next = channels.first + channels.count;
    arguments.prefetched = arguments.weights;
    arguments.prefetch_step = 0;
    if (bound_.packs_by_tile || next >= plan_.channel_tiles) return;
    const int64_t steps = std::max<int64_t>(
        arguments.k_groups * ((arguments.k_step_count - tile.peeled_k_steps) / 2), 1);
    const int64_t bytes = jit::k_group_bytes * tile_k_groups(plan_);
    const int64_t before = block_.tables.tiles_before(of) + tiles.begin;
    arguments.prefetch_step = ceil_div(bytes, steps * block_.tables.pixel_tiles);
    arguments.prefetched += bytes + before * steps * arguments.prefetch_step;
  }

  /// Sets which tiles of pixels a call computes.
  static void set_tiles(jit::DenseArguments& arguments, const jit::TileRun& run,
                        const PixelTiles& tiles) {
    arguments.tiles = tiles.count();
    if (run.places.empty()) {
      arguments.stores = run.stores.data() + tiles.begin * run.tile.vectors;
    } else {
      arguments.places = run.places.data() + tiles.begin;
    }
    if (run.tile.has_tiles()) set_pixel_steps(arguments, run.tile);
  }

 private:
  static void set_pixel_steps(jit::DenseArguments& arguments, const jit::DenseTile& tile) {
    arguments.pixel_step = tile.pixel_step;
    for (int p = 1; p < tile.pixel_tiles(); ++p) {
      arguments.pixel_tile_steps[p - 1] = tile.source_offset(tile.first_position(p)) -
                                          tile.source_offset(tile.first_position(p - 1));
    }
  }

  const DenseCall& call_;
  const BoundDense& bound_;
  const jit::DensePlan& plan_;
  const PackedBlock& block_;
  const InnerSlices slices_;
};

}  // namespace castor::detail
