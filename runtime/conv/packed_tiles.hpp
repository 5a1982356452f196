// SPDX-License-Identifier: Apache-2.0
// Where packing puts the weights of channel tiles.
#pragma once

#include <algorithm>

#include "runtime/conv/convolution.hpp"

namespace castor::detail {

/// Where the packed weights of one channel tile lie.
struct PackedTile {
  int64_t first = 0;  ///< output channel, of all
  int64_t channels = 0;
  int64_t width = 0;  ///< dwords from one tap to the next
  int32_t* to = nullptr;
};

/// The tile of output channel `m`.
inline PackedTile tile_of(const jit::ConvPlan& plan, int64_t m, int32_t* dwords) {
  const int64_t outputs = plan.geometry.group_out_channels();
  const int64_t group = m / outputs;
  const int64_t tile = m % outputs / plan.tile_channels();
  const int64_t before = tile * plan.tile_channels();
  const int64_t channels = std::min<int64_t>(plan.tile_channels(), outputs - before);
  return {.first = group * outputs + before,
          .channels = channels,
          .width = plan.packed_width(static_cast<int>(channels)),
          .to = dwords + packed_tile(plan, group, tile)};
}

/// Calls visit(tile) for all tiles.
template <class Visit>
void for_each_tile(const jit::ConvPlan& plan, int32_t* dwords, Visit visit) {
  for (int64_t m = 0; m < plan.geometry.out_channels;) {
    const PackedTile tile = tile_of(plan, m, dwords);
    visit(tile);
    m += tile.channels;
  }
}

/// What makes weights signed.
inline uint8_t flip_of(bool is_signed) { return is_signed ? 0 : 0x80; }

/// The output channel of a tile's first row.
inline int64_t first_of_tile(const jit::ConvPlan& plan, int64_t group, int64_t tile) {
  return group * plan.geometry.group_out_channels() + tile * plan.tile_channels();
}

/// Packs the tile by code; `code.weights` is there.
void pack_weight_units(const jit::ConvPlan& plan, const MovementCode& code, const std::byte* w,
                       bool is_signed, const PackedTile& tile, const DenseWeights<int32_t>& to);
/// Packs by code; `code.weights` is there.
void pack_weight_units(const jit::ConvPlan& plan, const MovementCode& code, const std::byte* w,
                       bool is_signed, const DenseWeights<int32_t>& to);

}  // namespace castor::detail
