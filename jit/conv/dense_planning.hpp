// SPDX-License-Identifier: Apache-2.0
// What the planners of dense convolutions share: inside jit/conv only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "ir/support/integer_math.hpp"
#include "jit/conv/candidates.hpp"

namespace castor::jit {

/// Pixels of a cache block, so that their window sums are few as well.
inline constexpr int64_t max_block_pixels = int64_t{1} << 15;
/// K groups behind planes that the last tile of a block may read.
inline constexpr int64_t max_lanes_read_behind = 16 * 8;
/// Vectors of pixels whose window sums are computed at a time.
inline constexpr int vectors_of_window_sums = 6;
/// A plan lists at most this many k steps, so that binding takes little time and memory however
/// many channels there are: with more of them kernels loop over k groups.
inline constexpr int64_t max_listed_k_steps = int64_t{1} << 18;

/// Vectors of pixels that a tile of all channels takes from the input: these, a half or a quarter.
inline constexpr int max_vectors_of_input = 8;

/// Bytes of that many eighths of the L2 cache, as far as blocks count on it.
inline int64_t l2_share(const Target& target, int64_t eighths) {
  const BlockTuning& tuning = target.tuning().block;
  return std::clamp(target.caches.l2, tuning.min_l2_bytes, tuning.max_l2_bytes) * eighths / 8;
}

/// The largest part, if parts are at most `max` and of about a size.
constexpr int64_t even_part(int64_t all, int64_t max) { return ceil_div(all, ceil_div(all, max)); }

/// A plan of packed planes with its cache block and k steps, without a register tile. `plan` has
/// what all plans have; `planes` its layout and whether rows are aligned.
DensePlan plan_packed(DensePlan plan, PackedPlanes planes, const Target& target);

/// Channel-vectorised plans from the sources that are possible: none, or several. `base` has what
/// all plans have.
std::vector<DensePlan> plan_channels(const DensePlan& base, const ConvolutionProblem& problem,
                                     const Target& target);

/// The same by tile registers, which the target has.
std::vector<DensePlan> plan_tiles(const DensePlan& base, const ConvolutionProblem& problem,
                                  const Target& target);

/// The register tile with the lowest cost for a dense plan whose source and block are chosen.
DenseTile cheapest_tile(const DensePlan& plan, std::span<const DenseTile> tiles,
                        const Target& target);

/// Whether the weights of a tile of tile registers do not stay in L1 from one tile to the next.
bool streams_weights(const DensePlan& plan, const DenseTile& tile, const Target& target);

/// Gives a plan the tile, and tiles of channels.
void set_tile(DensePlan& plan, const DenseTile& tile);

}  // namespace castor::jit
