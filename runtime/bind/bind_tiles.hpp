// SPDX-License-Identifier: Apache-2.0
// Binds the loops over the tiles of a nest.
#pragma once

#include "jit/plan/tiles.hpp"
#include "runtime/bind/elementwise_step.hpp"
#include "runtime/memory/scratch_plan.hpp"

namespace castor::detail {

struct Compiled;

/// The loops over the tiles of `space`: steps, offsets of the copies, which the caller gives back
/// to `plan`, and their code, from the cache of `compiled`.
Result<TileLoops> bind_tile_loops(const jit::Nest& nest, const jit::IterationSpace& space,
                                  const jit::Tiles& tiles, const Compiled& compiled,
                                  ScratchPlan& plan);

}  // namespace castor::detail
