// SPDX-License-Identifier: Apache-2.0
// What the planning of both forms shares: inside jit/conv only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/support/integer_math.hpp"
#include "jit/conv/conv_plan.hpp"

namespace castor::jit {

/// What blocks may take of the second cache: all scratch shall be less than 1 MiB, however large
/// the cache is.
constexpr int64_t second_cache(const CacheSizes& caches) {
  return std::clamp(caches.l2, int64_t{128} << 10, int64_t{1} << 20);
}

/// Planes or rows of a block shall stay in the second cache, beside weights.
constexpr int64_t max_source_bytes(const CacheSizes& caches) {
  return second_cache(caches) * 3 / 8;
}
/// Planes of few channels shall stay in the first cache from one tile of output channels to the
/// next, beside what is stored meanwhile.
constexpr int64_t near_source_bytes(const CacheSizes& caches) { return caches.l1 * 5 / 8; }

/// Pixels of a block, so that their window sums are few as well.
inline constexpr int64_t max_block_pixels = int64_t{1} << 15;

/// Dwords behind planes that the last tile of a line may read.
inline constexpr int64_t max_lanes_read_behind = 16 * 8;

/// A plan lists at most this many offsets of taps, so that binding takes little time and memory
/// however many channels there are: with more k steps kernels loop over k groups.
inline constexpr int64_t max_listed_taps = int64_t{1} << 18;

/// What all plans of a geometry have in common.
ConvPlan begin_plan(const ConvolutionGeometry& geometry, const Target& target);

/// Chooses the block and how its planes lie, by the phases: as many rows as fit, or, where not even
/// one does, a part of a row.
void choose_block(ConvPlan& plan);

/// Chooses the planes and the blocks.
void choose_planes(ConvPlan& plan);

/// Tiles of that many of a group's output channels.
void set_channel_tiles(ConvPlan& plan, int tile_channels);

/// The pixel-vectorised plan with the least cost; its packed layout and rows are chosen already.
ConvPlan plan_pixel_lanes(ConvPlan plan, const Target& target);

/// Channel-vectorised plans from the sources that are possible: none, or several.
std::vector<ConvPlan> plan_channel_lanes(const ConvolutionProblem& problem, const Target& target);

}  // namespace castor::jit
